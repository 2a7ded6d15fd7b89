"""The client over a scripted link: patience, room, late and malformed answers; every code and errno as a failure."""

import errno
import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.adapters.tpm import failures
from bcd.adapters.tpm.client import AGAIN_AFTER_S, AnotherKey, Client, Key
from bcd.adapters.tpm.failures import Refusal
from bcd.adapters.tpm.identify import LinkedTpm
from bcd.adapters.tpm.link import Late
from bcd.domain.model.failures import Failure, FixConfiguration, Message, TryLater
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.codes import Code, Rc
from bcd.protocol.tpm2.commands import AttestOut, CreatePrimaryOut, Empty, NvReadPublicOut, SignOut
from bcd.protocol.tpm2.structures import (
    NO_HASH_CHECK,
    Algorithm,
    CreationTicket,
    EcdsaSignature,
    Handle,
    NvAttribute,
    NvPublic,
    Public,
    Scheme,
    Signature,
)
from bcd.protocol.tpm2.wire import encode

FULL = 0x902
PATIENCE_S = 10.0
SHORT_S = 0.2
KEYS = [templates.node_key(bytes([number]) * 32) for number in range(5)]


def refusal(code: int) -> bytes:
    return bytes.fromhex("80010000000a") + code.to_bytes(4)


def made(handle: int, public: Public) -> bytes:
    out = CreatePrimaryOut(public, b"", b"", CreationTicket(0x8021, 0x40000001, b""), names.name(public))
    body = encode(out)
    body = handle.to_bytes(4) + len(body).to_bytes(4) + body + bytes.fromhex("0000010000")
    return b"\x80\x02" + (10 + len(body)).to_bytes(4) + bytes(4) + body


def answered(parameters: object, authorizations: int) -> bytes:
    body = encode(parameters)
    body = len(body).to_bytes(4) + body + bytes.fromhex("0000010000") * authorizations
    return b"\x80\x02" + (10 + len(body)).to_bytes(4) + bytes(4) + body


OK = refusal(0)
Step = bytes | Exception


class Script:
    """`Link` that gives its steps one by one, and the last for ever."""

    def __init__(self, *steps: Step) -> None:
        self.steps = deque(steps)
        self.sent: list[bytes] = []
        self.closed = 0

    def transmit(self, command: bytes) -> bytes:
        self.sent.append(command)
        step = self.steps.popleft() if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        return step

    def close(self) -> None:
        self.closed += 1

    @property
    def codes(self) -> list[int]:
        return [int.from_bytes(command[6:10]) for command in self.sent]


def over(*steps: Step) -> tuple[Client, Script, list[float]]:
    script, waits = Script(*steps), list[float]()
    return Client(script, "the device", waits.append), script, waits


def read_public(client: Client) -> object:
    return client.run(commands.READ_PUBLIC, (0x81010001,), Empty())


@pytest.mark.parametrize("code", [0x922, 0x908, 0x90A])
def test_the_same_bytes_are_sent_again_when_the_tpm_asks(code: int) -> None:
    """B29."""
    client, script, waits = over(refusal(code), refusal(code), refusal(0x18B))
    with pytest.raises(Refusal) as caught:
        read_public(client)
    assert caught.value.code == Code(0x18B)
    assert len(set(script.sent)) == 1
    assert waits == list(AGAIN_AFTER_S[:2])


def test_the_patience_is_bounded() -> None:
    client, script, waits = over(refusal(0x922))
    with pytest.raises(TryLater) as caught:
        read_public(client)
    assert caught.value.message is Message.TPM_BUSY
    assert len(script.sent) == 1 + len(AGAIN_AFTER_S)
    assert sum(waits) == pytest.approx(2.0)


@pytest.mark.parametrize("code", [0x101, 0x18B, 0x921, 0x9A2])
def test_nothing_else_is_sent_again(code: int) -> None:
    client, script, _ = over(refusal(code))
    with pytest.raises(Refusal):
        read_public(client)
    assert len(script.sent) == 1


def test_without_room_our_own_keys_go_and_the_command_comes_once_more() -> None:
    """B30."""
    client, script, _ = over(made(1, KEYS[0]), refusal(FULL), OK, made(2, KEYS[1]))
    client.load(Key(Handle.OWNER, KEYS[0]))
    assert client.load(Key(Handle.OWNER, KEYS[1])).handle == 2
    assert script.codes == [0x131, 0x131, 0x165, 0x131]
    assert script.sent[1] == script.sent[3]


