"""Ports `NodeKey` and `KeyStore` for keys in the machine's TPM; what keeps them is a record of 32 bytes."""

import secrets

from bcd.adapters.keys.file import FileKey, FileKeys
from bcd.domain.model.failures import Failure, Message, TryLater
from bcd.domain.model.keys import Hash, KeyKind, KeyMalformed, KeyState, KeyUnavailable
from bcd.ports.events import Events
from bcd.ports.keys import NodeKey
from bcd.ports.tpm import TpmKeys
from bcd.protocol.files import node_key
from bcd.protocol.files.encoding import MalformedFile
from bcd.protocol.pki import csr, ecdsa
from bcd.protocol.pki.outside_key import OutsideKey


class TpmKey:
    """A P-256 key that a TPM derives from its record when it is needed; `spki` is what it was when it was first
    asked."""

    kind = KeyKind.TPM

    def __init__(self, tpm: TpmKeys, record: node_key.TpmRecord, spki: bytes) -> None:
        self._tpm = tpm
        self._record = record
        self._spki = spki
        self._request = b""

    def __repr__(self) -> str:
        return "TpmKey(…)"

    @property
    def spki(self) -> bytes:
        return self._spki

    @property
    def record(self) -> bytes:
        return node_key.encode_tpm_record(self._record)

    def sign(self, message: bytes, digest: Hash = Hash.SHA256) -> bytes:
        signature = self._tpm.sign(self._record.unique, message, digest)
        # A TPM that was cleared signs as well, as another key.
        if not ecdsa.verifies(ecdsa.public_key(self._spki), message, signature, digest):
            raise TryLater(Message.KEY_MISMATCH_TPM)
        return signature

    def request(self) -> bytes:
        # Once: each signature costs a chip half a second.
        self._request = self._request or csr.make_csr(OutsideKey(self._spki, self.sign))
        return self._request

    def release(self) -> None:
        try:
            self._tpm.release(self._record.unique)
        except Failure:
            # A TPM that does not answer has nothing of ours to give back.
            return


class HostKeys:
    """New keys in the TPM, or in a file where there is none that takes one, with a warning that says why. Opens both
    kinds. `makes`: whether new keys go into the TPM at all; `named`: somebody said which TPM, so that one is missing
    where there is none."""

    def __init__(self, tpm: TpmKeys, events: Events, *, makes: bool = True, named: bool = False) -> None:
        self._tpm = tpm
        self._makes = makes
        self._named = named
        self._files = FileKeys()
        self._events = events
        self._warned: set[str] = set()

    def create(self) -> NodeKey:
        if not self._makes:
            return self._files.create()
        try:
            return self.create_in_tpm()
        except Failure as failure:
            self._warn(failure)
            return self._files.create()

    def create_in_tpm(self) -> NodeKey:
        record = node_key.TpmRecord(secrets.token_bytes(node_key.UNIQUE_BYTES))
        key = TpmKey(self._tpm, record, self._tpm.node_key(record.unique))
        # One that is derived and does not sign would be found out when it is the only one.
        key.request()
        return key

    def open(self, record: bytes) -> NodeKey | KeyState:
        try:
            found = node_key.decode(record)
        except MalformedFile as error:
            return KeyMalformed(str(error), len(record))
        if not isinstance(found, node_key.TpmRecord):
            return FileKey(found)
        try:
            return TpmKey(self._tpm, found, self._tpm.node_key(found.unique))
        except Failure as failure:
            return KeyUnavailable(failure.text, absent=failure.message is Message.TPM_ABSENT)

    def _warn(self, failure: Failure) -> None:
        if failure.text in self._warned:
            return
        self._warned.add(failure.text)
        if failure.message is Message.TPM_ABSENT and not self._named:
            self._events.info("the node key is a file: this machine has no TPM 2.0", why=failure.text)
        else:
            self._events.warning("the node key is a file: the TPM cannot hold it", why=failure.text)
