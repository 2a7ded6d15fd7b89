"""What a forger may change of evidence and of its proof, one thing at a time, and the check that is against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from bcd.controlplane.domain.joining import JoinRequest
from bcd.domain.model.attestation import Attestation, ChallengeAnswer, JoinChallenge, OfferedKey, TpmEvidence
from bcd.protocol.tpm2 import names
from bcd.protocol.tpm2.attest import Check
from bcd.protocol.tpm2.structures import (
    Algorithm,
    Attribute,
    Cipher,
    EccParameters,
    PcrSelection,
    Point,
    Public,
    RsaParameters,
    Scheme,
    Symmetric,
)
from bcd.protocol.tpm2.wire import decode, encode
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.forged import Forger, with_key

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


@dataclass
class Case:
    """A forger who got the right challenge and has the right answer to it."""

    plane: MemoryControlPlane
    forger: Forger
    request: JoinRequest
    challenge: JoinChallenge
    right: ChallengeAnswer

    @property
    def evidence(self) -> TpmEvidence:
        assert self.request.evidence is not None
        return self.request.evidence

    @property
    def certification(self) -> Attestation:
        assert self.right.certification is not None
        return self.right.certification

    def answering(self, **changes: Any) -> JoinRequest:
        return replace(self.request, answer=replace(self.right, **changes))

    def quoting(self, **changes: Any) -> JoinRequest:
        return self.answering(quote=self.forger.changed(self.right.quote, **changes))

    def certifying(self, **changes: Any) -> JoinRequest:
        return self.answering(certification=self.forger.changed(self.certification, **changes))

    def bytes_of(self, part: str, change: Callable[[bytes], bytes]) -> JoinRequest:
        """`quote` or `certification` with other bytes, signed anew."""
        attest: bytes = getattr(self.right, part).attest
        return self.answering(**{part: self.forger.signed(change(attest))})


@dataclass(frozen=True)
class Shown:
    """Something else is shown, from the first round on."""

    name: str
    reason: str
    check: Check | None
    change: Callable[[Forger, TpmEvidence], TpmEvidence | None]


@dataclass(frozen=True)
class Proved:
    """Something else is answered."""

    name: str
    reason: str
    check: Check | None
    change: Callable[[Case], JoinRequest]


def area(data: bytes) -> Public:
    return decode(Public, data)


def ek_area(change: Callable[[Public], Public]) -> Callable[[Forger, TpmEvidence], TpmEvidence]:
    """Both endorsement keys' areas changed, so that whichever is challenged is a changed one."""

    def changed(_forger: Forger, shown: TpmEvidence) -> TpmEvidence:
        keys = (OfferedKey(encode(change(area(key.public_area)))) for key in shown.endorsement_keys)
        return replace(shown, endorsement_keys=tuple(keys))

    return changed


def ek_bytes(change: Callable[[bytes], bytes]) -> Callable[[Forger, TpmEvidence], TpmEvidence]:
    def changed(_forger: Forger, shown: TpmEvidence) -> TpmEvidence:
        first, *rest = shown.endorsement_keys
        return replace(shown, endorsement_keys=(OfferedKey(change(first.public_area)), *rest))

    return changed


def ak_area(change: Callable[[Public], Public]) -> Callable[[Forger, TpmEvidence], TpmEvidence]:
    return lambda _forger, shown: replace(shown, ak_public=encode(change(area(shown.ak_public))))


def without(bit: int) -> Callable[[Public], Public]:
    return lambda public: replace(public, attributes=public.attributes & ~bit)


def having(bit: int) -> Callable[[Public], Public]:
    return lambda public: replace(public, attributes=public.attributes | bit)


def ecc(**changes: Any) -> Callable[[Public], Public]:
    def changed(public: Public) -> Public:
        assert isinstance(public.parameters, EccParameters)
        return replace(public, parameters=replace(public.parameters, **changes))

    return changed


