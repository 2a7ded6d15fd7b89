"""A machine that joins by its TPM: what the TPM behind a client shows, with no judgement of its own."""

from dataclasses import dataclass, field
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from bcd.adapters.tpm.client import Client, Key
from bcd.domain.model.attestation import Attestation, ChallengeAnswer, OfferedKey, TpmChallenge, TpmEvidence
from bcd.protocol.pki import csr, der
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.commands import (
    ActivateCredentialIn,
    CertifyIn,
    FlushContextIn,
    PcrReadIn,
    PolicySecretIn,
    QuoteIn,
    SignIn,
    StartAuthSessionIn,
)
from bcd.protocol.tpm2.structures import (
    EMPTY_PASSWORD,
    NO_HASH_CHECK,
    Algorithm,
    Handle,
    PcrSelection,
    Public,
    Scheme,
    Signature,
    Symmetric,
    policy,
)
from bcd.protocol.tpm2.wire import encode

RSA_EK = Key(Handle.ENDORSEMENT, templates.EK_RSA_2048)
ECC_EK = Key(Handle.ENDORSEMENT, templates.EK_ECC_P256)
AK = Key(Handle.ENDORSEMENT, templates.AK)
_NULL = Scheme(Algorithm.NULL, None)
_POLICY_SESSION = 0x01


def p1363(signature: Signature) -> bytes:
    r, s = (int.from_bytes(half) for half in (signature.ecdsa.r, signature.ecdsa.s))
    return r.to_bytes(32) + s.to_bytes(32)


def _halves(signature: bytes) -> tuple[bytes, bytes]:
    return signature[:32], signature[32:]


def _length(content: bytes) -> bytes:
    return bytes([len(content)]) if len(content) < 0x80 else b"\x81" + bytes([len(content)])


def _sequence(*parts: bytes) -> bytes:
    content = b"".join(parts)
    return b"\x30" + _length(content) + content


@dataclass
class TpmMachine:
    """`unique` names the node key. Keys are flushed before each step: three slots are all a TPM has. `known`: public
    areas, as an RSA key takes a TPM a second."""

    client: Client
    unique: bytes = bytes(range(32))
    known: dict[Key, Public] = field(default_factory=dict)

    @property
    def node_key(self) -> Key:
        return Key(Handle.OWNER, templates.node_key(self.unique))

    def again(self) -> "TpmMachine":
        """The same machine with another node key."""
        return TpmMachine(self.client, sha256(self.unique).digest(), self.known)

    def public(self, key: Key) -> Public:
        if key not in self.known:
            self._free()
            self.known[key] = self.client.load(key).public
        return self.known[key]

    def evidence(self, certificates: dict[Key, bytes] | None = None, *, node_key: bool = True) -> TpmEvidence:
        given = certificates or {}
        return TpmEvidence(
            endorsement_keys=tuple(
                OfferedKey(encode(self.public(key)), given.get(key, b"")) for key in (RSA_EK, ECC_EK)
            ),
            ek_chain=(),
            pcr_banks=(Algorithm.SHA256,),
            ak_public=encode(self.public(AK)),
            node_key_public=encode(self.public(self.node_key)) if node_key else b"",
        )

    def answer(self, id_: str, challenge: TpmChallenge, csr_sha256: bytes, *, node_key: bool = True) -> ChallengeAnswer:
        selection = (PcrSelection(challenge.pcr_bank, challenge.pcr_selection),)
        return ChallengeAnswer(
            id=id_,
            secret=self.activate(challenge),
            quote=self.quote(challenge.nonce, selection),
            pcr_values=self.pcrs(selection),
            certification=self.certify(csr_sha256) if node_key else None,
        )

    def activate(self, challenge: TpmChallenge) -> bytes:
        key = next(key for key in (RSA_EK, ECC_EK) if names.name(self.public(key)) == challenge.ek_name)
        self._free()
        client = self.client
        started = client.run(
            commands.START_AUTH_SESSION,
            (Handle.NULL, Handle.NULL),
            StartAuthSessionIn(bytes(16), b"", _POLICY_SESSION, Symmetric(Algorithm.NULL, None), Algorithm.SHA256),
        )
        (session,) = started.handles
        try:
            client.run(commands.POLICY_SECRET, (Handle.ENDORSEMENT, session), PolicySecretIn(b"", b"", b"", 0))
            wanted = ActivateCredentialIn(challenge.credential, challenge.encrypted_secret)
            given = (EMPTY_PASSWORD, policy(session))
            return client.use((AK, key), commands.ACTIVATE_CREDENTIAL, wanted, given)[0].parameters.secret
        except BaseException:
            client.run(commands.FLUSH_CONTEXT, (), FlushContextIn(session))
            raise

    def quote(self, nonce: bytes, selection: tuple[PcrSelection, ...], key: Key = AK) -> Attestation:
        self._free()
        scheme = _NULL if key == AK else Scheme(Algorithm.ECDSA, Algorithm.SHA256)
        answer, _ = self.client.use((key,), commands.QUOTE, QuoteIn(nonce, scheme, selection))
        return Attestation(answer.parameters.attest, p1363(answer.parameters.signature))

    def pcrs(self, selection: tuple[PcrSelection, ...]) -> tuple[bytes, ...]:
        """At most eight: what one answer holds."""
        return self.client.run(commands.PCR_READ, (), PcrReadIn(selection)).parameters.values

    def certify(self, qualifying_data: bytes, key: Key | None = None, by: Key = AK) -> Attestation:
        self._free()
        scheme = _NULL if by == AK else Scheme(Algorithm.ECDSA, Algorithm.SHA256)
        wanted = CertifyIn(qualifying_data, scheme)
        answer, _ = self.client.use((key or self.node_key, by), commands.CERTIFY, wanted)
        return Attestation(answer.parameters.attest, p1363(answer.parameters.signature))

    def sign(self, digest: bytes, key: Key | None = None) -> bytes:
        """ECDSA over the digest by the node key, P1363."""
        self._free()
        wanted = SignIn(digest, Scheme(Algorithm.ECDSA, Algorithm.SHA256), NO_HASH_CHECK)
        answer, _ = self.client.use((key or self.node_key,), commands.SIGN, wanted)
        return p1363(answer.parameters.signature)

    def csr(self) -> bytes:
        """PKCS#10 of the node key, DER: a request for some other key, with this one's key and signature in it."""
        other = csr.make_csr(ec.generate_private_key(ec.SECP256R1()))
        info, algorithm, _ = der.children(other)
        version, subject, _, attributes = der.children(info)
        info = _sequence(version, subject, names.spki(self.public(self.node_key)), attributes)
        r, s = (int.from_bytes(half) for half in _halves(self.sign(sha256(info).digest())))
        signature = b"\x00" + encode_dss_signature(r, s)
        return _sequence(info, algorithm, b"\x03" + _length(signature) + signature)

    def _free(self) -> None:
        for key in (RSA_EK, ECC_EK, AK, self.node_key):
            self.client.release(key)
