"""Joining: one request, kept until it is answered, and the answer stored so that no cut splits key and certificate."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from bcd.domain.lifecycle.attest import TPM, Attest
from bcd.domain.lifecycle.hand_over import HandOver
from bcd.domain.lifecycle.load import Load
from bcd.domain.lifecycle.set_aside import set_journal_aside
from bcd.domain.model import datadir
from bcd.domain.model.attestation import ChallengeAnswer, TpmEvidence
from bcd.domain.model.datadir import IDENTITY, JOIN_RECORD, KEY, MAX_FILE_BYTES, NEXT_KEY, PENDING
from bcd.domain.model.failures import FixConfiguration, Message, MustJoinAgain, NotThereYet, Refused, TryLater
from bcd.domain.model.identity import Identity
from bcd.domain.model.joining import (
    AskAgain,
    Check,
    Denied,
    GiveUp,
    Progress,
    Prove,
    Unanswered,
    next_step,
)
from bcd.domain.model.keys import KeyKind, KeyState, KeyUnavailable
from bcd.domain.model.loading import Loaded, NotJoined
from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.pending import PendingJoin, SealedToken
from bcd.domain.model.pins import Pins
from bcd.ports.clock import Clock
from bcd.ports.credential import CredentialSource
from bcd.ports.entropy import Entropy
from bcd.ports.events import Events
from bcd.ports.fs import Fs
from bcd.ports.hardware import Hardware
from bcd.ports.join_transport import JoinQuestion, JoinTransport
from bcd.ports.journal import CorruptJournal, Journal, JournalOf, NoJournal
from bcd.ports.keys import KeyStore, NodeKey
from bcd.protocol.files import identity_json, join_pending
from bcd.protocol.files.encoding import MalformedFile
from bcd.protocol.pki import csr, join_response, seal

# Decision 3: how long a join waits for another writer.
LOCK_WAIT_S = 45.0
# How often a TPM that is not there yet is looked for.
TPM_LOOK_S = 0.2
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
class Joined:
    """`already`: the identity was there before, and no credential was read."""

    identity: Identity
    kind: KeyKind
    already: bool


T = TypeVar("T")
# The request, its key, and what the TPM showed for a join by TPM.
_Request = tuple[PendingJoin, NodeKey, TpmEvidence | None]


@dataclass(frozen=True)
class Join:
    """`fs` is the data directory; `record` the helper's, or None without `[helper]`. `recipient` reads the sealing key
    when a token is to be sealed, and not before. `check_directory` raises FixConfiguration for a data directory that
    others can get into: no key is to be born there. `tpm_wait_s` is how long a TPM that the identity needs is waited
    for, since a device may show up late in a boot."""

    fs: Fs
    path: str
    record: Fs | None
    load: Load
    hand_over: HandOver
    keys: KeyStore
    attest: Attest
    transport: JoinTransport
    credential: CredentialSource
    recipient: Callable[[], seal.Recipient]
    hardware: Hardware
    journal: Journal
    signing_pins: Pins
    clock: Clock
    entropy: Entropy
    events: Events
    version: str
    check_directory: Callable[[], None] = lambda: None
    tpm_wait_s: float = 0.0

    def __call__(self, wanted: Wanted) -> Joined:
        """The identity of this machine, there already or new and durable. Any Failure leaves what was on disk."""
        with self.fs.lock(LOCK_WAIT_S):
            match self._found():
                case NotJoined() as found:
                    pass
                case Loaded(identity, kind):
                    return self._already(identity, kind, wanted)
            self.check_directory()
            pending, key, evidence = self._resume(wanted) or self._begin(wanted)
            response = self._ask(pending, key, evidence)
            identity = Identity(response.leaf, response.chain, response.trust, response.server_time)
            self._store(identity, key, response.signed, found)
            self._put_in_order()
            self.credential.spent()
            return Joined(identity, key.kind, already=False)

    def _found(self) -> Loaded | NotJoined:
        """What is there, once the TPM that it needs is."""
        return self._once_the_tpm_is_there(self.load, self.tpm_wait_s)

    def _once_the_tpm_is_there(self, ask: Callable[[], T], wait_s: float) -> T:
        until_s = self.clock.boottime_s() + wait_s
        told = ""
        while True:
            try:
                return ask()
            except TryLater as failure:
                absent = isinstance(failure, NotThereYet) or failure.message is Message.TPM_ABSENT
                if not absent or self.clock.boottime_s() >= until_s:
                    raise
                if failure.text != told:
                    told = failure.text
                    self.events.info("waiting for the TPM", why=told)
            self.clock.wait(TPM_LOOK_S)

    def _already(self, identity: Identity, kind: KeyKind, wanted: Wanted) -> Joined:
        if wanted.node_id is not None and wanted.node_id != identity.node_id:
            raise Refused(Message.OTHER_NODE, node=identity.node_id, wanted=wanted.node_id)
        self._put_in_order()
        self.credential.spent()
        return Joined(identity, kind, already=True)

    def _put_in_order(self) -> None:
        try:
            self.hand_over()
            # Left by a cut between the last two lines of _store.
            self.fs.remove(PENDING)
        except TryLater as error:
            # A join unit runs at every boot, also from a read-only root: the identity is there and works.
            self.events.warning("joined, but the files could not be put in order", why=error.text)

    def _resume(self, wanted: Wanted) -> _Request | None:
        """The request an interrupted join left, if there is one: it goes on without a token."""
        data = self.fs.read(PENDING, MAX_FILE_BYTES)
        if data is None:
            return None
        try:
            pending = join_pending.decode(data)
        except MalformedFile as error:
            raise MustJoinAgain(Message.PENDING_UNREADABLE, path=f"{self.path}/{PENDING}", why=error) from None
        if pending.node_id != wanted.node_id:
            have, want = (node or "any" for node in (pending.node_id, wanted.node_id))
            raise FixConfiguration(Message.PENDING_OTHER, what="node id", have=have, want=want)
        if pending.role is not wanted.role:
            raise FixConfiguration(Message.PENDING_OTHER, what="role", have=pending.role, want=wanted.role)
        if wanted.attestor is not None and (wanted.attestor == TPM) != (pending.attestor == TPM):
            raise FixConfiguration(Message.PENDING_OTHER, what="attestor", have=pending.attestor, want=wanted.attestor)
        self.events.info("resuming the join that was begun; no token is read", begun=pending.begun)
        key = self._key_of(pending)
        return pending, key, self.attest.evidence(key) if pending.attestor == TPM else None

    def _begin(self, wanted: Wanted) -> _Request:
        return self._begin_by_tpm(wanted) if wanted.attestor == TPM else self._begin_by_token(wanted)

    def _begin_by_tpm(self, wanted: Wanted) -> _Request:
        # First of all: a key made before a TPM shows up late in a boot would be a file for no reason. Who asks at a
        # machine that has been up for long is told at once.
        late = self.clock.boottime_s() < BOOT_S
        self._once_the_tpm_is_there(self.attest.attestor.ak_name, self.tpm_wait_s if late else 0.0)
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
        return pending, key, evidence

    def _begin_by_token(self, wanted: Wanted) -> _Request:
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
        return pending, key, None

    def _key_of(self, pending: PendingJoin) -> NodeKey:
        key = self.keys.open(pending.key)
        if isinstance(key, KeyUnavailable):
            raise TryLater(Message.KEY_UNAVAILABLE, why=key.why)
        if isinstance(key, KeyState):
            why = "holds no usable key"
        elif key.spki == _requested(pending.csr):
            return key
        elif key.kind is KeyKind.TPM:
            why = "the TPM derives another key than the one it asks for (was the TPM cleared?)"
        else:
            why = "holds another key than the one it asks for"
        raise MustJoinAgain(Message.PENDING_UNREADABLE, path=f"{self.path}/{PENDING}", why=why)

    def _ask(self, pending: PendingJoin, key: NodeKey, evidence: TpmEvidence | None) -> join_response.JoinResponse:
        progress = Progress(pending_id=pending.pending_id)
        claims = self.hardware.claims()
        proof: ChallengeAnswer | None = None
        while True:
            answer = self.transport.join(JoinQuestion(pending, claims, self.version, evidence, proof))
            match next_step(progress, answer, self.entropy.fraction()):
                case Check(signed):
                    return self._check(signed, pending, key)
                case AskAgain(following, wait_s):
                    if following.pending_id != pending.pending_id:
                        pending = replace(pending, pending_id=following.pending_id)
                        self.fs.write(PENDING, join_pending.encode(pending))
                    self._tell(following, answer, wait_s)
                    if following.pending_id and not following.failures:
                        # After an approval there is another challenge: the answer to the one before is stale.
                        proof = None
                        # A person takes hours: others may want the room in the TPM.
                        self.attest.attestor.release()
                    progress = following
                    self.clock.wait(wait_s)
                case Prove(following, challenge, lasts_s):
                    proof = self.attest(challenge, lasts_s, evidence, key, pending.csr)
                    progress = following
                case Unanswered(why):
                    raise TryLater(Message.CHALLENGE, why=why)
                case Denied(refusal_id):
                    # The same request would be refused for ever; the next join begins anew.
                    self.fs.move_aside(PENDING, datadir.refused_name(self.clock.now()))
                    refused = Message.JOIN_REFUSED if evidence is None else Message.TPM_JOIN_REFUSED
                    raise Refused(refused, id=refusal_id or "none given")
                case GiveUp(attempts, last, asked_to):
                    raise TryLater(Message.NO_RETRY if asked_to else Message.GAVE_UP, attempts=attempts, last=last)

    def _tell(self, progress: Progress, answer: object, wait_s: float) -> None:
        if progress.failures:
            why = getattr(answer, "why", "")
            self.events.warning("join attempt failed", attempt=progress.failures, why=why, next_in_s=round(wait_s, 1))
        else:
            self.events.info("waiting for approval", id=progress.pending_id, next_in_s=round(wait_s, 1))

    def _check(self, signed: bytes, pending: PendingJoin, key: NodeKey) -> join_response.JoinResponse:
        expected = join_response.Expected(pending.csr, key.spki, pending.role, pending.node_id, self.signing_pins)
        try:
            return join_response.open_join_response(signed, expected)
        except join_response.SigningKeyIsAnother as error:
            raise self._signing_pin(error) from None
        except join_response.DoesNotVerify as error:
            raise TryLater(Message.BAD_ANSWER, number=error.number, why=error.why) from None

    def _signing_pin(self, error: join_response.SigningKeyIsAnother) -> FixConfiguration:
        return FixConfiguration(Message.SIGNING_PIN, have=self.signing_pins, presented=error.presented)

    def _store(self, identity: Identity, key: NodeKey, signed: bytes, found: NotJoined) -> None:
        """Durable in this order; a cut after any line leaves either the pending join or the whole identity."""
        # Root's record first: an identity without it would be one the helper does not know.
        if self.record is not None:
            with self.record.lock(LOCK_WAIT_S):
                self.record.write(JOIN_RECORD, signed)
        # Another node's journal would be refused by this node.
        self._set_journal_aside(identity.node_id)
        # A key that no identity stands beside may be all that is left of one.
        if found.orphan_key:
            self.fs.move_aside(KEY, datadir.orphan_name(KEY, self.clock.now()))
        # Left by a renewal of an identity that is no more.
        self.fs.remove(NEXT_KEY)
        # The key before the certificate, under the name a load promotes it from once the certificate is there.
        self.fs.write(NEXT_KEY, key.record)
        # From here on this machine has joined.
        self.fs.write(IDENTITY, identity_json.encode(identity))
        self.fs.rename(NEXT_KEY, KEY)
        # Last: until now a cut could have needed it to ask again.
        self.fs.remove(PENDING)

    def _set_journal_aside(self, node: NodeId) -> None:
        now = self.clock.now()
        match self.journal.look():
            case JournalOf(owner) if owner is not None and owner != node:
                new_name = datadir.other_nodes_journal(owner, now)
            case CorruptJournal(why):
                self.events.warning("the journal is corrupt and is set aside", why=why)
                new_name = datadir.corrupt_name(datadir.JOURNAL, now)
            case JournalOf() | NoJournal():
                return
        set_journal_aside(self.fs, new_name)


def _requested(request: bytes) -> bytes | None:
    try:
        return csr.key_of(request)
    except csr.MalformedCsr:
        return None
