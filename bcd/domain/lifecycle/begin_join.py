"""The request of a join: the one that a cut left, or a new one, on disk before anybody is asked (decision 8)."""

from collections.abc import Callable
from dataclasses import dataclass

from bcd.domain.lifecycle.attest import TPM, Attest
from bcd.domain.lifecycle.await_tpm import AwaitTpm
from bcd.domain.model.attestation import TpmEvidence
from bcd.domain.model.datadir import MAX_FILE_BYTES, PENDING
from bcd.domain.model.failures import FixConfiguration, Message, MustJoinAgain, TryLater
from bcd.domain.model.keys import KeyKind, KeyState, KeyUnavailable
from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.pending import PendingJoin, SealedToken
from bcd.ports.clock import Clock
from bcd.ports.credential import CredentialSource
from bcd.ports.events import Events
from bcd.ports.fs import Fs
from bcd.ports.keys import KeyStore, NodeKey
from bcd.protocol.files import join_pending
from bcd.protocol.files.encoding import MalformedFile
from bcd.protocol.pki import csr, seal

# Until when after its start a machine still finds devices (field report B37: 30 s).
BOOT_S = 120.0


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for. `attestor` is None when it names none: then a join that was begun goes on as it
    was, and a new one is by token."""

    role: Role
    node_id: NodeId | None
    attestor: str | None = None


@dataclass(frozen=True)
class Begun:
    """`pending` is what `join.pending` holds, `key` its key, and `evidence` what the TPM shows in a join by TPM."""

    pending: PendingJoin
    key: NodeKey
    evidence: TpmEvidence | None


@dataclass(frozen=True)
class BeginJoin:
    """`recipient` reads the sealing key when a token is to be sealed, and not before. `tpm_wait_s` is how long a TPM
    that is to attest is waited for."""

    fs: Fs
    path: str
    keys: KeyStore
    attest: Attest
    await_tpm: AwaitTpm
    credential: CredentialSource
    recipient: Callable[[], seal.Recipient]
    clock: Clock
    events: Events
    tpm_wait_s: float = 0.0

    def __call__(self, wanted: Wanted) -> Begun:
        """Durable on return. MustJoinAgain for a request that cannot be read, FixConfiguration for one that is not as
        `wanted`, Usage without a token, TryLater for a TPM that is not to be had; none of them changes what is on disk.
        The caller holds the lock."""
        begun = self._resume(wanted)
        if begun is not None:
            return begun
        return self._by_tpm(wanted) if wanted.attestor == TPM else self._by_token(wanted)

    def _resume(self, wanted: Wanted) -> Begun | None:
        """The request an interrupted join left, if there is one: it goes on without a token."""
        data = self.fs.read(PENDING, MAX_FILE_BYTES)
        if data is None:
            return None
        try:
            pending = join_pending.decode(data)
        except MalformedFile as error:
            raise self._unreadable(error) from None
        if pending.node_id != wanted.node_id:
            have, want = (node or "any" for node in (pending.node_id, wanted.node_id))
            raise FixConfiguration(Message.PENDING_OTHER, what="node id", have=have, want=want)
        if pending.role is not wanted.role:
            raise FixConfiguration(Message.PENDING_OTHER, what="role", have=pending.role, want=wanted.role)
        if wanted.attestor is not None and (wanted.attestor == TPM) != (pending.attestor == TPM):
            raise FixConfiguration(Message.PENDING_OTHER, what="attestor", have=pending.attestor, want=wanted.attestor)
        self.events.info("resuming the join that was begun; no token is read", begun=pending.begun)
        key = self._key_of(pending)
        return Begun(pending, key, self.attest.evidence(key) if pending.attestor == TPM else None)

    def _by_tpm(self, wanted: Wanted) -> Begun:
        # First of all: a key made before a TPM shows up late in a boot would be a file for no reason. Who asks at a
        # machine that has been up for long is told at once.
        late = self.clock.boottime_s() < BOOT_S
        self.await_tpm(self.attest.attestor.ak_name, self.tpm_wait_s if late else 0.0)
        key = self.keys.create()
        # Before anything is written: a TPM that shows nothing leaves no join behind that only it could go on with.
        evidence = self.attest.evidence(key)
        pending = PendingJoin(
            attestor=TPM,
            role=wanted.role,
            node_id=None,
            key=key.record,
            csr=key.request(),
            sealed=None,
            pending_id="",
            begun=self.clock.now(),
        )
        self.fs.write(PENDING, join_pending.encode(pending))
        return Begun(pending, key, evidence)

    def _by_token(self, wanted: Wanted) -> Begun:
        recipient = self.recipient()
        token = self.credential.take()
        key = self.keys.create()
        request = key.request()
        sealed = seal.seal(recipient, token.reveal(), request)
        pending = PendingJoin(
            attestor="join-token" if wanted.node_id is None else "provisioned",
            role=wanted.role,
            node_id=wanted.node_id,
            key=key.record,
            csr=request,
            sealed=SealedToken(sealed.kid, sealed.sealed),
            pending_id="",
            begun=self.clock.now(),
        )
        # Before the first question: its answer may use the token up, and only this request gets it again.
        self.fs.write(PENDING, join_pending.encode(pending))
        return Begun(pending, key, None)

    def _key_of(self, pending: PendingJoin) -> NodeKey:
        key = self.keys.open(pending.key)
        if isinstance(key, KeyUnavailable):
            raise TryLater(Message.KEY_UNAVAILABLE, why=key.why)
        if isinstance(key, KeyState):
            raise self._unreadable("holds no usable key")
        if key.spki == _requested(pending.csr):
            return key
        if key.kind is KeyKind.TPM:
            raise self._unreadable("the TPM derives another key than the one it asks for (was the TPM cleared?)")
        raise self._unreadable("holds another key than the one it asks for")

    def _unreadable(self, why: object) -> MustJoinAgain:
        return MustJoinAgain(Message.PENDING_UNREADABLE, path=f"{self.path}/{PENDING}", why=why)


def _requested(request: bytes) -> bytes | None:
    try:
        return csr.key_of(request)
    except csr.MalformedCsr:
        return None