def test_without_room_and_without_keys_of_ours_it_is_said_at_once() -> None:
    client, script, _ = over(refusal(FULL))
    with pytest.raises(Refusal) as caught:
        read_public(client)
    assert len(script.sent) == 1
    assert failures.of_code(caught.value, "it").message is Message.TPM_FULL


@pytest.mark.parametrize("full", [FULL, 0x903])
def test_what_a_late_answer_would_have_told_of_goes_with_the_transport_when_it_fills_the_tpm(full: int) -> None:
    client, script, _ = over(Late(), refusal(full), made(1, KEYS[1]), refusal(full))
    with pytest.raises(TryLater):
        client.load(Key(Handle.OWNER, KEYS[0]))
    assert script.closed == 0
    assert client.load(Key(Handle.OWNER, KEYS[1])).handle == 1
    assert script.closed == 1
    # Once: what fills it now is somebody else's.
    with pytest.raises(Refusal):
        client.run(commands.READ_PUBLIC, (0x81010001,), Empty())
    assert script.closed == 1


def test_a_key_that_a_command_names_is_not_put_out_for_it() -> None:
    client, script, _ = over(made(1, KEYS[0]), refusal(FULL))
    loaded = client.load(Key(Handle.OWNER, KEYS[0]))
    with pytest.raises(Refusal):
        client.run(commands.READ_PUBLIC, (loaded.handle,), Empty())
    assert script.codes == [0x131, 0x173]


def test_three_keys_stay_and_the_one_unused_longest_goes() -> None:
    client, script, _ = over(*(made(number, KEYS[number]) for number in range(3)), OK, made(3, KEYS[3]), OK)
    for number in (0, 1, 2, 0, 3):
        client.load(Key(Handle.OWNER, KEYS[number]))
    assert script.codes == [0x131] * 3 + [0x165, 0x131]
    assert script.sent[3][10:] == (1).to_bytes(4), "1 was used before 2 and 0"
    client.close()
    assert [command[10:] for command in script.sent[5:]] == [(n).to_bytes(4) for n in (2, 0, 3)]
    assert script.closed == 1


def test_a_key_without_noda_is_refused_and_flushed() -> None:
    """B27."""
    client, script, _ = over(made(1, replace(KEYS[0], attributes=0x00040072)), OK)
    with pytest.raises(AnotherKey):
        client.load(Key(Handle.OWNER, KEYS[0]))
    assert script.codes == [0x131, 0x165]


@pytest.mark.parametrize(
    ("step", "message"),
    {
        "nothing": (b"", Message.TPM_FAILED),
        "cut": (refusal(0x18B)[:-1], Message.TPM_FAILED),
        "long": (refusal(0x18B) + b"\0", Message.TPM_FAILED),
        "TPM 1.2": (bytes.fromhex("00c40000000a0000001e"), Message.TPM_OLD),
        "late": (Late(), Message.TPM_BUSY),
        "not started": (refusal(0x100), Message.TPM_NOT_STARTED),
        "unplugged": (OSError(errno.EPIPE, ""), Message.TPM_FAILED),
    }.values(),
)
def test_an_answer_that_is_none_is_the_documented_failure(step: Step, message: Message) -> None:
    client, _, _ = over(step)
    with pytest.raises(TryLater) as caught:
        read_public(client)
    assert caught.value.message is message
    if message is Message.TPM_FAILED:
        assert "ReadPublic" in caught.value.text


def test_loaded_keys_die_with_the_transport() -> None:
    client, script, _ = over(made(1, KEYS[0]), OSError(errno.EIO, ""), made(2, KEYS[0]))
    client.load(Key(Handle.OWNER, KEYS[0]))
    with pytest.raises(TryLater):
        read_public(client)
    assert client.load(Key(Handle.OWNER, KEYS[0])).handle == 2
    assert script.codes == [0x131, 0x173, 0x131]


OWN = [Key(Handle.OWNER, template) for template in KEYS]
CERTIFY = commands.CertifyIn(b"", Scheme(Algorithm.NULL, None))
ATTESTED = answered(AttestOut(b"x", Signature(Algorithm.ECDSA, EcdsaSignature(0xB, b"r", b"s"))), 2)


