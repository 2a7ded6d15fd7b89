"""Port `Events` for commands that print what they found and log nothing."""


class Quiet:
    def info(self, text: str, **fields: object) -> None:
        """Nothing."""

    def warning(self, text: str, **fields: object) -> None:
        """Nothing."""

    def error(self, text: str, **fields: object) -> None:
        """Nothing."""
