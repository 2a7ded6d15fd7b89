"""Whatever bytes come, bcd-fakehw's TPM answers like a TPM, and what it refuses has changed nothing."""

import secrets
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bcd.adapters.tpmsim import factory
from bcd.adapters.tpmsim.execute import execute
from bcd.adapters.tpmsim.space import Space
from bcd.adapters.tpmsim.state import State
from bcd.protocol.tpm2 import templates
from bcd.protocol.tpm2.structures import CommandAuth, Handle
from tests.contract.tpm import sent
from tests.contract.tpm.mistakes import MISTAKES
from tests.contract.tpm.test_answers import ALL
from tests.fakes.simtpm import ALL_BANKS

COMMANDS = sorted({one.command for one in MISTAKES} | {one.data for one in ALL})


@dataclass
class Loaded:
    """A node key, the AK, and a policy session are there; RSA keys are made, which takes long, in none of these."""

    state: State = field(default_factory=lambda: factory.fresh_state(ALL_BANKS))
    space: Space = field(default_factory=Space)

    def __post_init__(self) -> None:
        for command in (sent.create(), sent.create(templates.AK, Handle.ENDORSEMENT), sent.start()):
            assert self.answer(command)[6:10] == bytes(4)

    def answer(self, command: bytes) -> bytes:
        answer, self.state = execute(command, self.state, self.space, 0, secrets.token_bytes)
        return answer


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """A command, with a few bytes of it changed, left out or put in, and its size put right."""
    command = bytearray(draw(st.sampled_from(COMMANDS)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(10, max(10, len(command))))
        match draw(st.sampled_from(["change", "cut", "insert"])):
            case "change":
                command[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case "cut":
                del command[at : at + draw(st.integers(1, 9))]
            case _:
                command[at:at] = draw(st.binary(min_size=1, max_size=9))
    return sent.resized(bytes(command))


def is_rsa(command: bytes) -> bool:
    """Whether it may ask for an RSA key."""
    return b"\0\x01\0\x0b" in command


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changed())
def test_a_changed_command_is_answered_whole(command: bytes) -> None:
    if is_rsa(command):
        return
    loaded = Loaded()
    before = loaded.state
    answer = loaded.answer(command)
    assert int.from_bytes(answer[2:6]) == len(answer)
    if answer[6:10] != bytes(4):
        assert len(answer) == 10
        assert answer[:2] == b"\x80\x01"
        assert loaded.state == before
        assert len(loaded.space.objects) == 2
    assert loaded.answer(sent.sign())[6:10] in (bytes(4), bytes.fromhex("00000910"))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_refused(command: bytes) -> None:
    assert Loaded().answer(command)[6:10] != bytes(4)


@pytest.mark.parametrize("size", range(12))
def test_a_header_that_is_cut_off_is_refused(size: int) -> None:
    assert Loaded().answer(sent.sign()[:size])[6:10] in (bytes.fromhex("0000009a"), bytes.fromhex("00000142"))


@pytest.mark.parametrize("more", [-1, 1, 1 << 31])
def test_a_command_that_says_another_size_than_it_has_is_refused(more: int) -> None:
    command = sent.sign()
    lying = command[:2] + (len(command) + more).to_bytes(4) + command[6:]
    assert Loaded().answer(lying).hex() == "80010000000a00000142"


def test_an_hmac_session_can_be_started_and_authorizes_nothing_here() -> None:
    loaded = Loaded()
    started = loaded.answer(sent.start(kind=0))
    assert started[10:14] == bytes.fromhex("02000001")
    by_it = sent.sign(auth=CommandAuth(0x02000001, b"", 1, b""))
    assert loaded.answer(by_it).hex() == "80010000000a00000124"
