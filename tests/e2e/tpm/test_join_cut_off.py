"""What comes between the rounds of a join by TPM: kills, Ctrl-C, a TPM that is slow or gone."""

import signal
import subprocess
import threading
import time

import pytest

from bcd.domain.model.datadir import PENDING
from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from bcd.protocol.pki import csr
from bcd.protocol.tpm2 import names
from bcd.protocol.tpm2.commands import CommandCode
from bcd.protocol.tpm2.credential import make_credential
from bcd.protocol.tpm2.structures import Algorithm, Public
from bcd.protocol.tpm2.wire import decode
from tests.e2e.messages.test_node_messages import scripted
from tests.fakes import commands
from tests.fakes.commands import Ran
from tests.fakes.fitted_machine import OnSwTpm
from tests.fakes.node_process import PATIENCE_S, until
from tests.fakes.plane import Plane
from tests.fakes.tpm_proxy import Before, Delay

pytestmark = pytest.mark.usefixtures("ended")


def done(process: "subprocess.Popen[bytes]") -> Ran:
    out, err = process.communicate(timeout=commands.TIMEOUT_S)
    return Ran(process.returncode, out.decode(), err.decode())


def test_a_join_that_is_killed_between_its_rounds_goes_on_with_the_same_request(one: OnSwTpm) -> None:
    one.fitted.allowed()
    process = one.fitted.start_join()
    one.proxy.on(CommandCode.ACTIVATE_CREDENTIAL, Before(process.kill), times=1)
    assert done(process).status == -signal.SIGKILL
    one.tpm.free()
    request = one.fitted.pending_csr
    assert not (one.fitted.machine.data / "identity.json").exists()
    # Nothing has to be said again.
    resumed = one.fitted.run("join")
    assert resumed.status == 0, resumed.err
    assert not (one.fitted.machine.data / PENDING).exists()
    assert one.fitted.leaf.spki == csr.key_of(request)
    assert one.fitted.row()["nodeKey"] == "tpm"


def test_a_join_that_is_killed_after_its_proof_goes_on_with_the_same_request(plane: Plane, one: OnSwTpm) -> None:
    """The control plane may have issued the certificate already."""
    one.fitted.allowed()
    server, stopped = plane.server, threading.Event()
    assert server is not None

    def stop() -> None:
        server.send_signal(signal.SIGSTOP)
        stopped.set()

    # The last thing the TPM is asked for before the answer leaves.
    one.proxy.on(CommandCode.CERTIFY, Before(stop), times=1)
    process = one.fitted.start_join()
    assert process.stderr is not None
    try:
        assert stopped.wait(PATIENCE_S)
        assert b"the TPM answers the control plane's challenge" in process.stderr.readline()
        process.kill()
        assert done(process).status == -signal.SIGKILL
    finally:
        server.send_signal(signal.SIGCONT)
    one.tpm.free()
    request = one.fitted.pending_csr
    one.fitted.joined()
    assert one.fitted.leaf.spki == csr.key_of(request)
    assert one.fitted.row()["generation"] == 1


def test_ctrl_c_under_a_command_ends_at_once_and_gives_the_tpm_back(one: OnSwTpm) -> None:
    one.fitted.allowed()
    one.proxy.on(CommandCode.ACTIVATE_CREDENTIAL, Delay(PATIENCE_S), times=1)
    process = one.fitted.start_join()
    until(lambda: one.proxy.counts["ACTIVATE_CREDENTIAL"], "the TPM is not asked")
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    interrupted = done(process)
    assert time.monotonic() - began < PATIENCE_S / 2
    assert (interrupted.status, interrupted.last_error) == (
        75,
        "interrupted; run bcd join again: it goes on where it stopped",
    )
    assert one.tpm.transient() == ""
    request = one.fitted.pending_csr
    one.fitted.joined()
    assert one.fitted.leaf.spki == csr.key_of(request)


def challenge(request: pb.JoinRequest, _context: object) -> pb.JoinReply:
    """One that ends a second after it was made."""
    reply = pb.JoinReply()
    reply.server_time.GetCurrentTime()
    offered = decode(Public, request.tpm_evidence.endorsement_keys[0].public_area)
    asked = reply.challenge
    asked.id, asked.attestor = "c-1", "tpm"
    asked.not_after.CopyFrom(reply.server_time)
    asked.not_after.seconds += 1
    name = names.name(decode(Public, request.tpm_evidence.ak_public))
    asked.tpm.credential, asked.tpm.encrypted_secret = make_credential(offered, name, b"s" * 32)
    asked.tpm.nonce, asked.tpm.pcr_bank, asked.tpm.pcr_selection = bytes(32), Algorithm.SHA256, b"\xff\0\0"
    asked.tpm.ek_name = names.name(offered)
    return reply


def test_a_tpm_that_takes_longer_than_its_challenge_lasts_is_said_and_joins_when_it_is_quicker(
    plane: Plane, one: OnSwTpm
) -> None:
    one.fitted.allowed()
    one.proxy.on(CommandCode.QUOTE, Delay(1.5), times=1)
    with scripted(plane, "slow", challenge) as elsewhere:
        where = ("--config", str(elsewhere.plane.config))
        late = one.fitted.join(*where)
    assert late.status == 75
    assert "the control plane's challenge ended, after 1 s, before the TPM had answered it" in late.last_error
    request = one.fitted.pending_csr
    one.fitted.joined()
    assert one.fitted.leaf.spki == csr.key_of(request)


def test_a_reset_without_a_tpm_moves_nothing(one: OnSwTpm) -> None:
    one.fitted.allowed().joined()
    machine = one.fitted.machine
    before = machine.files()
    for tpm in ({"BCD_FAKEHW_TPM": "none"}, {"BCD_FAKEHW_TPM": f"socket:{one.proxy.path}.gone"}):
        done = machine.run("join", "--reset", "--yes", "--attestor", "tpm", env=tpm)
        assert done.status == 75
        assert done.last_error.startswith("no TPM 2.0: ")
        assert machine.files() == before
