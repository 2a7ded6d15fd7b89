"""A software TPM's file: whole, locked, nobody else's to read; and what its link makes of trouble."""

import errno
import multiprocessing
import os
import stat
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from bcd.adapters.tpm.client import Client, Key
from bcd.adapters.tpm.failures import Refusal
from bcd.adapters.tpm.identify import LinkedTpm
from bcd.adapters.tpm.link import Late
from bcd.adapters.tpmsim.file import NoState, create, held
from bcd.adapters.tpmsim.link import SimLink
from bcd.adapters.tpmsim.state import FOREVER, Faults, State
from bcd.domain.model.failures import TryLater
from bcd.protocol.tpm2 import commands, templates
from bcd.protocol.tpm2.commands import SignIn
from bcd.protocol.tpm2.structures import NO_HASH_CHECK, Handle
from bcd.protocol.tpm2.wire import decode, encode
from tests.contract.tpm import sent
from tests.fakes import simtpm
from tests.fakes.simtpm import SimTpm

NODE_KEY = Key(Handle.OWNER, templates.node_key(bytes([7]) * 32))
AK = Key(Handle.ENDORSEMENT, templates.AK)
SIGN = SignIn(bytes(32), sent.ECDSA, NO_HASH_CHECK)
# Above what a signature takes by a tenfold: suites sign thousands of times.
SIGN_S = 0.002


@pytest.fixture
def tpm(tmp_path: Path) -> SimTpm:
    return simtpm.bare(tmp_path)


def code(link: SimLink, command: bytes) -> int:
    return int.from_bytes(link.transmit(command)[6:10])


def test_nobody_else_can_read_it_and_a_change_leaves_it_so(tpm: SimTpm) -> None:
    before = os.stat(tpm.path)
    old = os.umask(0)
    try:
        tpm.bench.power_cycle(loss=True)
    finally:
        os.umask(old)
    assert os.stat(tpm.path).st_ino != before.st_ino
    assert [stat.S_IMODE(os.stat(tpm.path).st_mode), stat.S_IMODE(before.st_mode)] == [0o600, 0o600]
    assert os.listdir(tpm.home) == ["tpm.state"]


def test_an_existing_file_is_never_written_over(tpm: SimTpm, tmp_path: Path) -> None:
    before = Path(tpm.path).read_bytes()
    with pytest.raises(FileExistsError):
        simtpm.bare(tmp_path)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        create(str(tmp_path / "dangling"), tpm.bench.state())
    assert Path(tpm.path).read_bytes() == before
    assert not (tmp_path / "nowhere").exists()


def test_what_a_crash_left_beside_it_is_no_trouble(tpm: SimTpm) -> None:
    Path(f"{tpm.path}.new").write_bytes(b"half")
    assert tpm.bench.state().boot == 1
    tpm.bench.power_cycle(loss=False)
    assert tpm.bench.state().boot == 2


def test_each_cut_of_the_file_is_no_state(tpm: SimTpm) -> None:
    whole = Path(tpm.path).read_bytes()
    for size in range(0, len(whole), 97):
        Path(tpm.path).write_bytes(whole[:size])
        with pytest.raises(NoState), held(tpm.path):
            pass
        with pytest.raises(OSError, match=str(errno.ENOTTY)):
            tpm.link().transmit(sent.create())
    Path(tpm.path).write_bytes(whole + b"\0")
    with pytest.raises(NoState), held(tpm.path):
        pass
    assert encode(decode(State, whole)) == whole


def _count_up(path: str, times: int) -> None:
    for _ in range(times):
        with held(path) as kept:
            kept.write(replace(kept.state, extends=kept.state.extends + 1))


def test_two_processes_take_turns(tpm: SimTpm) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_count_up, args=(tpm.path, 50)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert tpm.bench.state().extends == 150


def test_what_is_loaded_belongs_to_its_link(tpm: SimTpm) -> None:
    first, second = tpm.link(), tpm.link()
    assert [code(first, sent.create()) for _ in range(4)] == [0, 0, 0, 0x902]
    assert code(second, sent.read_public(0x80000000)) == 0x910
    assert code(second, sent.create()) == 0
    first.close()
    assert code(first, sent.read_public(0x80000000)) == 0x910
    assert code(second, sent.read_public(0x80000000)) == 0


