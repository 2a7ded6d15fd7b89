"""Identifiers the control plane makes. Random bytes are arguments; base32 is RFC 4648's alphabet in lower case."""

import re
from base64 import b32encode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import NewType

TokenId = NewType("TokenId", str)
ApprovalId = NewType("ApprovalId", str)
RefusalId = NewType("RefusalId", str)

# 10 base32 characters hold 50 bits: 7 bytes, of which the last 6 bits are left out.
SHORT_ID_BYTES = 7
SHORT_ID_CHARACTERS = 10
TOKEN_SECRET_BYTES = 32
REFUSAL_ID_BYTES = 16
# RFC 5280, 4.1.2.2 allows 20 octets; the protocol wants 128 random bits.
SERIAL_BYTES = 16

_TOKEN = re.compile(rb"bcjt_([a-z2-7]{10})_([A-Za-z0-9_-]{43})")


def short_id(raw: bytes) -> str:
    """10 base32 characters of the first 50 bits of `raw` (7 bytes)."""
    return b32encode(raw).decode().lower()[:SHORT_ID_CHARACTERS]


@dataclass(frozen=True)
class TokenText:
    """A join token taken apart. Only the hash of its secret is ever kept; the secret has 256 bits, so no salt."""

    id: TokenId
    secret_sha256: bytes

    @staticmethod
    def parse(text: bytes) -> "TokenText | None":
        """None when `text` is not one of our tokens."""
        match = _TOKEN.fullmatch(text)
        return TokenText(TokenId(match[1].decode()), sha256(match[2]).digest()) if match else None


def token_text(token_id: TokenId, secret: bytes) -> str:
    """`bcjt_<id>_<secret>`: the secret's 32 bytes as 43 base64url characters."""
    return f"bcjt_{token_id}_{urlsafe_b64encode(secret).rstrip(b'=').decode()}"