def exponent(public: Public) -> Public:
    """RSA's written out; the elliptic key, whose area has none, gets a scheme."""
    if isinstance(public.parameters, RsaParameters):
        return replace(public, parameters=replace(public.parameters, exponent=65537))
    return ecc(kdf=Scheme(0x0020, Algorithm.SHA256))(public)


def off_the_curve(public: Public) -> Public:
    return replace(public, unique=Point(b"\1" * 32, b"\2" * 32))


def rsa_ak(_public: Public) -> Public:
    key = rsa.generate_private_key(65537, 2048)
    parameters = RsaParameters(Symmetric(Algorithm.NULL, None), Scheme(Algorithm.RSASSA, Algorithm.SHA256), 2048, 0)
    blank = Public(Algorithm.RSA, Algorithm.SHA256, _public.attributes, b"", parameters, b"")
    return with_key(blank, key)


MANY = (OfferedKey(b"\0"),) * 9

SHOWN = [
    Shown("no evidence", "evidence-missing", None, lambda _f, _s: None),
    Shown("no endorsement key", "ek-missing", None, lambda _f, s: replace(s, endorsement_keys=())),
    Shown("nine endorsement keys", "evidence-malformed", None, lambda _f, s: replace(s, endorsement_keys=MANY)),
    Shown("a key twice", "evidence-malformed", None,
          lambda _f, s: replace(s, endorsement_keys=(s.endorsement_keys[0],) * 2)),
    Shown("an EK area with a byte behind it", "evidence-malformed", None, ek_bytes(lambda a: a + b"\0")),
    Shown("an EK area cut off", "evidence-malformed", None, ek_bytes(lambda a: a[:-1])),
    Shown("an EK area of another type", "evidence-malformed", None, ek_bytes(lambda a: b"\0\x08" + a[2:])),
    Shown("an EK area with its TPM2B's size", "evidence-malformed", None,
          ek_bytes(lambda a: len(a).to_bytes(2) + a)),
    Shown("an EK that is no point", "evidence-malformed", None,
          lambda _f, s: replace(s, endorsement_keys=(
              OfferedKey(encode(off_the_curve(area(s.endorsement_keys[1].public_area)))),))),
    Shown("an area of 1025 bytes", "evidence-malformed", None, ek_bytes(lambda _a: bytes(1025))),
    Shown("a certificate of 16 KiB and a byte", "evidence-malformed", None,
          lambda _f, s: replace(s, endorsement_keys=(replace(s.endorsement_keys[0], certificate=bytes(16385)),))),
    Shown("a chain of 65 parts", "evidence-malformed", None, lambda _f, s: replace(s, ek_chain=(b"",) * 65)),
    Shown("a chain of 64 KiB and a byte", "evidence-malformed", None,
          lambda _f, s: replace(s, ek_chain=(bytes(65537),))),
    Shown("17 banks", "evidence-malformed", None, lambda _f, s: replace(s, pcr_banks=(11,) * 17)),
    Shown("an AK area with a byte behind it", "evidence-malformed", None,
          lambda _f, s: replace(s, ak_public=s.ak_public + b"\0")),
    Shown("no AK", "evidence-malformed", None, lambda _f, s: replace(s, ak_public=b"")),
    Shown("an AK whose name is of an unknown hash", "evidence-malformed", None,
          ak_area(lambda a: replace(a, name_algorithm=0x0027))),
    Shown("a node key's area with a byte behind it", "evidence-malformed", None,
          lambda _f, s: replace(s, node_key_public=s.node_key_public + b"\0")),
    Shown("no bank", "pcr-bank-missing", None, lambda _f, s: replace(s, pcr_banks=())),
    Shown("SHA-1's bank alone", "pcr-bank-missing", None, lambda _f, s: replace(s, pcr_banks=(Algorithm.SHA1,))),
    Shown("an EK nobody allowed", "ek-certificate-missing", None,
          lambda f, s: replace(s, endorsement_keys=(OfferedKey(encode(with_key(
              area(s.endorsement_keys[1].public_area), ec.generate_private_key(ec.SECP256R1())))),))),
    Shown("an EK that signs", "ek-template", Check.EK_TEMPLATE, ek_area(having(Attribute.SIGN))),
    Shown("an EK that is not restricted", "ek-template", Check.EK_TEMPLATE, ek_area(without(Attribute.RESTRICTED))),
    Shown("an EK that may be copied", "ek-template", Check.EK_TEMPLATE, ek_area(without(Attribute.FIXED_TPM))),
    Shown("an EK that was brought in", "ek-template", Check.EK_TEMPLATE,
          ek_area(without(Attribute.SENSITIVE_DATA_ORIGIN))),
    Shown("an EK with a password", "ek-template", Check.EK_TEMPLATE, ek_area(having(Attribute.USER_WITH_AUTH))),
    Shown("an EK with another policy", "ek-template", Check.EK_TEMPLATE,
          ek_area(lambda a: replace(a, policy=bytes(32)))),
    Shown("an EK without a policy", "ek-template", Check.EK_TEMPLATE, ek_area(lambda a: replace(a, policy=b""))),
    Shown("an EK with other parameters", "ek-template", Check.EK_TEMPLATE, ek_area(exponent)),
    Shown("an EK whose name is of SHA-384", "ek-template", None,
          ek_area(lambda a: replace(a, name_algorithm=Algorithm.SHA384))),
    Shown("an EK with another cipher", "ek-template", None, ek_area(lambda a: replace(a, parameters=replace(
        a.parameters, symmetric=Symmetric(Algorithm.AES, Cipher(256, Algorithm.CFB)))))),
    Shown("an AK that is not restricted", "ak-unfit", Check.AK_UNFIT, ak_area(without(Attribute.RESTRICTED))),
    Shown("an AK that does not sign", "ak-unfit", Check.AK_UNFIT, ak_area(without(Attribute.SIGN))),
    Shown("an AK that may be copied", "ak-unfit", Check.AK_UNFIT, ak_area(without(Attribute.FIXED_TPM))),
    Shown("an AK that may move to another parent", "ak-unfit", Check.AK_UNFIT,
          ak_area(without(Attribute.FIXED_PARENT))),
    Shown("an AK that was brought in", "ak-unfit", Check.AK_UNFIT,
          ak_area(without(Attribute.SENSITIVE_DATA_ORIGIN))),
    Shown("an AK that decrypts", "ak-unfit", Check.AK_UNFIT, ak_area(having(Attribute.DECRYPT))),
    Shown("an AK of no scheme", "ak-unfit", Check.AK_UNFIT, ak_area(ecc(scheme=Scheme(Algorithm.NULL, None)))),
    Shown("an AK for SHA-384", "ak-unfit", Check.AK_UNFIT,
          ak_area(ecc(scheme=Scheme(Algorithm.ECDSA, Algorithm.SHA384)))),
    Shown("an AK for another scheme", "ak-unfit", Check.AK_UNFIT,
          ak_area(ecc(scheme=Scheme(Algorithm.SM2, Algorithm.SHA256)))),
    Shown("an AK whose name is of SHA-1", "ak-unfit", Check.AK_UNFIT,
          ak_area(lambda a: replace(a, name_algorithm=Algorithm.SHA1))),
    Shown("an AK of RSA", "ak-unfit", None, ak_area(rsa_ak)),
    Shown("an AK that is no point", "ak-unfit", None, ak_area(off_the_curve)),
]  # fmt: skip