def certified(*steps: Step) -> Script:
    """What is sent for a Certify of the first key by the second."""
    client, script, _ = over(*steps)
    _, public = client.use((OWN[0], OWN[1]), commands.CERTIFY, CERTIFY)
    assert public == (KEYS[0], KEYS[1])
    return script


def test_after_a_clear_a_command_is_sent_again_on_a_new_descriptor_once() -> None:
    client, script, _ = over(OSError(errno.EFAULT, ""), refusal(0x18B))
    with pytest.raises(Refusal):
        read_public(client)
    assert (script.codes, script.closed) == ([0x173, 0x173], 1)
    client, script, _ = over(OSError(errno.EFAULT, ""))
    with pytest.raises(TryLater):
        read_public(client)
    assert script.codes == [0x173, 0x173]


def test_a_tpm_that_was_away_and_is_back_is_asked_on_a_new_descriptor() -> None:
    """Its driver was bound anew, or the software TPM started again: what is written to the old descriptor reaches
    nobody. A key that could not be made for that would be a file until the next renewal."""
    pipe = OSError(errno.EPIPE, "")
    client, script, _ = over(pipe, made(1, KEYS[0]))
    assert client.load(OWN[0]).handle == 1
    assert (script.codes, script.closed) == ([0x131, 0x131], 1)
    script = certified(made(1, KEYS[0]), made(2, KEYS[1]), pipe, made(1, KEYS[0]), made(2, KEYS[1]), ATTESTED)
    assert script.codes == [0x131, 0x131, 0x148, 0x131, 0x131, 0x148]


@pytest.mark.parametrize("gone", [errno.EFAULT, errno.EINVAL, errno.EPIPE], ids=errno.errorcode.get)
def test_what_names_a_session_is_not_sent_on_a_descriptor_that_does_not_have_it(gone: int) -> None:
    client, script, _ = over(OSError(gone, ""), OK)
    wanted = commands.PolicySecretIn(b"", b"", b"", 0)
    with pytest.raises(TryLater):
        client.run(commands.POLICY_SECRET, (Handle.ENDORSEMENT, 0x03000000), wanted)
    assert script.codes == [0x151]


def test_a_command_over_keys_derives_them_first_and_names_them_in_order() -> None:
    script = certified(made(1, KEYS[0]), made(2, KEYS[1]), ATTESTED)
    assert script.codes == [0x131, 0x131, 0x148]
    assert script.sent[2][10:18] == bytes.fromhex("0000000100000002")


@pytest.mark.parametrize("gone", [0x18B, 0x28B, 0x910, 0x911])
def test_keys_the_tpm_has_lost_are_derived_once_more_all_of_them(gone: int) -> None:
    again = (OK, OK, made(2, KEYS[0]), made(1, KEYS[1]), ATTESTED)
    script = certified(made(1, KEYS[0]), made(2, KEYS[1]), refusal(gone), *again)
    assert script.codes == [0x131, 0x131, 0x148, 0x165, 0x165, 0x131, 0x131, 0x148]
    assert script.sent[-1][10:18] == bytes.fromhex("0000000200000001")


def test_keys_the_kernel_has_lost_are_derived_once_more() -> None:
    gone = OSError(errno.EINVAL, "")
    script = certified(made(1, KEYS[0]), made(2, KEYS[1]), gone, made(1, KEYS[0]), made(2, KEYS[1]), ATTESTED)
    assert script.codes == [0x131, 0x131, 0x148, 0x131, 0x131, 0x148]


@pytest.mark.parametrize("gone", [refusal(0x910), OSError(errno.EINVAL, "")], ids=["code", "errno"])
def test_keys_that_are_lost_again_are_not_derived_for_ever(gone: Step) -> None:
    flushed = (OK, OK) if isinstance(gone, bytes) else ()
    client, script, _ = over(
        made(1, KEYS[0]), made(2, KEYS[1]), gone, *flushed, made(1, KEYS[0]), made(2, KEYS[1]), gone
    )
    with pytest.raises((Refusal, TryLater)):
        client.use((OWN[0], OWN[1]), commands.CERTIFY, CERTIFY)
    assert script.codes.count(0x148) == 2


