"""The gateway's calls as a client sees them: messages, statuses, and nothing final by accident."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from bcd.controlplane.adapters.grpc.sessions import Sessions
from bcd.controlplane.domain.news import RenewalDue
from bcd.controlplane.ports.signing import CannotIssue
from bcd.controlplane.ports.store import StoreUnavailable
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2 as pb
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.gateway_calls import (
    HELLO,
    PATIENCE_S,
    Context,
    Fails,
    Scene,
    Waits,
    reason_of,
    renewal,
    run,
)
from tests.fakes.controlplane.member import Member


def test_renew_is_answered_with_a_statement(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane)

    async def test() -> None:
        reply, status = await scene.renew(member.leaf, renewal(member))
        assert status == ()
        assert reply.issued.purpose == "renew-response"
        assert reply.HasField("server_time")

    run(scene, test)


def test_a_retired_certificate_is_told_so_on_both(plane: MemoryControlPlane, member: Member) -> None:
    member.renewed().hello()
    scene = Scene(plane)

    async def test() -> None:
        _, status = await scene.renew(member.leaf, renewal(member))
        for one in (status, await scene.session(Context(member.leaf, HELLO))):
            assert one[0] is grpc.StatusCode.ABORTED
            assert reason_of(one) == "CERTIFICATE_RETIRED"

    run(scene, test)


def test_a_revoked_certificate_is_told_so_on_both(plane: MemoryControlPlane, member: Member) -> None:
    plane.revoke(member.node, "stolen")
    scene = Scene(plane)

    async def test() -> None:
        _, status = await scene.renew(member.leaf, renewal(member))
        for one in (status, await scene.session(Context(member.leaf, HELLO))):
            assert (one[0], one[1]) == (grpc.StatusCode.UNAUTHENTICATED, "operator: stolen")
            assert reason_of(one) == "CERTIFICATE_REVOKED"

    run(scene, test)


def test_the_quota_comes_with_the_time_to_wait(plane: MemoryControlPlane, member: Member) -> None:
    for _ in range(6):
        member.renewed()
    plane.clock.pass_(minutes=59)
    scene = Scene(plane)

    async def test() -> None:
        _, status = await scene.renew(member.leaf, renewal(member))
        assert status[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert status[2]["grpc-retry-pushback-ms"] == "60000"

    run(scene, test)


@pytest.mark.parametrize("data", [b"", b"\xff", b"no message"], ids=repr)
def test_what_is_no_message_is_malformed(plane: MemoryControlPlane, member: Member, data: bytes) -> None:
    scene = Scene(plane)

    async def test() -> None:
        _, status = await scene.renew(member.leaf, data)
        first = Context(member.leaf, data)
        for one in (status, await scene.session(first)):
            assert one[0] is grpc.StatusCode.INVALID_ARGUMENT
            assert reason_of(one) == ""

    run(scene, test)
    assert member.state == "issued"


def test_a_hello_out_of_bounds_is_malformed(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane)

    async def test() -> None:
        departures: list[dict[str, str]] = [
            {"boot_id": "x" * 257},
            {"daemon_version": "0\n1"},
            *({"journal_id": text} for text in ("", "00", "g" * 32, "0A" * 16, "0a" * 17, "0a" * 16 + "\n", "٠" * 32)),
            *({"node_key": text} for text in ("", "File", "hsm")),
        ]
        good = {"journal_id": "0a" * 16, "boot_id": "b", "daemon_version": "0.1.0", "node_key": "tpm"}
        for departure in departures:
            data = pb.NodeMessage(hello=pb.Hello(**(good | departure))).SerializeToString()
            status = await scene.session(Context(member.leaf, data))
            assert status[0] is grpc.StatusCode.INVALID_ARGUMENT
            assert reason_of(status) == ""

    run(scene, test)


def test_a_stream_on_which_nothing_is_said_ends(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane, hello_within_s=0.01)

    async def test() -> None:
        silent = Context(member.leaf)
        closed = Context(member.leaf)
        closed.half_close()
        for one in (silent, closed):
            status = await asyncio.wait_for(scene.session(one), PATIENCE_S)
            assert status[0] is grpc.StatusCode.INVALID_ARGUMENT

    run(scene, test)


def test_a_certificate_that_is_no_nodes_is_refused_without_a_verdict(plane: MemoryControlPlane, member: Member) -> None:
    elsewhere = Member.joined(MemoryControlPlane(domain="other.test"))
    scene = Scene(plane)

    async def test() -> None:
        for leaf in (b"", plane.issuing.der, elsewhere.leaf):
            _, status = await scene.renew(leaf, renewal(member))
            for one in (status, await scene.session(Context(leaf, HELLO))):
                assert one[0] is grpc.StatusCode.PERMISSION_DENIED
                assert reason_of(one) == ""

    run(scene, test)


# ---- faults of ours


@pytest.mark.parametrize(
    "error", [StoreUnavailable("SQLITE_FULL: secret"), CannotIssue("secret"), RuntimeError("secret")], ids=repr
)
def test_a_fault_is_never_final_and_never_shown(plane: MemoryControlPlane, member: Member, error: Exception) -> None:
    scene = Scene(plane, Fails(error))

    async def test() -> None:
        _, status = await scene.renew(member.leaf, renewal(member))
        for one in (status, await scene.session(Context(member.leaf, HELLO))):
            assert (one[0], one[1], one[2]) == (grpc.StatusCode.UNAVAILABLE, "temporarily unavailable", {})

    run(scene, test)
    assert [what for level, what, _ in plane.log.lines if level == "error"] == ["a call failed"] * 2


def test_beyond_its_limit_a_node_is_asked_to_wait(plane: MemoryControlPlane, member: Member) -> None:
    waits = Waits(plane.gateway)
    scene = Scene(plane, waits, limit=1)

    async def test() -> None:
        first = scene.session(Context(member.leaf, HELLO))
        while not waits.asked:
            await asyncio.sleep(0)
        _, status = await scene.renew(member.leaf, renewal(member))
        assert status[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert 1000 <= int(status[2]["grpc-retry-pushback-ms"]) <= 10_000
        waits.asked[0].set_exception(StoreUnavailable("over"))
        assert (await first)[0] is grpc.StatusCode.UNAVAILABLE
        again = scene.session(Context(member.leaf, HELLO))
        while len(waits.asked) < 2:
            await asyncio.sleep(0)
        waits.asked[1].set_exception(StoreUnavailable("over"))
        assert (await again)[0] is grpc.StatusCode.UNAVAILABLE

    run(scene, test)


def test_a_client_that_goes_away_cancels_nothing_in_the_store(plane: MemoryControlPlane, member: Member) -> None:
    waits = Waits(plane.gateway)
    scene = Scene(plane, waits)

    async def test() -> None:
        task = scene.session(Context(member.leaf, HELLO))
        while not waits.asked:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not waits.asked[0].cancelled()
        assert scene.sessions.live() == frozenset()

    run(scene, test)


def test_news_before_and_after_there_is_a_server_are_nobodys(plane: MemoryControlPlane, member: Member) -> None:
    sessions = Sessions()
    item = RenewalDue(member.parsed.spiffe_id.node, "moved")
    sessions.tell(item)

    async def begin() -> None:
        sessions.begin()

    asyncio.run(begin())
    sessions.tell(item)
    assert sessions.live() == frozenset()