def another_request(case: Case) -> JoinRequest:
    """The same keys, and all of the answer for another CSR of the same key."""
    other = case.forger.tpm.csr()
    assert other != case.request.csr
    certification = case.forger.changed(case.certification, extra_data=sha256(other).digest())
    return replace(case.answering(certification=certification), csr=other)


def another_ek(case: Case) -> JoinRequest:
    """The challenge was for the RSA key; the elliptic one is shown alone, and allowed too."""
    shown = replace(case.evidence, endorsement_keys=case.evidence.endorsement_keys[1:])
    return replace(case.answering(), evidence=shown)


def another_ak(case: Case) -> JoinRequest:
    """An attestation key that no challenge was made for, which signs everything."""
    key = ec.generate_private_key(ec.SECP256R1())
    shown = replace(case.evidence, ak_public=encode(with_key(area(case.evidence.ak_public), key)))
    signed = {part: case.forger.signed(getattr(case.right, part).attest, key) for part in ("quote", "certification")}
    return replace(case.answering(**signed), evidence=shown)


def late(case: Case, by: timedelta) -> JoinRequest:
    case.plane.clock.at = case.challenge.not_after + by
    return case.answering()


def by_another_key(part: str) -> Callable[[Case], JoinRequest]:
    def change(case: Case) -> JoinRequest:
        attest = getattr(case.right, part).attest
        return case.answering(**{part: case.forger.signed(attest, ec.generate_private_key(ec.SECP256R1()))})

    return change


