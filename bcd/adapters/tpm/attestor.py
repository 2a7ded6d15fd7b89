"""Port `Attestor` by the client: evidence, the answer to a challenge, and certifications by the attestation key."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from bcd.adapters.tpm import failures, pcrs
from bcd.adapters.tpm.client import AnotherKey, Client, Key, node_key
from bcd.adapters.tpm.endorsement import ECC_P256_INDEX, PERSISTENT_RSA, RSA_2048_INDEX, chain, persistent, stored
from bcd.adapters.tpm.failures import Refusal
from bcd.adapters.tpm.keys import p1363
from bcd.domain.model.attestation import (
    Attestation,
    ChallengeAnswer,
    JoinChallenge,
    KeyAttestation,
    OfferedKey,
    TpmChallenge,
    TpmEvidence,
)
from bcd.domain.model.failures import Failure
from bcd.domain.model.tpm import Stored
from bcd.ports.events import Events
from bcd.protocol.pki import ek_certificate
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import (
    ActivateCredentialIn,
    AttestOut,
    CertifyIn,
    FlushContextIn,
    PolicySecretIn,
    QuoteIn,
    StartAuthSessionIn,
)
from bcd.protocol.tpm2.structures import (
    EMPTY_PASSWORD,
    Algorithm,
    Attest,
    Handle,
    PcrSelection,
    Public,
    QuoteInfo,
    Scheme,
    Symmetric,
    policy,
)
from bcd.protocol.tpm2.wire import Malformed, decode, encode

AK = Key(Handle.ENDORSEMENT, templates.AK)
RSA_EK = Key(Handle.ENDORSEMENT, templates.EK_RSA_2048)
ECC_EK = Key(Handle.ENDORSEMENT, templates.EK_ECC_P256)
# TPM_SE_POLICY (Part 2, 6.11).
_POLICY_SESSION = 0x01
_NONCE_BYTES = 16
# The attestation key has its scheme, and nothing else may be asked of it.
_OWN_SCHEME = Scheme(Algorithm.NULL, None)
# What a TPM that does not have P-256, or what goes with it in the template, says of that.
_NO_SUCH_KEY = frozenset({
    Rc.ASYMMETRIC, Rc.CURVE, Rc.HASH, Rc.KDF, Rc.KEY_SIZE, Rc.MODE, Rc.SCHEME, Rc.SYMMETRIC, Rc.TYPE, Rc.VALUE,
})  # fmt: skip
# How often a quote is made anew because a PCR moved between it and the reading of the values.
_QUOTES = 3

T = TypeVar("T")


class LinkedAttestor:
    """The TPM behind `client`. Between evidence and answer it remembers which endorsement keys it offered."""

    def __init__(self, client: Client, events: Events) -> None:
        self._client = client
        self._events = events
        self._offered: dict[bytes, Key | int] = {}

    def evidence(self, unique: bytes | None) -> TpmEvidence:
        return self._asked(lambda: self._evidence(unique))

    def answer(self, challenge: JoinChallenge, unique: bytes | None, csr_sha256: bytes) -> ChallengeAnswer:
        def prove() -> ChallengeAnswer:
            secret = self._activate(challenge.tpm)
            quote, values = self._quote(challenge.tpm)
            certified = self._certify(unique, csr_sha256)[0] if unique is not None else None
            return ChallengeAnswer(challenge.id, secret, quote, values, certified)

        return self._asked(prove)

    def ak_name(self) -> bytes:
        return self._asked(lambda: names.name(self._client.load(AK).public))

    def certify(self, unique: bytes, csr_sha256: bytes) -> KeyAttestation:
        certification, key, ak = self._asked(lambda: self._certify(unique, csr_sha256))
        return KeyAttestation(encode(ak), encode(key), certification)

    def release(self) -> None:
        with suppress(Failure):
            for key in (AK, RSA_EK, ECC_EK):
                self._client.release(key)

    def _evidence(self, unique: bytes | None) -> TpmEvidence:
        # Never another key after a read error: the machine would be another one to the control plane.
        rsa, ecc = (stored(self._client, index) for index in (RSA_2048_INDEX, ECC_P256_INDEX))
        others = self._ecc(ecc)
        # Last, and kept for the challenge: to derive it takes a chip seconds.
        offered = self._offer(RSA_EK, rsa)
        return TpmEvidence(
            endorsement_keys=(offered, *others),
            ek_chain=chain(self._client),
            pcr_banks=pcrs.banks(self._client),
            ak_public=encode(self._client.load(AK).public),
            node_key_public=encode(self._client.load(node_key(unique)).public) if unique is not None else b"",
        )

    def _ecc(self, certificate: Stored | None) -> list[OfferedKey]:
        try:
            offered = self._offer(ECC_EK, certificate)
        except Refusal as refusal:
            # It has the RSA key. What fails for another reason may be the one key that the control plane knows.
            if certificate is None and refusal.code.base in _NO_SUCH_KEY:
                return []
            raise
        # Each object that is held slows every command down, and three are all there is room for.
        self._client.release(ECC_EK)
        return [offered]

    def _offer(self, key: Key, certificate: Stored | None) -> OfferedKey:
        where: Key | int = PERSISTENT_RSA
        public = persistent(self._client, key.template, certificate)
        if public is None:
            public, where = self._client.load(key).public, key
        self._offered[names.name(public)] = where
        return OfferedKey(encode(public), self._cut(certificate))

    def _cut(self, certificate: Stored | None) -> bytes:
        if certificate is None:
            return b""
        try:
            der = ek_certificate.read(certificate.data).der
        except ek_certificate.Malformed as error:
            self._events.warning("the endorsement certificate is odd, and sent as it is", why=error)
            return certificate.data[: ek_certificate.MAX_BYTES]
        if der != certificate.data:
            self._events.info("the endorsement certificate has something around it, which is not sent")
        return der

    def _activate(self, challenge: TpmChallenge) -> bytes:
        """What only this TPM can read: endorsement key and attestation key are both in it (Part 3, 12.5)."""
        endorsement = self._offered[challenge.ek_name]
        nonce = os.urandom(_NONCE_BYTES)
        wanted = StartAuthSessionIn(nonce, b"", _POLICY_SESSION, Symmetric(Algorithm.NULL, None), Algorithm.SHA256)
        (session,) = self._client.run(commands.START_AUTH_SESSION, (Handle.NULL, Handle.NULL), wanted).handles
        try:
            self._client.run(commands.POLICY_SECRET, (Handle.ENDORSEMENT, session), PolicySecretIn(b"", b"", b"", 0))
            answer, _ = self._client.use(
                (AK, endorsement),
                commands.ACTIVATE_CREDENTIAL,
                ActivateCredentialIn(challenge.credential, challenge.encrypted_secret),
                (EMPTY_PASSWORD, policy(session)),
            )
        except BaseException:
            # Used up by a success, kept after a failure; three are all there are.
            with suppress(Failure, Refusal):
                self._client.run(commands.FLUSH_CONTEXT, (), FlushContextIn(session))
            raise
        for key in (RSA_EK, ECC_EK):
            self._client.release(key)
        return answer.parameters.secret

    def _quote(self, challenge: TpmChallenge) -> tuple[Attestation, tuple[bytes, ...]]:
        selection = (PcrSelection(challenge.pcr_bank, challenge.pcr_selection),)
        wanted = QuoteIn(challenge.nonce, _OWN_SCHEME, selection)
        for _ in range(_QUOTES):
            answer, _ = self._client.use((AK,), commands.QUOTE, wanted)
            quoted = decode(Attest, answer.parameters.attest).attested
            # A bank that is not there is quoted all the same, as an empty selection.
            if not isinstance(quoted, QuoteInfo) or quoted.pcrs != selection:
                raise self._client.failed(commands.QUOTE, "quoted other PCRs than it was asked for")
            values = pcrs.values(self._client, selection[0])
            if pcrs.digest(values) == quoted.pcr_digest:
                return _attestation(answer.parameters), values
        raise self._client.failed(commands.QUOTE, f"a PCR moved under it {_QUOTES} times")

    def _certify(self, unique: bytes, csr_sha256: bytes) -> tuple[Attestation, Public, Public]:
        wanted = CertifyIn(csr_sha256, _OWN_SCHEME)
        answer, (key, ak) = self._client.use((node_key(unique), AK), commands.CERTIFY, wanted)
        return _attestation(answer.parameters), key, ak

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except Refusal as refusal:
            raise failures.of_code(refusal, self._client.device) from None
        except (AnotherKey, Malformed) as error:
            raise failures.failed(self._client.device, "attestation", str(error)) from None


def _attestation(answer: AttestOut) -> Attestation:
    return Attestation(answer.attest, p1363(answer.signature.ecdsa))
