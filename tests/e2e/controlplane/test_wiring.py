"""The container: every provider builds from a real directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from dependency_injector import providers

from bcd.controlplane.adapters.files.directory import Directory
from bcd.controlplane.wiring.container import Container

GIVEN = {"directory", "log_as_json"}


def test_every_provider_of_the_container_builds(made: Path) -> None:
    directory = Directory(str(made))
    container = Container(directory=directory, log_as_json=True)
    built = {name: getattr(container, name)() for name in Container.providers}
    assert built.keys() >= {"store", "issuer", "statements", "unsealer", "joins", "admin", "log", "settings"}
    assert all(value is not None for name, value in built.items() if name not in GIVEN)
    for name, provider in Container.providers.items():
        # Two of a store would be two writers.
        assert name in GIVEN or isinstance(provider, providers.Singleton), name
    built["store"].close()
    directory.close()


def test_what_the_container_is_not_given_it_asks_for() -> None:
    with pytest.raises(Exception, match="directory"):
        Container(log_as_json=True).settings()