def test_commands_of_the_profile_leave_the_file_alone(tpm: SimTpm) -> None:
    """Only the RSA key that is made for the first time is kept, as making one takes long."""
    link = tpm.link()
    assert code(link, sent.create(templates.EK_RSA_2048, Handle.ENDORSEMENT)) == 0
    before = os.stat(tpm.path)
    for command in (sent.create(), sent.sign(0x80000001), sent.start(), sent.flush(0x80000000)):
        assert code(link, command) == 0
    assert code(link, sent.create(templates.EK_RSA_2048, Handle.ENDORSEMENT)) == 0
    assert (os.stat(tpm.path).st_ino, os.stat(tpm.path).st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_signature_is_quick(tpm: SimTpm) -> None:
    client = tpm.client()
    client.use((NODE_KEY,), commands.SIGN, SIGN)
    took = []
    for _ in range(200):
        begun = time.perf_counter()
        client.use((NODE_KEY,), commands.SIGN, SIGN)
        took.append(time.perf_counter() - begun)
    client.close()
    assert median(took) < SIGN_S


def test_faults_are_met_as_often_as_was_asked_for_and_in_their_order(tpm: SimTpm) -> None:
    tpm.bench.set_faults(lambda _: Faults(late=1, busy=1, retry=2))
    link = tpm.link()
    with pytest.raises(Late):
        link.transmit(sent.create())
    with pytest.raises(OSError, match=str(errno.EBUSY)):
        link.transmit(sent.create())
    assert [code(link, sent.create()) for _ in range(3)] == [0x922, 0x922, 0]


def test_what_lasts_for_ever_does_not_wear_out(tpm: SimTpm) -> None:
    tpm.bench.set_faults(lambda _: Faults(retry=FOREVER))
    link = tpm.link()
    assert {code(link, sent.create()) for _ in range(5)} == {0x922}
    assert tpm.bench.state().faults.retry == FOREVER


def test_a_tpm_of_1_2_one_that_is_not_started_and_a_full_one(tpm: SimTpm) -> None:
    link = tpm.link()
    for faults, answer in (
        (Faults(tpm_1_2=1), "00c40000000a0000001e"),
        (Faults(not_started=1), "80010000000a00000100"),
        (Faults(held=3), "80010000000a00000902"),
    ):
        tpm.bench.set_faults(lambda _, faults=faults: faults)  # type: ignore[misc]
        assert link.transmit(sent.create()).hex() == answer
    tpm.bench.set_faults(lambda _: Faults(held=2))
    assert [code(link, sent.create()) for _ in range(2)] == [0, 0x902]


def test_a_wall_clock_that_is_set_back_stops_the_tpms_and_no_more(tpm: SimTpm) -> None:
    state = tpm.bench.state()
    later, _ = state.clock_at(state.since_ms + 5000)
    assert later == state.clock_ms + 5000
    assert state.clock_at(state.since_ms - 5000) == (state.clock_ms, 1)
    lost = replace(state, clock_ms=8192, safe=0)
    assert lost.clock_at(state.since_ms + 4095) == (12287, 0)
    assert lost.clock_at(state.since_ms + 4096) == (12288, 1)


NO_CERTIFICATE = {
    "none at all": (),
    "an index that was never written": (0x01C00002, 0x01C0000A),
    "one of a later template alone": (0x01C00012,),
    "a chain alone": (0x01C00100,),
}


@pytest.mark.parametrize("profile", NO_CERTIFICATE)
def test_a_tpm_without_certificates_is_looked_at_without_trouble(profile: str, tmp_path: Path) -> None:
    """B46."""
    tpm = simtpm.made(tmp_path)
    with_certificates = LinkedTpm(tpm.client).identify()
    tpm.bench.remove_certificates()
    for index in NO_CERTIFICATE[profile]:
        tpm.bench.store(index, None if "never" in profile else b"DER")
    found = LinkedTpm(tpm.client).identify()
    assert [one.certificate for one in found.endorsement_keys] == [None, None]
    assert [one.sha256 for one in found.endorsement_keys] == [one.sha256 for one in with_certificates.endorsement_keys]
    assert len(found.others) == (1 if "alone" in profile else 0)
    assert found.trouble is None


def test_a_client_finds_its_keys_again_after_a_power_cycle(tpm: SimTpm) -> None:
    client = Client(tpm.link(), tpm.path)
    _, before = client.use((NODE_KEY,), commands.SIGN, SIGN)
    tpm.bench.power_cycle(loss=True)
    _, after = client.use((NODE_KEY,), commands.SIGN, SIGN)
    assert after == before
    tpm.bench.clear()
    _, cleared = client.use((NODE_KEY,), commands.SIGN, SIGN)
    assert cleared != before
    client.close()


def test_what_late_answers_would_have_told_of_does_not_fill_the_tpm_for_good(tpm: SimTpm) -> None:
    client = tpm.client()
    for number in range(3):
        tpm.bench.set_faults(lambda _: Faults(late=1))
        with pytest.raises(TryLater, match="no answer to CreatePrimary"):
            client.load(Key(Handle.OWNER, templates.node_key(bytes([number]) * 32)))
    answer, _ = client.use((NODE_KEY, AK), commands.CERTIFY, commands.CertifyIn(b"", sent.NULL))
    assert answer.parameters.attest
    client.close()


def test_places_that_others_have_are_theirs(tpm: SimTpm) -> None:
    """B30: without a late answer there is nothing to give back."""
    client = tpm.client()
    client.load(NODE_KEY)
    tpm.bench.set_faults(lambda _: Faults(held=2))
    with pytest.raises(Refusal, match="0x902"):
        client.use((NODE_KEY, AK), commands.CERTIFY, commands.CertifyIn(b"", sent.NULL))
    client.close()


@pytest.mark.parametrize(("bank", "pcr"), [(0x000C, 0), (0x000B, 24), (0x000B, -1)])
def test_a_pcr_that_is_not_there_cannot_be_extended(bank: int, pcr: int, tmp_path: Path) -> None:
    tpm = simtpm.bare(tmp_path, (0x000B,))
    before = tpm.bench.state()
    with pytest.raises(ValueError):
        tpm.bench.extend(bank, pcr, bytes(32))
    assert tpm.bench.state() == before