def test_another_refusal_derives_nothing() -> None:
    client, script, _ = over(made(1, KEYS[0]), made(2, KEYS[1]), refusal(0x9A2))
    with pytest.raises(Refusal):
        client.use((OWN[0], OWN[1]), commands.CERTIFY, CERTIFY)
    assert script.codes == [0x131, 0x131, 0x148]


def test_a_handle_given_out_anew_denotes_no_key_of_before() -> None:
    """The TPM was reset between two commands: what had handle 1 must not sign as the other key."""
    client, script, _ = over(made(1, KEYS[0]), made(1, KEYS[1]), made(2, KEYS[0]))
    client.load(OWN[0])
    client.load(OWN[1])
    assert client.load(OWN[0]).handle == 2
    script = certified(made(1, KEYS[0]), made(1, KEYS[1]), made(2, KEYS[0]), ATTESTED)
    assert script.sent[-1][10:18] == bytes.fromhex("0000000200000001")


def test_two_keys_with_one_handle_are_not_taken_for_two() -> None:
    client, script, _ = over(*(made(1, KEYS[number % 2]) for number in range(4)), ATTESTED)
    with pytest.raises(TryLater, match="does not keep the keys it needs"):
        client.use((OWN[0], OWN[1]), commands.CERTIFY, CERTIFY)
    assert 0x148 not in script.codes


def test_room_is_made_by_what_no_running_command_needs() -> None:
    steps = (made(1, KEYS[0]), made(2, KEYS[1]), made(3, KEYS[2]), refusal(FULL), OK, ATTESTED)
    client, script, _ = over(*steps)
    for key in (OWN[0], OWN[1], OWN[2]):
        client.load(key)
    client.use((OWN[0], OWN[1]), commands.CERTIFY, CERTIFY)
    assert script.codes == [0x131, 0x131, 0x131, 0x148, 0x165, 0x148]
    assert script.sent[4][10:] == bytes.fromhex("00000003")
    # All that are there are needed: the fourth takes the place of the one that is not.
    client, script, _ = over(made(1, KEYS[0]), made(2, KEYS[1]), made(3, KEYS[2]), OK, made(2, KEYS[3]), ATTESTED)
    for key in (OWN[1], OWN[0], OWN[2]):
        client.load(key)
    client.use((OWN[1], OWN[3]), commands.CERTIFY, CERTIFY)
    assert script.sent[3][10:] == bytes.fromhex("00000002")


def test_nobody_elses_command_comes_between_a_key_and_its_use() -> None:
    """Two threads of a node: one renews while the other signs a handshake. What is derived is used before it goes."""
    intruded = threading.Event()
    sign = commands.SignIn(b"", Scheme(Algorithm.ECDSA, Algorithm.SHA256), NO_HASH_CHECK)
    signed = answered(SignOut(Signature(Algorithm.ECDSA, EcdsaSignature(0xB, b"r", b"s"))), 1)
    replies = {0x131: lambda: made(1, KEYS[0]), 0x15D: lambda: signed}

    class Watched(Script):
        def transmit(self, command: bytes) -> bytes:
            super().transmit(command)
            if threading.current_thread() is other:
                intruded.set()
            elif self.codes[-1] == 0x15D:
                # Long enough for whoever is not kept out.
                intruded.wait(SHORT_S)
            else:
                other.start()
            return replies[self.codes[-1]]()

    client = Client(Watched(OK), "it")
    used = threading.Event()
    other = threading.Thread(target=lambda: (client.use((OWN[0],), commands.SIGN, sign), used.set()))
    client.use((OWN[0],), commands.SIGN, sign)
    assert not intruded.is_set()
    other.join(PATIENCE_S)
    assert used.is_set()


def test_a_released_key_is_flushed_and_derived_anew() -> None:
    client, script, _ = over(made(1, KEYS[0]), OK, made(2, KEYS[0]))
    client.load(OWN[0])
    client.release(OWN[0])
    client.release(OWN[1])
    assert client.load(OWN[0]).handle == 2
    assert script.codes == [0x131, 0x165, 0x131]


def test_a_flush_is_sent_again_when_the_tpm_asks() -> None:
    """B29: a key whose flush is given up keeps its place for ever."""
    client, script, _ = over(made(1, KEYS[0]), refusal(0x922), refusal(0x922), OK)
    client.load(OWN[0])
    client.release(OWN[0])
    assert script.codes == [0x131, 0x165, 0x165, 0x165]


