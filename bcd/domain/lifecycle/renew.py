"""One attempt to replace key and certificate (specification, "Renewal", `renewOnce`)."""

from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from bcd.domain.lifecycle.attest import name_of
from bcd.domain.lifecycle.change_identity import ChangeIdentity
from bcd.domain.model.attestation import KeyAttestation
from bcd.domain.model.datadir import IDENTITY, KEY, LOCK_WAIT_S, MAX_FILE_BYTES, NEXT_KEY
from bcd.domain.model.failures import Failure, Message, MustJoinAgain, TryLater
from bcd.domain.model.identity import Identity, Leaf
from bcd.domain.model.keys import KeyKind, KeyState
from bcd.domain.model.pins import Pins
from bcd.ports.attestor import Attestor
from bcd.ports.fs import Fs
from bcd.ports.gateway import Connection, Ended, Pair, Renewed, RenewQuestion, Retired, Revoked
from bcd.ports.keys import KeyStore, NodeKey
from bcd.protocol.files import identity_json, node_key
from bcd.protocol.files.encoding import MalformedFile
from bcd.protocol.pki import issued, renew_pop, renew_response

# The next key twice and identity.json, each as a temporary file beside what it replaces: some 10 KiB with a long chain.
ROOM_BYTES = 16 << 10


@dataclass(frozen=True)
class NextKey:
    """The key a renewal is certifying. Kept between the attempts of a process: the same request gets the same answer
    again, and a new one each time would use the node's quota up. `attestation` is the attestation key's word for it."""

    key: NodeKey
    csr: bytes
    attestation: KeyAttestation | None = None


@dataclass(frozen=True)
class NewPair:
    """Stored, durable, and to be used from the next dial on."""

    pair: Pair
    identity: Identity
    server_time: datetime


@dataclass(frozen=True)
class NotRenewed:
    """This attempt did not do it; the old pair is untouched. `next_key` is for the next attempt."""

    ended: Ended
    next_key: NextKey | None


RenewOutcome = NewPair | NotRenewed | Revoked | Retired


