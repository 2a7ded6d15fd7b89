"""The pair in use: one owner, and a replaced key that is let go of after five minutes."""

import gc
import weakref

from bcd.adapters.keys.file import FileKey
from bcd.adapters.keys.tpm import HostKeys
from bcd.app.pairs import PairInUse
from bcd.ports.gateway import Pair
from tests.fakes import pki
from tests.fakes.joining import Recorded
from tests.fakes.memory_node import identity
from tests.fakes.memory_tpm import MemoryTpmKeys

HELD = identity()


def pair(number: int) -> Pair:
    return Pair(HELD.leaf, HELD.chain, FileKey(pki.private_key(number)))


def test_the_pair_in_use_is_the_last_one_given() -> None:
    first, second = pair(1), pair(2)
    pairs = PairInUse(first, Recorded())
    assert pairs.pair is first
    pairs.replace(second, 100.0)
    assert pairs.pair is second


def test_a_replaced_key_is_released_after_five_minutes_and_not_before() -> None:
    """Specification, "Renewal", step 5."""
    events = Recorded()
    pairs = PairInUse(pair(1), events)
    old = weakref.ref(pairs.pair.key)
    pairs.replace(pair(2), 100.0)
    pairs.release(399.9)
    gc.collect()
    assert old() is not None
    assert events.lines == []
    pairs.release(400.0)
    gc.collect()
    assert old() is None
    assert events.lines == [("info", "the old key is released", {})]


def test_a_released_key_gives_its_place_in_the_tpm_back_and_the_one_in_use_keeps_its_own() -> None:
    held = MemoryTpmKeys()
    keys = HostKeys(held, Recorded())
    first, second = (Pair(HELD.leaf, HELD.chain, keys.create()) for _ in range(2))
    pairs = PairInUse(first, Recorded())
    pairs.replace(second, 100.0)
    pairs.release(399.9)
    assert len(held.loaded) == 2
    pairs.release(400.0)
    assert [second.key.sign(b""), len(held.loaded)][1] == 1
    assert held.commands.count("CreatePrimary") == 2


def test_each_replaced_key_has_its_own_five_minutes_and_the_one_in_use_none() -> None:
    events = Recorded()
    pairs = PairInUse(pair(1), events)
    pairs.replace(pair(2), 100.0)
    pairs.replace(last := pair(3), 200.0)
    pairs.release(450.0)
    assert len(events.lines) == 1
    pairs.release(500.0)
    pairs.release(1e9)
    assert len(events.lines) == 2
    assert pairs.pair is last