def test_after_a_malformed_answer_nothing_that_follows_on_the_link_is_read() -> None:
    client, script, _ = over(made(1, KEYS[0]), b"", made(2, KEYS[0]))
    client.load(Key(Handle.OWNER, KEYS[0]))
    with pytest.raises(TryLater):
        read_public(client)
    assert script.closed == 1
    assert client.load(Key(Handle.OWNER, KEYS[0])).handle == 2


def test_a_key_whose_name_is_anothers_is_refused() -> None:
    reply = made(1, KEYS[0])
    name = names.name(KEYS[0])
    client, script, _ = over(reply.replace(name, names.name(KEYS[1])), OK)
    with pytest.raises(AnotherKey):
        client.load(Key(Handle.OWNER, KEYS[0]))
    assert script.codes == [0x131, 0x165]


def test_a_key_that_is_another_is_why_node_keys_cannot_live_there() -> None:
    """B27: the report says so, and goes on."""
    odd = replace(KEYS[0], attributes=0x00040072)

    class Odd(Script):
        def transmit(self, command: bytes) -> bytes:
            super().transmit(command)
            return {0x131: made(1, odd), 0x165: OK, 0x17E: refusal(0x1C3)}.get(self.codes[-1], refusal(0x18B))

    found = LinkedTpm(lambda: Client(Odd(OK), "it")).identify()
    assert found.banks == ()
    assert found.node_keys is not None
    assert "CreatePrimary failed: made another key than was asked for" in found.node_keys.text
    assert [one.spki for one in found.endorsement_keys] == [b"", b""]


def test_an_index_that_gives_less_than_was_asked_ends_the_report() -> None:
    """Else it would be read for ever."""
    public = NvReadPublicOut(NvPublic(0x01C00002, 0xB, NvAttribute.WRITTEN | NvAttribute.AUTH_READ, b"", 8), b"")
    body = encode(public)
    empty = bytes.fromhex("8002000000150000000000000002000000000100" + "00")

    class Short(Script):
        def transmit(self, command: bytes) -> bytes:
            super().transmit(command)
            described = b"\x80\x01" + (10 + len(body)).to_bytes(4) + bytes(4) + body
            return {0x169: described, 0x14E: empty}.get(self.codes[-1], refusal(0x1C3))

    with pytest.raises(TryLater, match="NV_Read failed: gave 0 bytes for 8"):
        LinkedTpm(lambda: Client(Short(OK), "it")).identify()


def test_an_end_that_fails_is_an_end() -> None:
    client, script, _ = over(made(1, KEYS[0]), OSError(errno.EIO, ""))
    client.load(Key(Handle.OWNER, KEYS[0]))
    client.close()
    assert script.closed >= 1


class Silent(Script):
    """Answers no FlushContext until it is let go."""

    def __init__(self, *steps: Step) -> None:
        super().__init__(*steps)
        self.let_go = threading.Event()

    def transmit(self, command: bytes) -> bytes:
        if int.from_bytes(command[6:10]) == commands.CommandCode.FLUSH_CONTEXT:
            self.let_go.wait(PATIENCE_S)
        return super().transmit(command)


def test_an_end_does_not_wait_for_a_tpm_that_answers_nothing() -> None:
    """B39: SIGTERM comes while the chip hangs."""
    silent = Silent(made(1, KEYS[0]), OK)
    client = Client(silent, "it", close_within_s=0.01)
    client.load(Key(Handle.OWNER, KEYS[0]))
    client.close()
    assert silent.closed == 0
    silent.let_go.set()


ERRNOS = {
    **dict.fromkeys((errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ENOTDIR, errno.ECONNREFUSED), Message.TPM_ABSENT),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), Message.TPM_OPEN),
    **dict.fromkeys((errno.EBUSY, errno.ETIME, errno.ETIMEDOUT, errno.EAGAIN, errno.EINTR), Message.TPM_BUSY),
    **dict.fromkeys((errno.ENOTTY, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG), Message.TPM_NOT_ONE),
}


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_every_errno_is_a_failure_that_names_the_device_and_what_the_system_said(number: int) -> None:
    found = failures.of_errno(OSError(number, ""), "/dev/tpmrm7", "PCR_Read", "the setting")
    assert isinstance(found, FixConfiguration if found.message is Message.TPM_NOT_ONE else TryLater)
    assert "/dev/tpmrm7" in found.text
    assert os.strerror(number) in found.text
    assert found.message is ERRNOS.get(number, Message.TPM_FAILED)


