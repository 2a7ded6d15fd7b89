"""Port: what happened, for the log. One method an event class keeps names and fields in one place."""

from typing import Protocol


class Events(Protocol):
    """Field values are shown as they are: never a token, a key or a sealed blob."""

    def info(self, text: str, **fields: object) -> None: ...

    def warning(self, text: str, **fields: object) -> None: ...

    def error(self, text: str, **fields: object) -> None: ...
