"""Port: the log, for the operator. No secret ever goes there."""

from typing import Protocol


class Log(Protocol):
    def info(self, what: str, **fields: object) -> None: ...

    def warning(self, what: str, **fields: object) -> None: ...

    def fault(self, what: str, cause: BaseException, **fields: object) -> None:
        """Something failed that should not have; `cause` is named by its class and text."""
        ...
