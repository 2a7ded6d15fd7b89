"""A contract is a class of static methods, each a check that any implementation of a port passes."""

from collections.abc import Callable

import pytest


def checks_of(contract: type) -> dict[str, Callable[..., None]]:
    return {name: getattr(contract, name) for name in vars(contract) if not name.startswith("_")}


def failed_checks(contract: type, *arguments: Callable[[], object]) -> set[str]:
    """The checks that an implementation does not pass; each check gets fresh arguments."""
    failed = set()
    for name, check in checks_of(contract).items():
        try:
            check(*(make() for make in arguments))
        except (Exception, pytest.fail.Exception):
            failed.add(name)
    return failed
