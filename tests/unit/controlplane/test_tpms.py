"""Which endorsement keys are of one TPM: an attestation key ties what it proved, and a machine's word binds itself."""

from __future__ import annotations

import pytest

from bcd.controlplane.domain import tpms
from bcd.controlplane.domain.eks import TpmKey
from bcd.controlplane.domain.tpms import MAX_ATTESTATION_KEYS, MAX_KEYS, MAX_REACH, Other, Tie
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.memory_store import MemoryRecords


@pytest.fixture
def records() -> MemoryRecords:
    return MemoryRecords()


def deny(records: MemoryRecords, *eks: str) -> None:
    for ek in eks:
        records.eks.put(rows.listed_ek(ek=ek, denied=True))


def ties(records: MemoryRecords, ek: str) -> dict[str, str]:
    return {one.ek: one.tie.value for one in tpms.others(records, ek)}


def test_what_was_proved_and_what_was_shown_beside_it_are_remembered(records: MemoryRecords) -> None:
    tpms.remember(records, "ak", "rsa", ["rsa", "ecc"])
    assert records.tpm_keys.of_ak("ak") == [TpmKey("ak", "ecc", False), TpmKey("ak", "rsa", True)]
    tpms.remember(records, "ak", "ecc", ["ecc"])
    tpms.remember(records, "ak", "rsa", ["rsa", "ecc"])
    assert [row.proved for row in records.tpm_keys.of_ak("ak")] == [True, True]


def test_keys_proved_with_one_attestation_key_are_of_one_tpm(records: MemoryRecords) -> None:
    tpms.remember(records, "ak", "rsa", ["rsa"])
    assert tpms.others(records, "rsa") == ()
    tpms.remember(records, "ak", "ecc", ["ecc"])
    assert tpms.others(records, "rsa") == (Other("ecc", Tie.SAME),)
    assert tpms.others(records, "ecc") == (Other("rsa", Tie.SAME),)
    deny(records, "rsa")
    assert tpms.denied_with(records, ["ecc"]) == "rsa"
    assert tpms.denied_with(records, ["other"]) == ""


def test_two_attestation_keys_of_one_endorsement_key_lead_from_one_to_the_other(records: MemoryRecords) -> None:
    tpms.remember(records, "ak-1", "rsa", [])
    tpms.remember(records, "ak-2", "rsa", [])
    tpms.remember(records, "ak-2", "ecc", [])
    deny(records, "ecc")
    assert tpms.denied_with(records, [], "ak-1") == "ecc"


def test_who_showed_a_key_that_is_denied_is_out_by_every_key(records: MemoryRecords) -> None:
    tpms.remember(records, "ak", "rsa", ["rsa", "ecc"])
    deny(records, "ecc")
    assert tpms.denied_with(records, ["rsa"]) == "ecc"
    assert tpms.denied_with(records, [], "ak") == "ecc"
    assert ties(records, "ecc") == {"rsa": "showed"}


def test_a_key_that_somebody_else_showed_is_not_shut_out_with_him(records: MemoryRecords) -> None:
    """Everybody can show a key that is another's."""
    tpms.remember(records, "ak-thief", "thief", ["thief", "mine"])
    tpms.remember(records, "ak-mine", "mine", ["mine"])
    deny(records, "thief")
    assert tpms.denied_with(records, ["mine"], "ak-mine") == ""
    assert tpms.doubt(records, "mine") == "thief"
    assert ties(records, "thief") == {"mine": "shown"}
    assert ties(records, "mine") == {"thief": "showed"}


def test_two_that_each_showed_the_other_are_out_together(records: MemoryRecords) -> None:
    tpms.remember(records, "ak-1", "rsa", ["ecc"])
    tpms.remember(records, "ak-2", "ecc", ["rsa"])
    assert ties(records, "rsa") == {"ecc": "same"}
    deny(records, "rsa")
    assert tpms.denied_with(records, ["ecc"]) == "rsa"


def test_there_is_no_doubt_without_a_denied_key(records: MemoryRecords) -> None:
    tpms.remember(records, "ak", "rsa", ["ecc"])
    assert tpms.doubt(records, "ecc") == ""
    deny(records, "rsa")
    assert tpms.doubt(records, "ecc") == "rsa"
    # Of a key that was proved there is none: that is certain.
    assert tpms.doubt(records, "rsa") == ""


def test_a_key_that_is_itself_denied_is_told_before_another(records: MemoryRecords) -> None:
    tpms.remember(records, "ak", "b", ["a"])
    deny(records, "a", "b")
    assert tpms.denied_with(records, ["b"]) == "b"
    assert tpms.denied_with(records, ["never seen"]) == ""


def test_a_machine_that_shows_ever_other_keys_leaves_no_more_than_a_few(records: MemoryRecords) -> None:
    for number in range(3):
        tpms.remember(records, "ak", "rsa", [f"{number}-{other}" for other in range(7)])
    assert len(records.tpm_keys.of_ak("ak")) == MAX_KEYS
    # What is proved is kept all the same.
    tpms.remember(records, "ak", "ecc", [])
    assert TpmKey("ak", "ecc", True) in records.tpm_keys.of_ak("ak")


def test_a_machine_that_makes_ever_other_attestation_keys_leaves_no_more_than_a_few(records: MemoryRecords) -> None:
    for number in range(MAX_ATTESTATION_KEYS + 3):
        tpms.remember(records, f"ak-{number:02}", "rsa", ["ecc"])
    assert len(records.tpm_keys.of_ek("rsa")) == MAX_ATTESTATION_KEYS
    # One that is known goes on being told of.
    tpms.remember(records, "ak-00", "rsa", ["late"])
    assert len(records.tpm_keys.of_ak("ak-00")) == 3


def test_a_long_row_of_keys_is_followed_so_far(records: MemoryRecords) -> None:
    for number in range(MAX_REACH + 2):
        records.tpm_keys.put(TpmKey(f"ak-{number}", f"ek-{number}", True))
        records.tpm_keys.put(TpmKey(f"ak-{number}", f"ek-{number + 1}", True))
    deny(records, f"ek-{MAX_REACH + 2}")
    assert tpms.denied_with(records, ["ek-0"]) == ""
    deny(records, f"ek-{MAX_REACH}")
    assert tpms.denied_with(records, ["ek-0"]) == f"ek-{MAX_REACH}"
