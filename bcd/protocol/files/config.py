"""`config.toml` (decision 21): which keys there are, and what each may hold. One table, used by every reader."""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bcd.domain.model.hints import did_you_mean
from bcd.domain.model.pins import MalformedPin, Pins

DEFAULT_PATH = "/etc/bcd/config.toml"
ENCRYPTION_KEY_FILE = "join-encryption.jwk"
SERVING_CA_FILE = "serving-ca.pem"
MAX_CONFIG_BYTES = 1 << 16

_HOST_PORT = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[A-Za-z0-9._-]{1,253})):(?P<port>[0-9]{1,5})")
# POSIX portable user names; useradd's default pattern is narrower.
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")


class BadConfig(ValueError):
    """`key` (dotted; empty for the file as a whole) holds something it may not; `why` in words."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key}: {why}" if key else why)
        self.key = key
        self.why = why


@dataclass(frozen=True)
class Address:
    """A host name or IP address (IPv6 without brackets) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Helper:
    """`[helper]`: the unprivileged user the node runs as, the helper's socket, and where root's join record goes."""

    user: str
    socket: str = "/run/bcd/helper.sock"
    record_dir: str = "/var/lib/bcd-hostconfig"


@dataclass(frozen=True)
class Config:
    """A validated configuration. `path` is the file it came from."""

    path: str
    data_dir: str = "/var/lib/bcd"
    join: Address | None = None
    gateway: Address | None = None
    serving_ca_spki_pin: Pins | None = None
    join_encryption_key_pin: Pins | None = None
    join_signing_key_pin: Pins | None = None
    command_root_sha256: Pins | None = None
    tpm_device: str = "/dev/tpmrm0"
    tpm_wait_s: float = 30.0
    helper: Helper | None = None
    log_level: str = "info"
    log_format: str = "text"

    def beside(self, name: str) -> str:
        """The path of a file that lies beside the configuration."""
        return os.path.join(os.path.dirname(os.path.abspath(self.path)), name)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError("want a text")
    return value


def _absolute(value: object) -> str:
    path = _text(value)
    if not path.startswith("/"):
        raise ValueError("want an absolute path")
    return os.path.normpath(path)


def _address(value: object) -> Address:
    found = _HOST_PORT.fullmatch(_text(value))
    if not found or not 0 < int(found["port"]) <= 65535:
        raise ValueError("want HOST:PORT, an IPv6 address in brackets")
    return Address(found["six"] or found["name"], int(found["port"]))


def _pins(value: object) -> Pins:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("want a pin, or a list of pins")
    try:
        return Pins.parse(texts)
    except MalformedPin as error:
        raise ValueError(f"malformed pin: {error}") from None


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 3600:
        raise ValueError("want seconds, 0 to 3600")
    return float(value)


def _user(value: object) -> str:
    if not _USER.fullmatch(_text(value)):
        raise ValueError("want a user name")
    return _text(value)


def _one_of(*words: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if value not in words:
            raise ValueError(f"want one of {', '.join(words)}")
        return str(value)

    return check


# Key, and what it turns a TOML value into. ValueError says what it wants; it never shows the value.
KEYS: dict[str, Callable[[object], Any]] = {
    "data_dir": _absolute,
    "join": _address,
    "gateway": _address,
    "serving_ca_spki_pin": _pins,
    "join_encryption_key_pin": _pins,
    "join_signing_key_pin": _pins,
    "command_root_sha256": _pins,
    "tpm.device": _absolute,
    "tpm.wait_s": _seconds,
    "helper.user": _user,
    "helper.socket": _absolute,
    "helper.record_dir": _absolute,
    "log.level": _one_of("debug", "info", "warning", "error"),
    "log.format": _one_of("text", "json"),
}
_TABLES = ("tpm", "helper", "log")


def parse(data: bytes) -> dict[str, Any]:
    """Dotted keys and their checked values; BadConfig for a syntax error, an unknown key or a bad value.

    An unknown key is refused rather than passed over: a misspelled pin would protect nothing."""
    if len(data) > MAX_CONFIG_BYTES:
        raise BadConfig("", f"larger than {MAX_CONFIG_BYTES} bytes")
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadConfig("", "not UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadConfig("", f"not TOML: {error}") from None
    flat: dict[str, object] = {}
    for name, value in table.items():
        if name in _TABLES:
            if not isinstance(value, dict):
                raise BadConfig(name, "want a table")
            flat |= {f"{name}.{inner}": found for inner, found in value.items()}
        else:
            flat[name] = value
    return {key: check(key, value) for key, value in flat.items()}


def check(key: str, value: object) -> Any:
    """The value `key` gets from the TOML value `value`."""
    rule = KEYS.get(key)
    if rule is None:
        hint = did_you_mean(key, (*KEYS, *_TABLES))
        raise BadConfig(key, f"unknown key{hint} (known: {', '.join(KEYS)})")
    try:
        return rule(value)
    except ValueError as error:
        raise BadConfig(key, str(error)) from None


def build(path: str, values: Mapping[str, Any]) -> Config:
    """The configuration of checked `values`, as `parse` and the flags give them."""
    flat = {key.replace(".", "_"): value for key, value in values.items() if not key.startswith("helper.")}
    helper = {key.removeprefix("helper."): value for key, value in values.items() if key.startswith("helper.")}
    if helper and "user" not in helper:
        raise BadConfig("helper.user", "missing: [helper] needs the user the node runs as")
    return Config(path=path, helper=Helper(**helper) if helper else None, **flat)
