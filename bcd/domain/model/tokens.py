"""The join token as the node sees it: opaque, checked for its alphabet only, and never shown."""

import re

# Longer than any token of ours; the same limit holds for each source (specification, "Joining").
MAX_TOKEN_BYTES = 4096
_TOKEN = re.compile(rb"[A-Za-z0-9._~+/=-]{16,4096}")


class MalformedToken(ValueError):
    """The credential is not a token. The message says what is wrong and never holds any of it."""


class JoinToken:
    """A join token; its text leaves only by `reveal`, so that no repr, log or traceback can hold it."""

    __slots__ = ("_text",)

    def __init__(self, text: bytes) -> None:
        self._text = text

    def reveal(self) -> bytes:
        return self._text

    def __repr__(self) -> str:
        return "JoinToken(…)"


def parse_token(raw: bytes) -> JoinToken:
    """The token in `raw` less one line end (LF or CRLF); anything else that is not of a token is MalformedToken."""
    text = raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\r\n") else raw.removesuffix(b"\n")
    if not text:
        raise MalformedToken("is empty")
    if len(text) > MAX_TOKEN_BYTES:
        raise MalformedToken(f"is longer than {MAX_TOKEN_BYTES} bytes")
    if text.startswith(b"\xef\xbb\xbf"):
        raise MalformedToken("begins with a byte-order mark")
    if not _TOKEN.fullmatch(text):
        if len(text) < 16:  # the pattern's own lower bound
            raise MalformedToken("is shorter than 16 characters")
        raise MalformedToken("holds a character that no token has (letters, digits and . _ ~ + / = - only)")
    return JoinToken(text)
