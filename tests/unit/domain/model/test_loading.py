"""Loading an identity: the whole truth table, the specification's three rules, and decision 5 as properties."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from bcd.domain.model import loading
from bcd.domain.model.identity import Identity, Leaf
from bcd.domain.model.keys import (
    KeyAbsent,
    KeyDenied,
    KeyHeld,
    KeyKind,
    KeyMalformed,
    KeyState,
    KeyUnasked,
    KeyUnavailable,
)
from bcd.domain.model.loading import (
    Denied,
    IdentityAbsent,
    IdentityDenied,
    IdentityState,
    IdentityStored,
    IdentityUnreadable,
    LoadedAsIs,
    Mismatch,
    NotJoined,
    PromoteNext,
    RemoveNext,
    Unavailable,
    Unreadable,
    decide,
)
from bcd.domain.model.names import NodeId, Role, SiteId, SpiffeId, TrustDomain

NOON = datetime(2026, 9, 26, 12, 0, tzinfo=UTC)
LEAF = Leaf(
    b"der",
    b"the leaf's key",
    SpiffeId(TrustDomain("example.org"), SiteId("s"), NodeId("n")),
    Role.NODE,
    NOON,
    NOON + timedelta(hours=24),
)
HELD = Identity(LEAF, (b"der",))

RIGHT_FILE = KeyHeld(KeyKind.FILE, b"the leaf's key")
RIGHT_TPM = KeyHeld(KeyKind.TPM, b"the leaf's key")
OTHER_FILE = KeyHeld(KeyKind.FILE, b"another key")
OTHER_TPM = KeyHeld(KeyKind.TPM, b"another key")
ABSENT, DENIED = KeyAbsent(), KeyDenied()
MALFORMED, UNAVAILABLE = KeyMalformed("is empty", 0), KeyUnavailable("no device")

KEYS: list[KeyState] = [RIGHT_FILE, RIGHT_TPM, OTHER_FILE, OTHER_TPM, ABSENT, DENIED, MALFORMED, UNAVAILABLE]
RIGHT = [RIGHT_FILE, RIGHT_TPM]
PAIRS = list(product(KEYS, KEYS))

AS_IS_F, AS_IS_T = LoadedAsIs(HELD, KeyKind.FILE), LoadedAsIs(HELD, KeyKind.TPM)
PROMOTE_F, PROMOTE_T = PromoteNext(HELD, KeyKind.FILE), PromoteNext(HELD, KeyKind.TPM)
REMOVE_F, REMOVE_T = RemoveNext(HELD, KeyKind.FILE), RemoveNext(HELD, KeyKind.TPM)
NO, NO_TPM = Mismatch(tpm=False), Mismatch(tpm=True)
DENY, AWAY = Denied(name_is_key=True), Unavailable("no device")

# node.key down, node.key.next across, both in the order of KEYS. Written out on purpose, not computed.
TABLE: list[list[loading.Decision]] = [
    # right file  right TPM  other file  other TPM  absent     denied     malformed  unavailable
    [PROMOTE_F, PROMOTE_T, REMOVE_F, REMOVE_F, AS_IS_F, AS_IS_F, REMOVE_F, AS_IS_F],  # right file
    [PROMOTE_F, PROMOTE_T, REMOVE_T, REMOVE_T, AS_IS_T, AS_IS_T, REMOVE_T, AS_IS_T],  # right TPM
    [PROMOTE_F, PROMOTE_T, NO, NO, NO, DENY, NO, AWAY],  # other file
    [PROMOTE_F, PROMOTE_T, NO_TPM, NO_TPM, NO_TPM, DENY, NO_TPM, AWAY],  # other TPM
    [PROMOTE_F, PROMOTE_T, NO, NO, NO, DENY, NO, AWAY],  # absent
    [PROMOTE_F, PROMOTE_T, DENY, DENY, DENY, DENY, DENY, DENY],  # denied
    [PROMOTE_F, PROMOTE_T, NO, NO, NO, DENY, NO, AWAY],  # malformed
    [PROMOTE_F, PROMOTE_T, AWAY, AWAY, AWAY, AWAY, AWAY, AWAY],  # unavailable
]


@pytest.mark.parametrize(("key", "next_key"), PAIRS, ids=str)
def test_a_stored_identity_loads_as_the_table_says(key: KeyState, next_key: KeyState) -> None:
    assert decide(IdentityStored(HELD), key, next_key) == TABLE[KEYS.index(key)][KEYS.index(next_key)]


@pytest.mark.parametrize(("key", "next_key"), PAIRS, ids=str)
def test_rule_1_without_identity_json_this_node_has_not_joined(key: KeyState, next_key: KeyState) -> None:
    """Decision 6: a key that lies there is an orphan a join must not overwrite, readable or not."""
    assert decide(IdentityAbsent(), key, next_key) == NotJoined(orphan_key=key != ABSENT)


@pytest.mark.parametrize(("key", "next_key"), PAIRS, ids=str)
def test_an_identity_that_does_not_load_is_told_before_its_keys(key: KeyState, next_key: KeyState) -> None:
    """B04: and nothing is decided about the keys, so nothing is promoted or removed."""
    assert decide(IdentityUnreadable("is empty", 0), key, next_key) == Unreadable("is empty", 0)
    assert decide(IdentityDenied(), key, next_key) == Denied(name_is_key=False)


@pytest.mark.parametrize(("key", "next_key"), PAIRS, ids=str)
def test_rule_2_next_is_promoted_exactly_when_the_leaf_certifies_it(key: KeyState, next_key: KeyState) -> None:
    decision = decide(IdentityStored(HELD), key, next_key)
    assert isinstance(decision, PromoteNext) is (next_key in RIGHT)


@pytest.mark.parametrize(("key", "next_key"), PAIRS, ids=str)
def test_rule_2_next_is_removed_only_when_node_key_is_the_leafs(key: KeyState, next_key: KeyState) -> None:
    """Decision 5: when neither matches, each of them may be what somebody needs."""
    if isinstance(decide(IdentityStored(HELD), key, next_key), RemoveNext):
        assert key in RIGHT
        assert next_key not in RIGHT


@pytest.mark.parametrize(("key", "next_key"), PAIRS, ids=str)
def test_rule_3_a_mismatch_is_told_only_when_both_are_known(key: KeyState, next_key: KeyState) -> None:
    """Decision 5: "unavailable" and "denied" are outcomes of their own."""
    decision = decide(IdentityStored(HELD), key, next_key)
    unknown = {DENIED, UNAVAILABLE}
    assert isinstance(decision, Mismatch) is not (unknown & {key, next_key} or key in RIGHT or next_key in RIGHT)


@pytest.mark.parametrize("unknown", [DENIED, UNAVAILABLE])
@pytest.mark.parametrize("other", KEYS, ids=str)
def test_what_cannot_be_read_is_never_touched(unknown: KeyState, other: KeyState) -> None:
    """As next it is neither promoted nor removed; as node.key it makes nothing superfluous."""
    assert not isinstance(decide(IdentityStored(HELD), other, unknown), PromoteNext | RemoveNext | Mismatch)
    decision = decide(IdentityStored(HELD), unknown, other)
    assert not isinstance(decision, RemoveNext | Mismatch | LoadedAsIs)
    # Rule 2 alone may replace it: the leaf itself says that the key beside it is the newer one.
    assert isinstance(decision, PromoteNext) is (other in RIGHT)


@pytest.mark.parametrize("size", [0, 200])
def test_an_empty_node_key_is_a_mismatch_and_never_joined(size: int) -> None:
    """B06: a valid identity.json, and a node.key of 0 bytes."""
    torn = KeyMalformed("is empty", size)
    assert decide(IdentityStored(HELD), torn, ABSENT) == Mismatch(tpm=False)
    assert decide(IdentityStored(HELD), torn, RIGHT_FILE) == PROMOTE_F


@pytest.mark.parametrize(("key", "next_key"), PAIRS, ids=str)
def test_a_mismatch_speaks_of_the_tpm_only_for_a_record_the_tpm_derived(key: KeyState, next_key: KeyState) -> None:
    decision = decide(IdentityStored(HELD), key, next_key)
    if isinstance(decision, Mismatch):
        assert decision.tpm is (key == OTHER_TPM)


@pytest.mark.parametrize(
    "identity",
    [IdentityAbsent(), IdentityDenied(), IdentityUnreadable("is empty", 0), IdentityStored(HELD)],
    ids=["absent", "denied", "unreadable", "stored"],
)
def test_loading_twice_is_loading_once(identity: IdentityState) -> None:
    """Once the effect is carried out the same files load as they are, or say the same again."""
    for key, next_key in PAIRS:
        decision = decide(identity, key, next_key)
        match decision:
            case PromoteNext():
                assert decide(identity, next_key, ABSENT) == LoadedAsIs(HELD, decision.kind)
            case RemoveNext():
                assert decide(identity, key, ABSENT) == LoadedAsIs(HELD, decision.kind)
            case _:
                assert decide(identity, key, next_key) == decision


@pytest.mark.parametrize("next_key", [*KEYS, KeyUnasked()], ids=str)
def test_who_asks_no_tpm_takes_the_record_at_its_word(next_key: KeyState) -> None:
    decision = decide(IdentityStored(HELD), KeyUnasked(), next_key)
    assert decision == (PromoteNext(HELD, next_key.kind) if next_key in RIGHT else AS_IS_T)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_next_key_that_nobody_asked_is_never_superfluous_and_never_a_mismatch(key: KeyState) -> None:
    decision = decide(IdentityStored(HELD), key, KeyUnasked())
    assert not isinstance(decision, Mismatch | RemoveNext | PromoteNext)


def test_a_tpm_that_is_not_there_may_be_there_soon() -> None:
    assert decide(IdentityStored(HELD), KeyUnavailable("no device", absent=True), ABSENT) == Unavailable(
        "no device", absent=True
    )
