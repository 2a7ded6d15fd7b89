"""What bcd's processes send to a TPM: of every command there is, only the twelve of the profile."""

import json
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.adapters.tpm.link import Late
from bcd.adapters.tpm.stream import SocketLink
from bcd.protocol.tpm2.commands import CommandCode
from tests.fakes import commands, swtpm, tpm_proxy
from tests.fakes.commands import Ran
from tests.fakes.plane import Plane, control_plane
from tests.fakes.tpm_proxy import Answer, Before, Cut, Delay, Lose, TpmProxy, refuse

# By Part 2, 6.5.2, and not by the table that the client sends from.
PROFILE = {
    "CREATE_PRIMARY": 0x131,
    "READ_PUBLIC": 0x173,
    "NV_READ_PUBLIC": 0x169,
    "NV_READ": 0x14E,
    "START_AUTH_SESSION": 0x176,
    "POLICY_SECRET": 0x151,
    "ACTIVATE_CREDENTIAL": 0x147,
    "QUOTE": 0x158,
    "PCR_READ": 0x17E,
    "SIGN": 0x15D,
    "CERTIFY": 0x148,
    "FLUSH_CONTEXT": 0x165,
}
# TPM2_GetRandom for 8 bytes: what no process of ours sends.
GET_RANDOM = bytes.fromhex("80010000000c0000017b0008")
# As long as it says: of what says more, a stream's reader awaits the rest.
GARBAGE = Answer(bytes.fromhex("80010000001500000000") + b"no answer..")


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as home:
        state = Path(home) / "made"
        swtpm.manufacture(state, "--create-ek-cert")
        yield state


@pytest.fixture
def proxy(made: Path) -> Iterator[TpmProxy]:
    # A Unix socket's path has room for 107 bytes, which a test's own directory may not leave.
    with (
        tempfile.TemporaryDirectory() as home,
        swtpm.running(Path(home) / "run", made) as tpm,
        tpm_proxy.between(tpm.path) as proxy,
    ):
        yield proxy


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text("")
    return path


def identify(proxy: TpmProxy, config: Path) -> Ran:
    return commands.run("bcd-fakehw", "tpm", "identify", "--config", str(config), "--json", env=proxy.env)


def test_identify_sends_commands_of_the_profile_and_no_other(proxy: TpmProxy, config: Path) -> None:
    assert identify(proxy, config).status == 0
    assert set(proxy.codes) <= set(PROFILE.values())
    assert set(proxy.counts) <= set(PROFILE)
    # One node key and one ECC endorsement key are derived, and both are flushed again.
    assert (proxy.counts["CREATE_PRIMARY"], proxy.counts["FLUSH_CONTEXT"]) == (2, 2)


def allowed(plane: Plane, proxy: TpmProxy) -> None:
    """Whoever has the machine's first endorsement key may join."""
    rsa = json.loads(identify(proxy, plane.config).out)["endorsementKeys"][0]
    plane.admin("ek", "allow", rsa["publicKeySha256"].removeprefix("sha256:"), "--site", "lab", "--node-id", "rack-7")
    proxy.forget()


@pytest.mark.parametrize("attestor", ["join-token", "tpm"])
def test_a_node_with_its_key_in_the_tpm_sends_commands_of_the_profile_and_no_other(
    attestor: str, proxy: TpmProxy, tmp_path: Path
) -> None:
    """From the join over a session and a renewal to the next session, and all that looks at the node besides."""
    env = {**proxy.env, "BCD_FAKEHW_TPM_KEYS": "1"}
    with control_plane(tmp_path, "--leaf-lifetime", "20s") as plane:
        machine = plane.machine()
        if attestor == "tpm":
            allowed(plane, proxy)
        token = b"" if attestor == "tpm" else f"{plane.token()}\n".encode()
        joined = machine.run("join", "--attestor", attestor, stdin=token, env=env)
        assert joined.status == 0, joined.err
        node = machine.start("node", env=env)
        assert node.stderr is not None
        for event in (b"session up", b"renewed", b"session up"):
            while event not in (line := node.stderr.readline()):
                assert line, "the node ended"
        machine.run("status", env=env)
        machine.run("doctor", env=env)
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=commands.TIMEOUT_S)
    assert proxy.counts["CREATE_PRIMARY"] >= 3
    assert set(proxy.codes) <= set(PROFILE.values())
    # A join by TPM leaves none of the twelve out, so that none is there for nothing.
    print(f"\n{attestor}: {dict(proxy.counts)}")
    assert attestor == "join-token" or set(proxy.counts) == set(PROFILE)