def signature(part: str, change: Callable[[bytes], bytes]) -> Callable[[Case], JoinRequest]:
    def changed(case: Case) -> JoinRequest:
        right: Attestation = getattr(case.right, part)
        return case.answering(**{part: replace(right, signature=change(right.signature))})

    return changed


def flipped(part: str) -> Callable[[Case], JoinRequest]:
    """A bit of the clock, which nothing else looks at."""

    def change(case: Case) -> JoinRequest:
        right: Attestation = getattr(case.right, part)
        attest = case.forger.changed(right, firmware=1).attest
        return case.answering(**{part: replace(right, attest=attest)})

    return change


def selecting(*selections: PcrSelection) -> Callable[[Case], JoinRequest]:
    """The quote is over these, and its digest still over the values that are sent."""
    return lambda case: case.quoting(attested={"pcrs": selections})


def values(change: Callable[[tuple[bytes, ...]], tuple[bytes, ...]]) -> Callable[[Case], JoinRequest]:
    return lambda case: case.answering(pcr_values=change(case.right.pcr_values))


def quoted_values(change: Callable[[tuple[bytes, ...]], tuple[bytes, ...]]) -> Callable[[Case], JoinRequest]:
    """The digest is right for the values, and those are not what was asked for."""

    def changed(case: Case) -> JoinRequest:
        given = change(case.right.pcr_values)
        digest = sha256(b"".join(given)).digest()
        quote = case.forger.changed(case.right.quote, attested={"pcr_digest": digest})
        return case.answering(pcr_values=given, quote=quote)

    return changed


def node_key(change: Callable[[Public], Public]) -> Callable[[Case], JoinRequest]:
    """The node key's area changed, and certified as it then is."""

    def changed(case: Case) -> JoinRequest:
        other = change(area(case.evidence.node_key_public))
        shown = replace(case.evidence, node_key_public=encode(other))
        return replace(case.certifying(attested={"name": names.name(other)}), evidence=shown)

    return changed


def another_point(case: Case) -> JoinRequest:
    """Certified and of the template, and not the key that is to get the leaf."""
    return node_key(lambda public: with_key(public, ec.generate_private_key(ec.SECP256R1())))(case)


def no_certification(case: Case) -> JoinRequest:
    return case.answering(certification=None)


def certification_of_nothing(case: Case) -> JoinRequest:
    return replace(case.answering(), evidence=replace(case.evidence, node_key_public=b""))


SEVEN, NINE, FOUR_BYTES = b"\x7f\0\0", b"\xff\x01\0", b"\xff\0\0\0"

