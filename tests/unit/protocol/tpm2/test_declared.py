"""A declared structure is to its users what @dataclass(frozen=True) makes of one."""

import dataclasses
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import Annotated, Any

import pytest

from bcd.protocol.tpm2.declared import Structure
from bcd.protocol.tpm2.wire import U8, decode


class Pair(Structure):
    """Two numbers."""

    a: Annotated[int, U8]
    b: Annotated[int, U8]


class Other(Structure):
    a: Annotated[int, U8]
    b: Annotated[int, U8]


@dataclass(frozen=True)
class Peer:
    a: int
    b: int


def test_it_is_made_by_place_and_by_name() -> None:
    made = Pair(1, 2)
    assert (made.a, made.b) == (1, 2)
    assert Pair(1, b=2) == made
    assert Pair(b=2, a=1) == made
    assert replace(made, b=3) == Pair(1, 3)
    assert [field.name for field in dataclasses.fields(Pair)] == ["a", "b"]
    match made:
        case Pair(a, b):
            assert (a, b) == (1, 2)


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((1,), {}), ((1, 2, 3), {}), ((1, 2), {"b": 2}), ((1,), {"a": 1}), ((1,), {"c": 2}), ((1, 2), {"c": 3})],
)
@pytest.mark.parametrize("declared", [Pair, Peer])
def test_a_field_that_is_missing_or_said_twice_or_of_no_such_name_is_an_error(
    declared: type[Any], values: tuple[int, ...], named: dict[str, int]
) -> None:
    with pytest.raises(TypeError):
        declared(*values, **named)


@pytest.mark.parametrize("declared", [Pair, Peer])
def test_nothing_of_it_can_be_changed(declared: type[Any]) -> None:
    made = declared(1, 2)
    for name in ("a", "c"):
        with pytest.raises(FrozenInstanceError, match=name):
            setattr(made, name, 3)
        with pytest.raises(FrozenInstanceError, match=name):
            delattr(made, name)
    assert (made.a, made.b) == (1, 2)


def test_equal_are_two_of_one_kind_with_equal_fields_made_or_read() -> None:
    made = Pair(1, 2)
    for same in (Pair(1, 2), decode(Pair, b"\x01\x02")):
        assert made == same
        assert hash(made) == hash(same)
    for another in (Pair(2, 1), Other(1, 2), Peer(1, 2), None):
        assert made != another
    assert len({made, Pair(1, 2), Pair(2, 1)}) == 2


def test_it_shows_its_fields_in_their_order() -> None:
    assert repr(Pair(b=2, a=1)) == repr(Peer(1, 2)).replace("Peer", "Pair")
