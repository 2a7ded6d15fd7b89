"""A join cut anywhere, on a disk that keeps as little as it may."""

import pytest

from tests.crash.directories import BEFORE
from tests.crash.judge import Lost
from tests.crash.memory import Run, judge, judge_told_at_the_end, power_cuts, run
from tests.fakes.memory_disk import MemoryDisk

variants = pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)


@variants
def test_after_every_power_cut_there_is_the_identity_or_the_request(before: dict[str, bytes] | None) -> None:
    """B02, B03, B06, B07: what was sent is never lost, and never needs a second token."""
    whole = run(before)
    judged = [_judged(whole, cut, disk, sent) for cut, disk, sent in power_cuts(whole)]
    # As many different disks as this are met, or the model has stopped to be pessimistic.
    assert len(judged) > 15


@variants
def test_what_a_join_has_said_is_on_the_disk(before: dict[str, bytes] | None) -> None:
    """B06: success is not told before it is durable, down to the request that is needed no more."""
    judge_told_at_the_end(run(before))


@variants
def test_a_second_power_cut_while_the_first_is_mended_loses_nothing_either(before: dict[str, bytes] | None) -> None:
    """B02, B03."""
    whole = run(before)
    met = set()
    for cut, disk, sent in power_cuts(whole):
        second = _judged(whole, cut, disk, sent)
        for again, found, sent_again in power_cuts(second):
            known = sent if sent is not None else sent_again
            if (found.image, known) not in met:
                met.add((found.image, known))
                _judged(second, again, found, known)
    assert len(met) > 40


@variants
def test_a_power_cut_after_the_process_was_killed_loses_nothing(before: dict[str, bytes] | None) -> None:
    """B02, B03: what a killed join had named but not yet made safe is made safe by the next one before it asks."""
    whole = run(before)
    for kill in whole.cuts:
        disk, sent = whole.disk.at(kill), whole.sent_at(kill)
        second = _judged(whole, kill, disk, sent)
        for cut, found, sent_again in power_cuts(second, kill):
            _judged(second, cut, found, sent if sent is not None else sent_again)


def _judged(whole: Run, cut: int, disk: MemoryDisk, sent: bytes | None) -> Run:
    found = disk.image
    try:
        return judge(whole, disk, sent)
    except Lost as lost:
        before = [str(change) for change in whole.disk.trace[:cut]]
        raise Lost(f"{lost}, cut after {before}, found {found}") from None