def test_an_error_without_a_number_is_a_failure_too() -> None:
    """A socket's path that is too long, for one."""
    found = failures.of_errno(OSError("AF_UNIX path too long"), "it", "PCR_Read", "the setting")
    assert found.text == "it is no TPM: AF_UNIX path too long: name the TPM with the setting"


def test_what_a_link_says_of_something_that_is_no_tpm_is_said() -> None:
    found = failures.of_errno(OSError(errno.ENOTTY, "a picture"), "it", "PCR_Read", "the setting")
    assert found.text == "it is no TPM: a picture: name the TPM with the setting"


@pytest.mark.parametrize("code", list(Rc), ids=lambda code: code.name)
def test_every_code_is_a_failure_that_names_itself(code: Rc) -> None:
    found = failures.of_code(Refusal("Sign", (Handle.OWNER,), Code(code)), "it")
    special = {
        Rc.INITIALIZE: Message.TPM_NOT_STARTED,
        Rc.BAD_AUTH: Message.TPM_PASSWORD,
        Rc.AUTH_FAIL: Message.TPM_PASSWORD,
        Rc.HIERARCHY: Message.TPM_HIERARCHY,
        Rc.LOCKOUT: Message.TPM_LOCKOUT,
        Rc.OBJECT_MEMORY: Message.TPM_FULL,
        Rc.OBJECT_HANDLES: Message.TPM_FULL,
        Rc.SESSION_MEMORY: Message.TPM_FULL,
        Rc.SESSION_HANDLES: Message.TPM_FULL,
        Rc.RETRY: Message.TPM_BUSY,
        Rc.YIELDED: Message.TPM_BUSY,
        Rc.TESTING: Message.TPM_BUSY,
    }
    assert found.message is special.get(code, Message.TPM_FAILED)
    if found.message is Message.TPM_FAILED:
        assert f"Sign failed: TPM_RC_{code.name}" in found.text


@pytest.mark.parametrize(
    ("code", "what"), [(0x902, "object"), (0x906, "object"), (0x903, "session"), (0x905, "session")]
)
def test_a_full_tpm_says_what_it_has_no_more_room_for(code: int, what: str) -> None:
    found = failures.of_code(Refusal("StartAuthSession", (Handle.NULL, Handle.NULL), Code(code)), "it")
    assert found.text.startswith(f"the TPM it has no free {what} slots (others hold them): end what uses it")


def test_a_password_is_the_hierarchys_that_the_command_named() -> None:
    wrong = Code(0x9A2)
    assert (
        "endorsement hierarchy" in failures.of_code(Refusal("CreatePrimary", (Handle.ENDORSEMENT,), wrong), "it").text
    )
    assert "owner hierarchy" in failures.of_code(Refusal("CreatePrimary", (Handle.OWNER,), wrong), "it").text
    for handles in ((), (0x01C00002, 0x01C00002)):
        assert failures.of_code(Refusal("NV_Read", handles, wrong), "it").message is Message.TPM_FAILED


class Noise:
    def __init__(self, draw: Callable[[], bytes]) -> None:
        self.draw = draw

    def transmit(self, command: bytes) -> bytes:
        return self.draw()

    def close(self) -> None:
        return


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_whatever_a_tpm_answers_identify_ends_with_a_report_or_a_documented_failure(data: st.DataObject) -> None:
    replies = st.one_of(
        st.binary(max_size=40),
        st.sampled_from([0x18B, 0x9A2, 0x902, 0x2C3, 0x101, 0x922, 0]).map(refusal),
        st.sampled_from(KEYS).map(lambda key: made(0x80000000, key)),
        st.just(bytes.fromhex("80010000001a0000000000000001") + bytes(12)),
    )
    noise = Noise(lambda: data.draw(replies))
    try:
        LinkedTpm(lambda: Client(noise, "it", lambda _: None)).identify()
    except Failure as failure:
        assert failure.message.name.startswith("TPM_")