PROVED = [
    Proved("a challenge nobody gave", "challenge-unknown", None, lambda c: c.answering(id="00" * 16)),
    Proved("no challenge", "challenge-unknown", None, lambda c: c.answering(id="")),
    Proved("another request", "challenge-mismatch", Check.CHALLENGE_MISMATCH, another_request),
    Proved("another endorsement key", "challenge-mismatch", Check.CHALLENGE_MISMATCH, another_ek),
    Proved("another attestation key", "challenge-mismatch", Check.CHALLENGE_MISMATCH, another_ak),
    Proved("at its end", "challenge-expired", Check.CHALLENGE_EXPIRED, lambda c: late(c, timedelta(0))),
    Proved("a minute late", "challenge-expired", Check.CHALLENGE_EXPIRED, lambda c: late(c, timedelta(minutes=1))),
    Proved("a bit of the secret", "secret-wrong", Check.SECRET_WRONG,
           lambda c: c.answering(secret=bytes([c.right.secret[0] ^ 1]) + c.right.secret[1:])),
    Proved("no secret", "secret-wrong", Check.SECRET_WRONG, lambda c: c.answering(secret=b"")),
    Proved("half a secret", "secret-wrong", Check.SECRET_WRONG,
           lambda c: c.answering(secret=c.right.secret[:16])),
    Proved("more than the secret", "secret-wrong", Check.SECRET_WRONG,
           lambda c: c.answering(secret=c.right.secret + b"\0")),
    Proved("a quote by another key", "quote-signature", Check.QUOTE_SIGNATURE, by_another_key("quote")),
    Proved("a quote with a bit flipped", "quote-signature", Check.QUOTE_SIGNATURE, flipped("quote")),
    Proved("no signature", "quote-signature", Check.QUOTE_SIGNATURE, signature("quote", lambda _s: b"")),
    Proved("a signature of 63 bytes", "quote-signature", Check.QUOTE_SIGNATURE, signature("quote", lambda s: s[:-1])),
    Proved("a signature of 65 bytes", "quote-signature", Check.QUOTE_SIGNATURE,
           signature("quote", lambda s: s + b"\0")),
    Proved("a signature with r 0", "quote-signature", Check.QUOTE_SIGNATURE,
           signature("quote", lambda s: bytes(32) + s[32:])),
    Proved("a signature with s of the order", "quote-signature", Check.QUOTE_SIGNATURE,
           signature("quote", lambda s: s[:32] + ORDER.to_bytes(32))),
    Proved("a signature in DER", "quote-signature", Check.QUOTE_SIGNATURE,
           lambda c: c.answering(quote=Attestation(c.right.quote.attest, c.forger.ak.sign(
               c.right.quote.attest, ec.ECDSA(hashes.SHA256()))))),
    Proved("a quote cut off", "quote-malformed", None, lambda c: c.bytes_of("quote", lambda a: a[:-1])),
    Proved("a quote with a byte behind it", "quote-malformed", None,
           lambda c: c.bytes_of("quote", lambda a: a + b"\0")),
    Proved("nothing as a quote", "quote-malformed", None, lambda c: c.bytes_of("quote", lambda _a: b"")),
    Proved("a certification as a quote", "quote-malformed", None,
           lambda c: c.answering(quote=c.forger.changed(c.certification, extra_data=c.challenge.tpm.nonce))),
    Proved("a quote the TPM did not generate", "quote-magic", Check.QUOTE_MAGIC,
           lambda c: c.bytes_of("quote", lambda a: b"\xffTCH" + a[4:])),
    Proved("a quote with the magic turned round", "quote-magic", Check.QUOTE_MAGIC,
           lambda c: c.bytes_of("quote", lambda a: a[3::-1] + a[4:])),
    Proved("a quote that says it is a certification", "quote-type", Check.QUOTE_TYPE,
           lambda c: c.bytes_of("quote", lambda a: a[:4] + b"\x80\x17" + a[6:])),
    Proved("a quote that says it is a time", "quote-type", Check.QUOTE_TYPE,
           lambda c: c.bytes_of("quote", lambda a: a[:4] + b"\x80\x19" + a[6:])),
    Proved("a quote for another nonce", "quote-nonce", Check.QUOTE_NONCE, lambda c: c.quoting(extra_data=bytes(32))),
    Proved("a quote for no nonce", "quote-nonce", Check.QUOTE_NONCE, lambda c: c.quoting(extra_data=b"")),
    Proved("a quote for part of the nonce", "quote-nonce", Check.QUOTE_NONCE,
           lambda c: c.quoting(extra_data=c.challenge.tpm.nonce[:-1])),
    Proved("a quote for more than the nonce", "quote-nonce", Check.QUOTE_NONCE,
           lambda c: c.quoting(extra_data=c.challenge.tpm.nonce + b"\0")),
    Proved("a quote over no bank", "quote-selection", Check.QUOTE_SELECTION, selecting()),
    Proved("a quote over no PCR", "quote-selection", Check.QUOTE_SELECTION, selecting(PcrSelection(11, bytes(3)))),
    Proved("a quote over one PCR less", "quote-selection", Check.QUOTE_SELECTION, selecting(PcrSelection(11, SEVEN))),
    Proved("a quote over one PCR more", "quote-selection", Check.QUOTE_SELECTION, selecting(PcrSelection(11, NINE))),
    Proved("a quote over another bank", "quote-selection", Check.QUOTE_SELECTION,
           selecting(PcrSelection(Algorithm.SHA1, b"\xff\0\0"))),
    Proved("a quote over another bank too", "quote-selection", Check.QUOTE_SELECTION,
           selecting(PcrSelection(11, b"\xff\0\0"), PcrSelection(Algorithm.SHA1, b"\xff\0\0"))),
    Proved("a quote over the same bits in four bytes", "quote-selection", Check.QUOTE_SELECTION,
           selecting(PcrSelection(11, FOUR_BYTES))),
    Proved("another value of a PCR", "quote-digest", Check.QUOTE_DIGEST, values(lambda v: (b"\1" * 32, *v[1:]))),
    Proved("another value of the last PCR", "quote-digest", Check.QUOTE_DIGEST,
           lambda c: c.answering(pcr_values=(c.right.pcr_values[0],) * 7 + (b"\2" * 32,))),
    Proved("no PCRs", "quote-digest", Check.QUOTE_DIGEST, values(lambda _v: ())),
    Proved("one PCR less, and a digest of those", "quote-digest", Check.QUOTE_DIGEST, quoted_values(lambda v: v[:-1])),
    Proved("one PCR more, and a digest of those", "quote-digest", Check.QUOTE_DIGEST,
           quoted_values(lambda v: (*v, bytes(32)))),
    Proved("two PCRs as one value", "quote-digest", Check.QUOTE_DIGEST, values(lambda v: (v[0] + v[1], *v[2:]))),
    Proved("PCRs cut elsewhere", "quote-digest", Check.QUOTE_DIGEST,
           values(lambda v: (v[0] + v[1][:1], v[1][1:], *v[2:]))),
    Proved("another digest", "quote-digest", Check.QUOTE_DIGEST,
           lambda c: c.quoting(attested={"pcr_digest": bytes(32)})),
    Proved("no digest", "quote-digest", Check.QUOTE_DIGEST, lambda c: c.quoting(attested={"pcr_digest": b""})),
    Proved("no certification", "certification-missing", Check.CERTIFICATION_MISSING, no_certification),
    Proved("a certification of nothing shown", "certification-missing", Check.CERTIFICATION_MISSING,
           certification_of_nothing),
    Proved("a certification by another key", "certification-signature", Check.CERTIFICATION_SIGNATURE,
           by_another_key("certification")),
    Proved("a certification with a bit flipped", "certification-signature", Check.CERTIFICATION_SIGNATURE,
           flipped("certification")),
    Proved("a certification without signature", "certification-signature", Check.CERTIFICATION_SIGNATURE,
           signature("certification", lambda _s: b"")),
    Proved("the quote's signature", "certification-signature", Check.CERTIFICATION_SIGNATURE,
           lambda c: c.answering(certification=replace(c.certification, signature=c.right.quote.signature))),
    Proved("a certification cut off", "certification-malformed", None,
           lambda c: c.bytes_of("certification", lambda a: a[:-1])),
    Proved("a certification with a byte behind it", "certification-malformed", None,
           lambda c: c.bytes_of("certification", lambda a: a + b"\0")),
    Proved("a certification the TPM did not generate", "certification-magic", Check.CERTIFICATION_MAGIC,
           lambda c: c.bytes_of("certification", lambda a: bytes(4) + a[4:])),
    Proved("a certification that says it is of a creation", "certification-type", Check.CERTIFICATION_TYPE,
           lambda c: c.bytes_of("certification", lambda a: a[:4] + b"\x80\x1a" + a[6:])),
    Proved("a certification that says it is a quote", "certification-type", Check.CERTIFICATION_TYPE,
           lambda c: c.bytes_of("certification", lambda a: a[:4] + b"\x80\x18" + a[6:])),
    Proved("a certification for another request", "certification-data", Check.CERTIFICATION_DATA,
           lambda c: c.certifying(extra_data=bytes(32))),
    Proved("a certification for no request", "certification-data", Check.CERTIFICATION_DATA,
           lambda c: c.certifying(extra_data=b"")),
    Proved("a certification for the nonce", "certification-data", Check.CERTIFICATION_DATA,
           lambda c: c.certifying(extra_data=c.challenge.tpm.nonce)),
    Proved("another name", "certified-name", Check.CERTIFIED_NAME,
           lambda c: c.certifying(attested={"name": b"\0\x0b" + bytes(32)})),
    Proved("no name", "certified-name", Check.CERTIFIED_NAME, lambda c: c.certifying(attested={"name": b""})),
    Proved("the name without its algorithm", "certified-name", Check.CERTIFIED_NAME,
           lambda c: c.certifying(attested={"name": names.name(area(c.evidence.node_key_public))[2:]})),
    Proved("the attestation key's name", "certified-name", Check.CERTIFIED_NAME,
           lambda c: c.certifying(attested={"name": names.name(area(c.evidence.ak_public))})),
    Proved("a qualified name for the name", "certified-name", Check.CERTIFIED_NAME,
           lambda c: c.certifying(attested={"name": b"\0\x0b" + b"\1" * 32, "qualified_name": names.name(
               area(c.evidence.node_key_public))})),
    Proved("another key of the template", "node-key-mismatch", Check.NODE_KEY_MISMATCH, another_point),
    Proved("a restricted node key", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(having(Attribute.RESTRICTED))),
    Proved("a node key that decrypts", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(having(Attribute.DECRYPT))),
    Proved("a node key that may be copied", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(without(Attribute.FIXED_TPM))),
    Proved("a node key that may move", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(without(Attribute.FIXED_PARENT))),
    Proved("a node key that was brought in", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(without(Attribute.SENSITIVE_DATA_ORIGIN))),
    Proved("a node key that may be locked out", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(without(Attribute.NO_DA))),
    Proved("a node key without a password's use", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(without(Attribute.USER_WITH_AUTH))),
    Proved("a node key for its policy's admin", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(having(Attribute.ADMIN_WITH_POLICY))),
    Proved("a node key that does not sign", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(without(Attribute.SIGN))),
    Proved("a node key with a policy", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(lambda a: replace(a, policy=bytes(32)))),
    Proved("a node key with a scheme", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(ecc(scheme=Scheme(Algorithm.ECDSA, Algorithm.SHA256)))),
    Proved("a node key whose name is of SHA-1", "node-key-template", Check.NODE_KEY_TEMPLATE,
           node_key(lambda a: replace(a, name_algorithm=Algorithm.SHA1))),
    Proved("more PCRs than there are", "request-malformed", None, lambda c: c.answering(pcr_values=(b"",) * 25)),
    Proved("a PCR longer than a hash", "request-malformed", None, lambda c: c.answering(pcr_values=(bytes(65),))),
    Proved("a quote longer than one can be", "request-malformed", None,
           lambda c: c.bytes_of("quote", lambda _a: bytes(1025))),
]  # fmt: skip
