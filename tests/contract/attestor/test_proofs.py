"""What a TPM shows and proves holds before the control plane, and its RSA key is used as its maker left it."""

from functools import partial

import pytest

from bcd.domain.model.attestation import KeyAttestation
from bcd.domain.model.failures import TryLater
from bcd.protocol.tpm2 import attest, names, templates
from bcd.protocol.tpm2.attest import Certified, require
from bcd.protocol.tpm2.commands import CommandCode
from bcd.protocol.tpm2.structures import Algorithm, Public
from bcd.protocol.tpm2.wire import decode, encode
from tests.fakes import manufacturer
from tests.fakes.attesting import (
    AK,
    BROKEN,
    CSR,
    ECC,
    ECC_INDEX,
    NO_SUCH_CURVE,
    READABLE,
    RSA,
    RSA_INDEX,
    UNIQUE,
    Case,
    certificate,
    code_of,
    instead_of,
    judge,
    persisted,
    refused,
)
from tests.fakes.software_tpm import PERSISTENT_EK


@pytest.mark.parametrize("key", [RSA, ECC], ids=["RSA", "ECC"])
def test_what_is_shown_and_proved_holds_before_the_control_plane(key: int, case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    challenge = case.challenge(evidence, key)
    answer = case.answer(challenge)
    assert answer.id == challenge.id
    assert len(judge(evidence, challenge, answer)) == 8
    # The endorsement key and the attestation key are given back, and the node key stays for what comes.
    case.port.release()
    assert case.places() == 2
    assert templates.same_but_unique(decode(Public, evidence.node_key_public), templates.node_key(UNIQUE))
    case.room()


def test_a_node_key_that_is_in_no_tpm_is_neither_shown_nor_certified(case: Case) -> None:
    evidence = case.port.evidence(None)
    assert evidence.node_key_public == b""
    challenge = case.challenge(evidence)
    answer = case.answer(challenge, None)
    assert answer.certification is None
    judge(evidence, challenge, answer, certified=False)
    assert case.seen.counts[CommandCode.CERTIFY] == 0
    case.room()


def test_both_endorsement_keys_are_offered_and_the_same_each_time(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    kinds = [decode(Public, one.public_area).type for one in evidence.endorsement_keys]
    assert kinds == [Algorithm.RSA, Algorithm.ECC]
    assert case.port.evidence(UNIQUE) == evidence


def test_the_rsa_key_is_derived_once_for_both_rounds(case: Case) -> None:
    """It takes a chip seconds."""
    challenge = case.challenge(case.port.evidence(UNIQUE))
    case.answer(challenge)
    assert sum(encode(templates.EK_RSA_2048) in command for command in case.seen.sent) == 1


def test_the_endorsement_key_is_given_back_before_anything_else_is_asked(case: Case) -> None:
    """Each key that is held slows every command down, and of three places two are needed from here on."""
    case.answer(case.challenge(case.port.evidence(UNIQUE)))
    codes = [code_of(command) for command in case.seen.sent]
    activated, quoted = codes.index(CommandCode.ACTIVATE_CREDENTIAL), codes.index(CommandCode.QUOTE)
    assert codes[activated + 1 : quoted] == [CommandCode.FLUSH_CONTEXT]


def test_a_tpm_without_p256_offers_its_rsa_key_unless_a_certificate_says_that_there_is_another(case: Case) -> None:
    der = certificate(case.port.evidence(UNIQUE), ECC)
    case.client.close()
    case.seen.instead = partial(instead_of, encode(templates.EK_ECC_P256), NO_SUCH_CURVE)
    evidence = case.port.evidence(UNIQUE)
    assert len(evidence.endorsement_keys) == 1
    challenge = case.challenge(evidence)
    judge(evidence, challenge, case.answer(challenge))
    case.tpm.store(ECC_INDEX, der, READABLE)
    with pytest.raises(TryLater, match="CreatePrimary failed"):
        case.port.evidence(UNIQUE)


def test_an_endorsement_key_that_cannot_be_made_now_is_a_failure_and_not_one_that_the_tpm_has_not(case: Case) -> None:
    """It may be the one that the control plane knows: without it the machine would be refused for good."""
    for code in (refused(0x902), BROKEN, refused(0x921)):
        case.seen.instead = partial(instead_of, encode(templates.EK_ECC_P256), code)
        with pytest.raises(TryLater):
            case.port.evidence(UNIQUE)
    case.seen.instead = lambda _command: None
    assert len(case.port.evidence(UNIQUE).endorsement_keys) == 2


def test_a_renewals_certification_holds_before_the_control_plane(case: Case) -> None:
    evidence = case.port.evidence(UNIQUE)
    word = case.port.certify(UNIQUE, CSR)
    key, ak = decode(Public, word.key_public), decode(Public, word.ak_public)
    require(attest.CERTIFICATION, Certified(ak, word.certification, key, names.spki(key), CSR))
    assert word == KeyAttestation(evidence.ak_public, evidence.node_key_public, word.certification)
    assert case.port.ak_name() == names.name(ak)
    case.room()


def test_a_clear_leaves_the_attestation_key_and_another_endorsement_seed_does_not(case: Case) -> None:
    name = case.port.ak_name()
    case.port.release()
    case.tpm.clear()
    assert case.port.ak_name() == name
    case.port.release()
    case.tpm.change_endorsement_seed()
    assert case.port.ak_name() != name


def test_a_certification_names_the_attestation_key_that_made_it(case: Case) -> None:
    """Also where another was loaded, and read, before the seed changed."""
    before = case.port.ak_name()
    case.tpm.change_endorsement_seed()
    word = case.port.certify(UNIQUE, CSR)
    ak, key = decode(Public, word.ak_public), decode(Public, word.key_public)
    require(attest.CERTIFICATION, Certified(ak, word.certification, key, names.spki(key), CSR))
    assert names.name(ak) != before


# ---- the persistent endorsement key


def activated(case: Case) -> list[int]:
    """The second handles of each ActivateCredential."""
    code = CommandCode.ACTIVATE_CREDENTIAL.to_bytes(4)
    return [int.from_bytes(one[14:18]) for one in case.seen.sent if one[6:10] == code]


def test_the_persistent_endorsement_key_is_used_and_left_alone(case: Case) -> None:
    before = persisted(case)
    evidence = case.port.evidence(UNIQUE)
    assert evidence.endorsement_keys[RSA].public_area == before.endorsement_keys[RSA].public_area
    # ECC key, attestation key, node key.
    assert case.seen.counts[CommandCode.CREATE_PRIMARY] == 3
    challenge = case.challenge(evidence)
    judge(evidence, challenge, case.answer(challenge))
    assert activated(case) == [PERSISTENT_EK]
    assert case.port.evidence(UNIQUE) == evidence
    case.room()


def test_a_persistent_key_that_the_certificate_does_not_name_is_not_used(case: Case) -> None:
    before = case.port.evidence(UNIQUE)
    case.client.close()
    case.tpm.store(RSA_INDEX, manufacturer.root().ek(manufacturer.rsa_spki(manufacturer.modulus(1))), READABLE)
    case.tpm.persist_ek()
    evidence = case.port.evidence(UNIQUE)
    assert evidence.endorsement_keys[RSA].public_area == before.endorsement_keys[RSA].public_area
    challenge = case.challenge(evidence)
    judge(evidence, challenge, case.answer(challenge))
    assert PERSISTENT_EK not in activated(case)


def test_a_persistent_key_of_another_template_is_not_used(case: Case) -> None:
    """Not even where the certificate names it."""
    before = case.port.evidence(UNIQUE)
    case.client.close()
    area = decode(Public, before.ak_public)
    case.tpm.store(RSA_INDEX, manufacturer.root().ek(names.spki(area)), READABLE)
    case.tpm.persist(AK.hierarchy, AK.template)
    evidence = case.port.evidence(UNIQUE)
    assert evidence.endorsement_keys[RSA].public_area == before.endorsement_keys[RSA].public_area
