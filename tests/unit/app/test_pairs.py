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
    pairs = PairInUse(first)
    assert pairs.pair is first
    pairs.replace(second, 100.0)
    assert pairs.pair is second


def test_a_replaced_key_is_let_go_of_after_five_minutes_and_not_before() -> None:
    """Specification, "Renewal", step 5."""
    pairs = PairInUse(pair(1))
    old = weakref.ref(pairs.pair.key)
    pairs.replace(pair(2), 100.0)
    assert pairs.let_go(399.9) == ()
    assert [key is old() for key in pairs.let_go(400.0)] == [True]
    gc.collect()
    assert old() is None
    assert pairs.let_go(400.1) == (), "once"


def test_a_released_key_gives_its_place_in_the_tpm_back_and_the_one_in_use_keeps_its_own() -> None:
    held = MemoryTpmKeys()
    keys = HostKeys(held, Recorded())
    first, second = (Pair(HELD.leaf, HELD.chain, keys.create()) for _ in range(2))
    pairs = PairInUse(first)
    pairs.replace(second, 100.0)
    assert len(held.loaded) == 2
    for key in pairs.let_go(400.0):
        key.release()
    assert [second.key.sign(b""), len(held.loaded)][1] == 1
    assert held.commands.count("CreatePrimary") == 2


def test_each_replaced_key_has_its_own_five_minutes_and_the_one_in_use_none() -> None:
    pairs = PairInUse(pair(1))
    pairs.replace(pair(2), 100.0)
    pairs.replace(last := pair(3), 200.0)
    assert len(pairs.let_go(450.0)) == 1
    assert len(pairs.let_go(500.0)) == 1
    assert pairs.let_go(1e9) == ()
    assert pairs.pair is last
