"""A TPM that shows up late in a boot is waited for, within bounds (field report B37)."""

import pytest

from bcd.domain.model.failures import NotThereYet
from bcd.domain.model.keys import KeyKind
from tests.fakes.joining import ANY_NODE, ControlPlane
from tests.fakes.memory_join import ByTpm, join, join_of, with_tpm
from tests.fakes.memory_tpm import ABSENT


@pytest.mark.parametrize("after_s", [1.0, 29.9, 31.0])
def test_b37_a_tpm_that_shows_up_late_in_a_boot_is_waited_for_within_bounds(after_s: float) -> None:
    node, held = with_tpm()
    join(node)
    before = node.disk.image
    held.trouble = ABSENT
    there_s = node.clock.boottime_s() + after_s

    def look() -> None:
        held.trouble = None if node.clock.boottime_s() >= there_s else ABSENT

    node.clock.on_wait = look
    again = join_of(node, ControlPlane(), tpm_wait_s=30.0)
    if after_s < 30:
        assert again(ANY_NODE).already
    else:
        with pytest.raises(NotThereYet):
            again(ANY_NODE)
    assert [text for _, text, _ in node.events.lines].count("waiting for the TPM") == 1, "once, and not at each look"
    assert node.disk.image == before
    assert [text for _, text, _ in node.events.lines].count("waiting for the TPM") == 1


def test_b37_a_join_by_tpm_waits_for_a_tpm_that_shows_up_late_in_a_boot_and_makes_its_key_there() -> None:
    case = ByTpm(up_s=20.0)
    case.held.trouble = case.attestor.trouble = ABSENT
    there_s = case.node.clock.boottime_s() + 3.0

    def look() -> None:
        if case.node.clock.boottime_s() >= there_s:
            case.held.trouble = case.attestor.trouble = None

    case.node.clock.on_wait = look
    assert case.gets(case.challenge()).join(tpm_wait_s=30.0).kind is KeyKind.TPM
    assert case.node.told("info")[0] == "waiting for the TPM"


def test_a_join_by_tpm_on_a_machine_without_one_makes_no_key_at_all() -> None:
    case = ByTpm()
    case.held.trouble = case.attestor.trouble = ABSENT
    assert case.fails(tpm_wait_s=30.0) is ABSENT
    assert case.node.files == {}
    assert case.node.told("info") == []
    assert case.node.clock.waits == []
