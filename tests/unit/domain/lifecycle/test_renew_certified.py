"""A renewal of a leaf that names an attestation key: by that key's word, or not at all."""

from hashlib import sha256

from bcd.domain.lifecycle.renew import NewPair, NotRenewed
from bcd.domain.model.datadir import NEXT_KEY
from bcd.domain.model.failures import MustJoinAgain, TryLater
from bcd.domain.model.keys import KeyKind
from tests.fakes.memory_renewal import NO, Case, Certified
from tests.fakes.memory_tpm import LOCKED


def test_the_next_key_of_a_certified_leaf_comes_with_the_attestation_keys_word() -> None:
    case = Certified()
    outcome = case.renew()
    assert isinstance(outcome, NewPair)
    assert outcome.pair.key.kind is KeyKind.TPM
    [question] = case.asked
    assert question.key_attestation is not None
    assert question.key_attestation.certification.attest == sha256(question.csr).digest()
    assert case.attestor.calls == ["ak_name", "certify", "release"]


def test_an_uncertified_leaf_brings_no_attestation_and_asks_no_attestation_key() -> None:
    case = Case()
    case.renew()
    assert case.question.key_attestation is None


def test_a_retry_brings_the_same_attestation() -> None:
    case = Certified()
    case.answers = [NO]
    outcome = case.renew()
    assert isinstance(outcome, NotRenewed)
    assert isinstance(case.renew(outcome.next_key), NewPair)
    assert case.asked[0].key_attestation == case.asked[1].key_attestation
    assert case.attestor.calls.count("certify") == 1


def test_without_the_tpm_nothing_is_written_or_sent() -> None:
    case = Certified()
    case.attestor.trouble = LOCKED
    assert case.fails(TryLater) == (
        f"renewal: the certificate's node key is in the TPM, which is unavailable: {LOCKED.text}"
    )
    assert NEXT_KEY not in case.node.files


def test_another_attestation_key_renews_nothing_and_says_how_to_join_again() -> None:
    case = Certified()
    case.attestor.ak += 10
    text = case.fails(MustJoinAgain)
    assert text.startswith("renewal: this TPM's attestation key is not the one the certificate names")
    assert text.endswith("join again: bcd join --reset --yes, then bcd join")
    assert NEXT_KEY not in case.node.files
    assert len(case.held.loaded) == 1


def test_an_attestation_key_that_changes_before_it_certifies_renews_nothing() -> None:
    """Nothing is sent: the control plane would decline it, and the node would not know why."""
    case = Certified()

    def change() -> None:
        case.attestor.ak += 10

    case.attestor.on_certify = change
    assert case.fails(MustJoinAgain).startswith("renewal: this TPM's attestation key is not the one")


def test_b30_b34_there_is_no_downgrade_to_a_key_in_a_file() -> None:
    case = Certified()
    case.held.signs = False
    assert case.fails(TryLater).startswith("renewal: the next node key in the TPM: the TPM /dev/tpmrm0: Sign failed")
    assert NEXT_KEY not in case.node.files


def test_without_a_certification_nothing_is_sent() -> None:
    case = Certified()
    case.attestor.no_certification = LOCKED
    assert case.fails(TryLater) == f"renewal: the TPM's attestation key certifying the next key: {LOCKED.text}"
    # Specification, step 2: it is written first, and the proof attached after.
    assert NEXT_KEY in case.node.files


def test_an_answer_without_the_attestation_keys_name_is_not_stored() -> None:
    case = Certified()
    case.names = []
    outcome = case.renew()
    assert isinstance(outcome, NotRenewed)
    assert "attestation key" in outcome.ended.why
    assert {name: case.node.files[name] for name in case.before} == case.before