@dataclass(frozen=True)
class Renew:
    fs: Fs
    keys: KeyStore
    attestor: Attestor
    change: ChangeIdentity
    signing_pins: Pins

    def __call__(
        self, pair: Pair, connection: Connection, client_time: datetime, next_key: NextKey | None
    ) -> RenewOutcome:
        """The new pair, or why there is none. IdentityChanged when the disk holds another identity than `pair`;
        TryLater when it cannot be written; nothing is sent in either case, or nothing stored."""
        with self.fs.lock(LOCK_WAIT_S):
            # Before anything is written: a reset or another process may have put another identity there.
            self.change.stored(pair.leaf)
            self._check_room()
            chosen = next_key or self._choose(pair.leaf)
            self._promote(pair, chosen)
            # Durable before the request leaves: once the server has signed, this key is the only one its certificate
            # is good for.
            self.fs.write(NEXT_KEY, chosen.key.record)
            chosen = self._certified(pair.leaf, chosen)
            answer = connection.renew(self._question(pair, chosen, client_time))
            match answer:
                case Renewed():
                    return self._take(pair, chosen, answer)
                case Ended():
                    # A key that somebody else had certified first (a copy of this disk, in the middle of a renewal) is
                    # declined for ever: kept, it would let this certificate end and the copy's live.
                    return NotRenewed(answer, None if answer.declined else chosen)
                case Revoked() | Retired():
                    return answer

    def _check_room(self) -> None:
        """Decision 11: what is asked for must have room to be stored. A look, not a reservation: should the room go
        meanwhile, the same request brings the same answer again."""
        directory = self.fs.look()
        if directory is not None and directory.free_bytes < ROOM_BYTES:
            raise TryLater(Message.NO_SPACE, path=f"{directory.path}/{IDENTITY}", free=directory.free_bytes)

    def _choose(self, leaf: Leaf) -> NextKey:
        if leaf.ak_name is None:
            key = self.keys.create()
        else:
            self._check_attestation_key(leaf.ak_name)
            try:
                key = self.keys.create_in_tpm()
            except Failure as failure:
                raise TryLater(Message.RENEWAL_NO_NEXT_KEY, why=failure.text) from None
        return NextKey(key, key.request())

    def _check_attestation_key(self, wanted: bytes) -> None:
        """Before anything is written or sent: there is no other way to renew a certificate that names one."""
        try:
            name = self.attestor.ak_name()
        except Failure as failure:
            raise TryLater(Message.RENEWAL_TPM_AWAY, why=failure.text) from None
        if name != wanted:
            raise MustJoinAgain(Message.RENEWAL_ANOTHER_AK)

    def _certified(self, leaf: Leaf, chosen: NextKey) -> NextKey:
        """With the attestation key's word for the next key, where the leaf names one."""
        unique = node_key.unique_of(chosen.key.record)
        if leaf.ak_name is None or chosen.attestation is not None or unique is None:
            return chosen
        try:
            attestation = self.attestor.certify(unique, sha256(chosen.csr).digest())
        except Failure as failure:
            raise TryLater(Message.RENEWAL_NOT_CERTIFIED, why=failure.text) from None
        self.attestor.release()
        # Its endorsement seed may have changed since the key was looked at.
        if name_of(attestation.ak_public) != leaf.ak_name:
            raise MustJoinAgain(Message.RENEWAL_ANOTHER_AK)
        return replace(chosen, attestation=attestation)

    def _question(self, pair: Pair, chosen: NextKey, client_time: datetime) -> RenewQuestion:
        proof = renew_pop.make_renew_pop(chosen.csr, pair.leaf.der, client_time, pair.key.spki, pair.key.sign)
        signed = proof.SerializeToString(deterministic=True)
        return RenewQuestion(chosen.csr, pair.chain, client_time, signed, chosen.attestation)

    def _promote(self, pair: Pair, chosen: NextKey) -> None:
        """Where a load could not put `node.key.next` in its place (a read-only disk), it is the only copy of the key
        in use, and about to be overwritten."""
        record = self.fs.read(NEXT_KEY, MAX_FILE_BYTES)
        if record is None or record == chosen.key.record:
            return
        if record == pair.key.record or self._is_file_key(record, pair.leaf):
            self.fs.rename(NEXT_KEY, KEY)

    def _is_file_key(self, record: bytes, leaf: Leaf) -> bool:
        """Whether it is the leaf's, in a file. A record in the TPM is told by its bytes: the TPM may be away, and each
        key that it derives costs it a place."""
        try:
            if node_key.unique_of(record) is not None:
                return False
        except MalformedFile:
            return False
        key = self.keys.open(record)
        return not isinstance(key, KeyState) and key.spki == leaf.spki

    def _take(self, pair: Pair, chosen: NextKey, answer: Renewed) -> NewPair | NotRenewed:
        expected = renew_response.Expected(chosen.csr, chosen.key.spki, pair.leaf, self.signing_pins)
        try:
            response = renew_response.open_renew_response(answer.signed, expected)
        except (issued.DoesNotVerify, issued.SigningKeyIsAnother) as error:
            # Asked again with another key: the same request would be answered the same way.
            return NotRenewed(Ended(f"renewal: {_why(error)}"), None)
        lost = _lost_meanwhile(pair.key, chosen.key)
        if lost:
            return NotRenewed(Ended(TryLater(Message.RENEWAL_NO_NEXT_KEY, why=lost).text), None)
        try:
            identity = self._store(pair, chosen, response)
        except Failure as failure:
            # The certificate is issued: the same request brings it again. Where identity.json was replaced already,
            # the next look at the disk finds that and loads anew.
            return NotRenewed(Ended(failure.text), chosen)
        # The reply's own time: the statement may be one that was made for an attempt before this.
        return NewPair(Pair(response.leaf, response.chain, chosen.key), identity, answer.server_time)

    def _store(self, pair: Pair, chosen: NextKey, response: renew_response.RenewResponse) -> Identity:
        held = self.change.stored(pair.leaf)
        # Again: something may have removed it while the server was asked.
        self.fs.write(NEXT_KEY, chosen.key.record)
        # From here on the new pair is the identity; a load promotes the key if the next line is never reached.
        # Version, roots, bundle and server time stay (specification): the Welcome that follows brings newer ones.
        identity = replace(held, leaf=response.leaf, chain=response.chain)
        self.fs.write(IDENTITY, identity_json.encode(identity))
        self.fs.rename(NEXT_KEY, KEY)
        return identity


def _lost_meanwhile(key: NodeKey, next_key: NodeKey) -> str:
    """Why a key in a file is not given up for `next_key` in the TPM; empty where it is. The server may have been asked
    for hours, and a TPM that was cleared or went away in that time would take along an identity that needed none."""
    if key.kind is not KeyKind.FILE or next_key.kind is not KeyKind.TPM:
        return ""
    try:
        next_key.sign(b"")
    except Failure as failure:
        cleared = failure.message is Message.KEY_MISMATCH_TPM
        return "the TPM derives another key from its record (was the TPM cleared?)" if cleared else failure.text
    return ""


def _why(error: Exception) -> str:
    match error:
        case renew_response.OtherKey() | renew_response.OtherIdentity():
            return error.why
        case issued.DoesNotVerify():
            return f"the answer does not verify ({error})"
    return f"the answer is {error}, which is not join_signing_key_pin"
