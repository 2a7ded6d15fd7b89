"""Port `KeyStore` for keys in files: PKCS#8, made and held by the cryptography package."""

from cryptography.hazmat.primitives.asymmetric import ec

from bcd.domain.model.failures import Message, TryLater
from bcd.domain.model.keys import Hash, KeyKind, KeyMalformed, KeyState, KeyUnasked, KeyUnavailable
from bcd.ports.keys import NodeKey
from bcd.protocol.files import node_key
from bcd.protocol.files.encoding import MalformedFile
from bcd.protocol.pki import csr, ecdsa


class FileKey:
    """A P-256 key in memory and, as its record, in a file."""

    kind = KeyKind.FILE

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "FileKey(…)"

    @property
    def spki(self) -> bytes:
        return ecdsa.spki_of(self._key.public_key())

    @property
    def record(self) -> bytes:
        return node_key.encode_file_key(self._key)

    def sign(self, message: bytes, digest: Hash = Hash.SHA256) -> bytes:
        return ecdsa.sign(self._key, message, digest)

    def request(self) -> bytes:
        return csr.make_csr(self._key)

    def release(self) -> None:
        return


_NO_TPM = KeyUnavailable("this process uses no TPM: run it where the key was made")


class FileKeys:
    """Makes and opens file keys. A TPM record is told apart from a broken file: nothing may call it a mismatch.
    `record` is what it is to whoever asks no TPM."""

    def __init__(self, record: KeyUnavailable | KeyUnasked = _NO_TPM) -> None:
        self._record = record

    def create(self) -> FileKey:
        return FileKey(ec.generate_private_key(ec.SECP256R1()))

    def create_in_tpm(self) -> NodeKey:
        why = self._record.why if isinstance(self._record, KeyUnavailable) else _NO_TPM.why
        raise TryLater(Message.KEY_UNAVAILABLE, why=why)

    def open(self, record: bytes) -> FileKey | KeyState:
        try:
            key = node_key.decode(record)
        except MalformedFile as error:
            return KeyMalformed(str(error), len(record))
        if isinstance(key, node_key.TpmRecord):
            return self._record
        return FileKey(key)