def test_the_counter_would_see_another_command(proxy: TpmProxy) -> None:
    assert swtpm.SwTpm(Path(proxy.path).parent).raw(GET_RANDOM)[6:10] == bytes(4)
    assert proxy.codes == []
    link = SocketLink(proxy.path)
    assert link.transmit(GET_RANDOM)[6:10] == bytes(4)
    link.close()
    assert not set(proxy.codes) <= set(PROFILE.values())
    assert proxy.counts == {"0x0000017b": 1}


def test_two_processes_use_one_tpm_at_a_time_and_neither_waits_for_the_others_end(
    proxy: TpmProxy, config: Path
) -> None:
    link = SocketLink(proxy.path)
    link.transmit(GET_RANDOM)
    assert identify(proxy, config).status == 0
    link.transmit(GET_RANDOM)
    link.close()


def test_a_tpm_that_asks_for_the_same_bytes_again_gets_them(proxy: TpmProxy, config: Path) -> None:
    proxy.on(CommandCode.CREATE_PRIMARY, refuse(0x922), times=2)
    assert identify(proxy, config).status == 0
    assert proxy.counts["CREATE_PRIMARY"] == 4
    sent = [command for command in proxy.sent if command[6:10] == (0x131).to_bytes(4)]
    assert len({bytes(command) for command in sent}) == 2


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (refuse(0x922), "TPM_RC_RETRY, 0x922"),
        (refuse(0x100), "not started"),
        (GARBAGE, "PCR_Read failed: a malformed answer: 1853060965 items, at most 16"),
        (Cut(), "PCR_Read failed: a malformed answer: ends after 0 bytes"),
    ],
    ids=["again for ever", "not started", "garbage", "cut"],
)
def test_what_a_proxy_answers_is_what_a_process_says(
    act: tpm_proxy.Act, text: str, proxy: TpmProxy, config: Path
) -> None:
    proxy.on(None, act)
    done = identify(proxy, config)
    assert done.status == 75
    assert text in done.err
    proxy.clear()
    assert identify(proxy, config).status == 0


def test_an_answer_that_comes_later_is_waited_for(proxy: TpmProxy, config: Path) -> None:
    proxy.on(CommandCode.NV_READ, Delay(0.5), times=1)
    began = time.monotonic()
    assert identify(proxy, config).status == 0
    assert time.monotonic() - began >= 0.5


def test_something_may_happen_just_before_a_command(proxy: TpmProxy, config: Path) -> None:
    happened = threading.Event()
    proxy.on(CommandCode.CREATE_PRIMARY, Before(happened.set), times=1)
    found = json.loads(identify(proxy, config).out)
    assert happened.is_set()
    assert found["nodeKeys"] == {"possible": True}


def test_an_answer_that_is_lost_leaves_the_tpm_as_if_it_had_come(proxy: TpmProxy) -> None:
    proxy.on(None, Lose(), times=1)
    link = SocketLink(proxy.path, 0.2)
    with pytest.raises(Late):
        link.transmit(GET_RANDOM)
    assert link.transmit(GET_RANDOM)[6:10] == bytes(4)
    link.close()
    assert proxy.codes == [0x17B, 0x17B]
