"""Port `Events` on loguru: standard error, one line an event, text or JSON."""

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loguru import logger

if TYPE_CHECKING:
    from loguru import Record

# Loguru's own names for the levels of `[log] level`.
_LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARNING", "error": "ERROR"}


class LogEvents:
    def __init__(self, level: str, form: str) -> None:
        logger.remove()
        # diagnose and backtrace print local variables, and one of them may be a secret.
        logger.add(
            sys.stderr,
            level=_LEVELS[level],
            format=_json if form == "json" else _text,
            colorize=False,
            backtrace=False,
            diagnose=False,
            catch=True,
        )

    def debug(self, text: str, **fields: object) -> None:
        logger.bind(**fields).debug("{}", text)

    def info(self, text: str, **fields: object) -> None:
        logger.bind(**fields).info("{}", text)

    def warning(self, text: str, **fields: object) -> None:
        logger.bind(**fields).warning("{}", text)

    def error(self, text: str, **fields: object) -> None:
        logger.bind(**fields).error("{}", text)


def _text(record: "Record") -> str:
    fields = "".join(f" {name.rstrip('_')}={_word(value)}" for name, value in record["extra"].items())
    return _finished(record, f"{_time(record)} {record['level'].name.lower()} {_plain(record['message'])}{fields}")


def _json(record: "Record") -> str:
    fields = {name.rstrip("_"): _shown(value) for name, value in record["extra"].items()}
    line = {"time": _time(record), "level": record["level"].name.lower(), "message": record["message"]} | fields
    return _finished(record, _quoted(line))


def _finished(record: "Record", line: str) -> str:
    # Loguru reads braces and markup in what a format returns, and prints a traceback for a `<b>` that nothing closes.
    # It reads none in the fields, so the finished line goes there.
    record["extra"]["_line"] = line
    return "{extra[_line]}\n"


def _time(record: "Record") -> str:
    return record["time"].astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _shown(value: object) -> str | int | float | bool | None:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _word(value: object) -> str:
    word = str(_shown(value))
    return word if word and word.isprintable() and not any(c in word for c in ' "=') else _quoted(word)


def _quoted(value: object) -> str:
    """JSON in one printable line, whatever the value holds."""
    return json.dumps(value)


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
