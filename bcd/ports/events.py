"""Port: what happened, for the log. One method an event class keeps names and fields in one place."""

from typing import Protocol


class Events(Protocol):
    """Field values are shown as they are: never a token, a key or a sealed blob. No method fails, and a line that is
    told is not durable."""

    def info(self, text: str, **fields: object) -> None:
        """What happened as it should."""
        ...

    def warning(self, text: str, **fields: object) -> None:
        """What did not, and what the program gets over by itself."""
        ...

    def error(self, text: str, **fields: object) -> None:
        """What a person has to look after."""
        ...
