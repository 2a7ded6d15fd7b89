"""Renewal, Welcome, and the promotion and removal at load, cut anywhere on a disk that keeps as little as it may."""

import pytest

from tests.crash import renewals
from tests.crash.judge import Lost
from tests.crash.renewals import CASES, Run, judge, power_cuts, renew, renew_after_hello, run
from tests.fakes.lives import HELLO_SENT, RENEW_SENT
from tests.fakes.memory_disk import MemoryDisk

cases = pytest.mark.parametrize("name", CASES)
doings = pytest.mark.parametrize("doing", [renew, renew_after_hello])


@cases
@doings
def test_after_every_power_cut_the_node_loads_and_its_next_renewal_succeeds(name: str, doing: object) -> None:
    """B01, B02, B03: whether what was sent last was heard or not; nobody is called a copy."""
    whole = run(name)
    judged = [_judged(whole, cut, disk, records, doing) for cut, disk, records in power_cuts(whole)]
    assert len(judged) >= 2
    if "renewal" in name:
        assert len(judged) > 15
        texts = [str(change) for change in whole.disk.trace]
        # Only what is safe before is a barrier: the request leaves after the key, the new pair is used after all of it.
        assert texts.index(RENEW_SENT) > texts.index("rename .bcd-node.key.next.* node.key.next")
        assert texts[texts.index(RENEW_SENT) - 1] == "fsync directory"
        last = len(texts) - 1 - texts[::-1].index(HELLO_SENT)
        assert texts[last - 2 : last] == ["rename node.key.next node.key", "fsync directory"]


@cases
def test_a_second_power_cut_while_the_first_is_mended_loses_nothing_either(name: str) -> None:
    """B02, B03."""
    whole = run(name)
    met = 0
    for cut, disk, records in power_cuts(whole):
        second = _judged(whole, cut, disk, records, renew)
        for again, found, heard in power_cuts(second):
            met += 1
            # One way back each: both are tried after the first cut.
            _judged(second, again, found, heard, renew_after_hello if met % 2 else renew)
    assert met > 30


@pytest.mark.parametrize("name", ["renewal", "promotion at load", "removal at load", "welcome"])
def test_a_power_cut_after_the_process_was_killed_loses_nothing(name: str) -> None:
    """B02, B03: what a killed node had named but not yet made safe is made safe before anything is sent."""
    whole = run(name)
    for kill in range(len(whole.disk.trace) + 1):
        for records in whole.servers_at(kill):
            second = _judged(whole, kill, whole.disk.at(kill), records, renew)
            # Until the second run has made it safe, what the first one named last may be lost again.
            second.leaves = [*whole.leaves, *second.leaves]
            for cut, found, heard in power_cuts(second):
                _judged(second, cut, found, heard, renew_after_hello)


def _judged(whole: Run, cut: int, disk: MemoryDisk, records: object, doing: object) -> Run:
    found = disk.image
    try:
        return judge(whole, cut, disk, records, doing)  # type: ignore[arg-type]
    except Lost as lost:
        before = [str(change) for change in whole.disk.trace[:cut]]
        raise Lost(f"{lost}, cut after {before}, found {renewals.names_in(found)}") from None
