"""Response codes by name (TPM 2.0 Library, Part 2, 6.6)."""

from dataclasses import dataclass
from enum import IntEnum


class Rc(IntEnum):
    """Base codes: format zero as they are, format one without the handle, session or parameter they speak of."""

    INITIALIZE = 0x100
    FAILURE = 0x101
    SEQUENCE = 0x103
    DISABLED = 0x120
    EXCLUSIVE = 0x121
    AUTH_TYPE = 0x124
    AUTH_MISSING = 0x125
    POLICY = 0x126
    PCR = 0x127
    PCR_CHANGED = 0x128
    UPGRADE = 0x12D
    TOO_MANY_CONTEXTS = 0x12E
    AUTH_UNAVAILABLE = 0x12F
    REBOOT = 0x130
    UNBALANCED = 0x131
    COMMAND_SIZE = 0x142
    COMMAND_CODE = 0x143
    AUTHSIZE = 0x144
    AUTH_CONTEXT = 0x145
    NV_RANGE = 0x146
    NV_SIZE = 0x147
    NV_LOCKED = 0x148
    NV_AUTHORIZATION = 0x149
    NV_UNINITIALIZED = 0x14A
    NV_SPACE = 0x14B
    NV_DEFINED = 0x14C
    BAD_CONTEXT = 0x150
    CPHASH = 0x151
    PARENT = 0x152
    NEEDS_TEST = 0x153
    NO_RESULT = 0x154
    SENSITIVE = 0x155
    ASYMMETRIC = 0x081
    ATTRIBUTES = 0x082
    HASH = 0x083
    VALUE = 0x084
    HIERARCHY = 0x085
    KEY_SIZE = 0x087
    MGF = 0x088
    MODE = 0x089
    TYPE = 0x08A
    HANDLE = 0x08B
    KDF = 0x08C
    RANGE = 0x08D
    AUTH_FAIL = 0x08E
    NONCE = 0x08F
    PP = 0x090
    SCHEME = 0x092
    SIZE = 0x095
    SYMMETRIC = 0x096
    TAG = 0x097
    SELECTOR = 0x098
    INSUFFICIENT = 0x09A
    SIGNATURE = 0x09B
    KEY = 0x09C
    POLICY_FAIL = 0x09D
    INTEGRITY = 0x09F
    TICKET = 0x0A0
    RESERVED_BITS = 0x0A1
    BAD_AUTH = 0x0A2
    EXPIRED = 0x0A3
    POLICY_CC = 0x0A4
    BINDING = 0x0A5
    CURVE = 0x0A6
    ECC_POINT = 0x0A7
    CONTEXT_GAP = 0x901
    OBJECT_MEMORY = 0x902
    SESSION_MEMORY = 0x903
    MEMORY = 0x904
    SESSION_HANDLES = 0x905
    OBJECT_HANDLES = 0x906
    LOCALITY = 0x907
    YIELDED = 0x908
    CANCELED = 0x909
    TESTING = 0x90A
    REFERENCE_H0 = 0x910
    REFERENCE_S0 = 0x918
    NV_RATE = 0x920
    LOCKOUT = 0x921
    RETRY = 0x922
    NV_UNAVAILABLE = 0x923


# The same bytes, sent again, may be carried out (Part 2, 6.6.3).
AGAIN = frozenset({Rc.RETRY, Rc.YIELDED, Rc.TESTING})

_FORMAT_ONE = 0x080
_PARAMETER = 0x040
_SESSION = 0x800


@dataclass(frozen=True)
class Code:
    """A response code that is not success; the upper half, if any, names a layer above the TPM."""

    number: int

    @property
    def base(self) -> int:
        """The code without what it speaks of: compare with Rc."""
        low = self.number & 0xFFF
        if not low & _FORMAT_ONE:
            return low
        return low & 0x0BF

    @property
    def name(self) -> str:
        """The enumeration's name, or an empty text for a code it does not know."""
        return Rc(self.base).name if self.base in Rc.__members__.values() else ""

    @property
    def subject(self) -> str:
        """Which handle, session or parameter a code of format one speaks of; empty for none."""
        low = self.number & 0xFFF
        if not low & _FORMAT_ONE:
            return ""
        if low & _PARAMETER:
            return f"parameter {low >> 8}" if low >> 8 else ""
        which = (low >> 8) & 0x7
        if not which:
            return ""
        return f"session {which}" if low & _SESSION else f"handle {which}"

    def __str__(self) -> str:
        words = [f"TPM_RC_{self.name}" if self.name else "an unknown code", self.subject, f"0x{self.number:x}"]
        return ", ".join(word for word in words if word)
