"""Port: where the join token comes from."""

from typing import Protocol

from bcd.domain.model.tokens import JoinToken


class CredentialSource(Protocol):
    def take(self) -> JoinToken:
        """The token, read now and for the first time. Usage (TOKEN_MALFORMED, TOKEN_FILE, NO_TOKEN) when the source
        holds none. The text of the token is in no failure."""
        ...

    def spent(self) -> None:
        """The machine has an identity: a token file is deleted, unread if need be. A read-only mount is a warning,
        never a failure; other sources leave nothing behind."""
        ...
