"""config/config.toml, the annotated example: every key bcd knows is in it, and what it says is taken."""

import re
from dataclasses import fields
from pathlib import Path

from bcd.domain.model.pins import Pins
from bcd.protocol.files import config

TEXT = (Path(__file__).resolve().parents[3] / "config" / "config.toml").read_text(encoding="utf-8")
# A setting is commented out without a space after the mark, prose with one.
UNCOMMENTED = re.sub(r"^#(?=\S)", "", TEXT, flags=re.MULTILINE)


def test_as_it_stands_it_sets_nothing() -> None:
    assert config.parse(TEXT.encode()) == {}


def test_with_every_setting_uncommented_it_has_every_key_there_is() -> None:
    assert list(config.parse(UNCOMMENTED.encode())) == list(config.KEYS)


def test_what_it_shows_without_an_example_is_the_default() -> None:
    built = config.build("config.toml", config.parse(UNCOMMENTED.encode()))
    default = config.Config("config.toml")
    examples = {"join", "gateway", "helper"}
    for field in fields(config.Config):
        shown = getattr(built, field.name)
        if field.name not in examples and not isinstance(shown, Pins):
            assert shown == getattr(default, field.name), field.name
    assert built.helper == config.Helper("bcd")
