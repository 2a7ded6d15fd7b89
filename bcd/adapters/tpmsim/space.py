"""What is loaded: the objects and sessions of one link, as the kernel's resource manager keeps a space for each."""

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import ec, rsa

from bcd.protocol.tpm2.structures import Public

OBJECT_SLOTS = 3
SESSION_SLOTS = 3
TRANSIENT = 0x80000000
HMAC_SESSION = 0x02000000
POLICY_SESSION = 0x03000000

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Object:
    """A key that is loaded. `name` and `qualified_name` as the TPM computes them (Part 1, 16)."""

    hierarchy: int
    public: Public
    name: bytes
    qualified_name: bytes
    auth: bytes
    private: PrivateKey


@dataclass
class Session:
    """A session that was started; `type` is TPM_SE."""

    type: int
    hash: int
    nonce: bytes
    policy_digest: bytes
    command_hash: bytes = b""


@dataclass
class Space:
    """Handles and what they denote, until a power cycle, or the link's end."""

    boot: int = 0
    cleared: int = 0
    objects: dict[int, Object] = field(default_factory=dict)
    sessions: dict[int, Session] = field(default_factory=dict)
    # Persistent keys that have been used: derived once, and no place of the three is theirs for longer than a command.
    persistent: dict[int, Object] = field(default_factory=dict)

    def key(self, handle: int) -> Object:
        """The key of a handle that denotes one."""
        return self.objects[handle] if handle in self.objects else self.persistent[handle]

    def free_object(self, held: int) -> int | None:
        """The handle for one more object, the lowest first; None when there is no room."""
        if len(self.objects) + held >= OBJECT_SLOTS:
            return None
        return next(TRANSIENT + slot for slot in range(OBJECT_SLOTS) if TRANSIENT + slot not in self.objects)

    def free_session(self, of: int) -> int | None:
        if len(self.sessions) >= SESSION_SLOTS:
            return None
        taken = {handle & 0xFFFFFF for handle in self.sessions}
        return next(of + slot for slot in range(SESSION_SLOTS) if slot not in taken)
