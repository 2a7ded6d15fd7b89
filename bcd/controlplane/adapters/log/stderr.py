"""The log on standard error, by loguru: one line an event, text or JSON."""

import json
import sys
from datetime import UTC
from typing import TYPE_CHECKING

from loguru import logger

if TYPE_CHECKING:
    from loguru import Message


class StderrLog:
    """Fields are plain words or else JSON strings, so nothing a node sends can break a line, move a terminal's cursor
    or pass for another field. A node's log is written the same way."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        logger.remove()
        # diagnose shows values of variables, backtrace frames beyond the handler: both could hold a token.
        logger.add(self._write, format="{message}", level="INFO", diagnose=False, backtrace=False, catch=False)

    def info(self, what: str, **fields: object) -> None:
        logger.bind(**fields).info("{}", what)

    def warning(self, what: str, **fields: object) -> None:
        logger.bind(**fields).warning("{}", what)

    def fault(self, what: str, cause: BaseException, **fields: object) -> None:
        logger.bind(**fields, cause=f"{type(cause).__name__}: {cause}").error("{}", what)

    def _write(self, message: "Message") -> None:
        record = message.record
        at = record["time"].astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        extra = {name: str(value) for name, value in record["extra"].items()}
        if self._as_json:
            line = json.dumps({"time": at, "level": record["level"].name.lower(), "event": record["message"], **extra})
        else:
            words = " ".join(f"{name}={_word(value)}" for name, value in extra.items())
            line = f"{at} {record['level'].name.lower()} {record['message']} {words}".rstrip()
        try:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
        except OSError:
            # Nobody reads the log any more, or its disk is full: serving goes on.
            pass


def _word(value: str) -> str:
    plain = value and value.isascii() and value.isprintable() and not any(c in value for c in ' "=')
    return value if plain else json.dumps(value)
