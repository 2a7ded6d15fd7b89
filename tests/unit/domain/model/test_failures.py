"""Messages and exit codes."""

import string
from collections.abc import Iterator

import pytest

from bcd.domain.model import failures
from bcd.domain.model.failures import Exit, Failure, Message


def fields(message: Message) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(message.value) if name is not None}


def classes(of: type[Failure] = Failure) -> Iterator[type[Failure]]:
    for sub in of.__subclasses__():
        yield sub
        yield from classes(sub)


def test_exit_codes_are_the_documented_ones_and_distinct() -> None:
    """Decision 18."""
    assert {code.name: code.value for code in Exit} == {
        "OK": 0,
        "DEAD": 1,
        "USAGE": 2,
        "INTERNAL": 70,
        "TRY_LATER": 75,
        "NO_IDENTITY": 76,
        "REFUSED": 77,
        "CONFIGURATION": 78,
    }


def test_each_class_of_failure_exits_as_the_operator_must_act() -> None:
    assert {sub.__name__: sub.exit.value for sub in classes()} == {
        "Usage": 2,
        "Internal": 70,
        "TryLater": 75,
        "NotJoined": 75,
        "NotThereYet": 75,
        "IdentityDead": 1,
        "MustJoinAgain": 76,
        "Refused": 77,
        "FixConfiguration": 78,
    }


def test_only_a_dead_identity_ends_as_one_and_no_failure_ends_well() -> None:
    """The unit does not start again after exit 1."""
    assert [sub for sub in classes() if sub.exit is Exit.DEAD] == [failures.IdentityDead]
    assert all(sub.exit is not Exit.OK for sub in classes())


@pytest.mark.parametrize("message", Message, ids=lambda m: m.name)
def test_every_message_is_one_line_and_formats_with_its_fields(message: Message) -> None:
    given = {name: f"<{name} {{of}}>" for name in fields(message)}
    failure = failures.Usage(message, **given)
    assert failure.text == str(failure)
    assert failure.message is message
    assert all(value in failure.text for value in given.values())
    assert "\n" not in failure.text
    assert failure.text == failure.text.strip()
    assert not failure.text.endswith(".")


@pytest.mark.parametrize("message", [m for m in Message if fields(m)], ids=lambda m: m.name)
def test_a_message_with_a_field_missing_is_a_defect_that_shows(message: Message) -> None:
    with pytest.raises(KeyError):
        failures.Usage(message)


@pytest.mark.parametrize("message", Message, ids=lambda m: m.name)
def test_a_template_names_its_fields_plainly(message: Message) -> None:
    """No positions, attributes or indexes: a field's value can never reach into another."""
    assert all(name.isidentifier() for name in fields(message))


def test_the_specifications_messages_are_word_for_word() -> None:
    assert Message.NOT_JOINED.value == "this node has not joined (run bcd join)"
    assert Message.KEY_MISMATCH.value == (
        "the node key does not match the node certificate; join again: bcd join --reset --yes, then bcd join"
    )
    assert "the TPM derives another key from node.key (was the TPM cleared?)" in Message.KEY_MISMATCH_TPM.value
    assert failures.Refused(Message.RUN_AS_ROOT, command="join --reset").text == "bcd join --reset: run it as root"
    assert Message.JOIN_REFUSED.value.startswith("Join refused")


def test_no_two_messages_are_the_same() -> None:
    assert len({message.value for message in Message}) == len(Message.__members__)


@pytest.mark.parametrize("message", [Message.KEY_MISMATCH, Message.KEY_MISMATCH_TPM, Message.IDENTITY_UNREADABLE])
def test_an_identity_that_does_not_load_names_the_way_back(message: Message) -> None:
    assert message.value.endswith("join again: bcd join --reset --yes, then bcd join")
