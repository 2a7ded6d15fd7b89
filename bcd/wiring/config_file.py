"""`config.toml` without pydantic: `status` and `doctor` start in half the time. Failures name the file and the key."""

from collections.abc import Mapping
from typing import Any

from bcd.adapters.beside_config import files
from bcd.domain.model.failures import FixConfiguration, Message, Usage
from bcd.protocol.files import config
from bcd.protocol.files.config import BadConfig, Config


def read(path: str, flags: Mapping[str, str]) -> Config:
    """The configuration in `path` under `flags` (dotted keys, and the texts given for them)."""
    return built(path, values_in(path) | checked_flags(flags))


def values_in(path: str) -> dict[str, Any]:
    """Dotted keys and checked values of the file."""
    try:
        return config.parse(files.read_config(path))
    except BadConfig as error:
        if not error.key:
            raise FixConfiguration(Message.CONFIG_SYNTAX, path=path, why=error.why) from None
        raise FixConfiguration(Message.CONFIG_KEY, path=path, key=error.key, why=error.why) from None


def checked_flags(flags: Mapping[str, str]) -> dict[str, Any]:
    try:
        return {key: config.check(key, text) for key, text in flags.items()}
    except BadConfig as error:
        # log.level is --log-level.
        flag = "--" + error.key.replace("_", "-").replace(".", "-")
        raise Usage(Message.CONFIG_KEY, path="command line", key=flag, why=error.why) from None


def built(path: str, values: Mapping[str, Any]) -> Config:
    try:
        return config.build(path, values)
    except BadConfig as error:
        raise FixConfiguration(Message.CONFIG_KEY, path=path, key=error.key, why=error.why) from None
