"""The gateway's calls as a client sees them: messages, statuses, and nothing final by accident."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, cast

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from google.rpc import error_details_pb2, status_pb2

from bcd.controlplane.adapters.grpc.gateway_service import GatewayService
from bcd.controlplane.adapters.grpc.sessions import Sessions
from bcd.controlplane.app.gateway import Gateway
from bcd.controlplane.domain import admin
from bcd.controlplane.domain.news import NodeRevoked, RenewalDue
from bcd.controlplane.ports.signing import CannotIssue
from bcd.controlplane.ports.store import StoreUnavailable
from bcd.protocol.pb.bc.identity.v1 import gateway_pb2 as pb
from bcd.protocol.pb.bc.identity.v1 import statements_pb2
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.member import Member

PATIENCE_S = 20.0
HELLO = pb.NodeMessage(
    hello=pb.Hello(journal_id="0a" * 16, daemon_version="0.1.0", node_key="file")
).SerializeToString()


class Aborted(Exception):
    pass


class Context:
    """The part of a gRPC context that is used: what a client sends, and what it gets."""

    def __init__(self, leaf: bytes, *sent: bytes) -> None:
        pem = x509.load_der_x509_certificate(leaf).public_bytes(serialization.Encoding.PEM) if leaf else b""
        self.auth = {"x509_pem_cert": [pem]} if leaf else {}
        self.sent: asyncio.Queue[object] = asyncio.Queue()
        for message in sent:
            self.sent.put_nowait(message)
        self.got: asyncio.Queue[pb.GatewayMessage] = asyncio.Queue()
        self.status: tuple[Any, ...] = ()

    def auth_context(self) -> dict[str, list[bytes]]:
        return self.auth

    def peer(self) -> str:
        return "ipv4:192.0.2.7:4711"

    async def read(self) -> object:
        return await self.sent.get()

    async def write(self, message: bytes) -> None:
        self.got.put_nowait(pb.GatewayMessage.FromString(message))

    async def abort(self, code: grpc.StatusCode, text: str, trailing: Any) -> None:
        self.status = (code, text, dict(trailing))
        raise Aborted

    def half_close(self) -> None:
        self.sent.put_nowait(grpc.aio.EOF)

    async def hear(self) -> tuple[str, Any]:
        """The next message's kind and value."""
        message = await asyncio.wait_for(self.got.get(), PATIENCE_S)
        kind = str(message.WhichOneof("message"))
        return kind, getattr(message, kind)


class Scene:
    """A gateway on the memory control plane, whose news reach real sessions."""

    def __init__(self, plane: MemoryControlPlane, gateways: Any = None, **options: Any) -> None:
        self.plane = plane
        self.sessions = Sessions(quiet_after_s=0.0)
        self.service = GatewayService(
            gateways or plane.gateway, self.sessions, plane.settings.trust_domain, plane.clock, plane.log, **options
        )

    def begin(self) -> None:
        """On the loop: what the control plane tells goes to the sessions from here on."""
        self.sessions.begin()
        news: Any = self.plane.news
        news.tell, news.live = self.sessions.tell, self.sessions.live

    def method(self, name: str) -> Any:
        details: Any = _Details(f"/bc.identity.v1.Gateway/{name}")
        return self.service.handler().service(cast(Any, details))

    async def renew(self, leaf: bytes, data: bytes) -> tuple[pb.RenewReply, tuple[Any, ...]]:
        context = Context(leaf)
        try:
            answer: bytes = await asyncio.wait_for(self.method("Renew").unary_unary(data, context), PATIENCE_S)
        except Aborted:
            return pb.RenewReply(), context.status
        return pb.RenewReply.FromString(answer), ()

    def session(self, context: Context) -> asyncio.Task[tuple[Any, ...]]:
        """What ends it: a status, or () when it ends well."""

        async def run() -> tuple[Any, ...]:
            try:
                await self.method("Session").stream_stream(None, context)
            except Aborted:
                pass
            return context.status

        return asyncio.create_task(run())


class _Details:
    invocation_metadata = ()

    def __init__(self, method: str) -> None:
        self.method = method


class Fails:
    """Gateways whose every future fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def hello(self, *_: object) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(self.error)
        return future

    renew = hello

    def ended(self, *_: object) -> None:
        raise AssertionError


class Waits:
    """Gateways that answer when they are told to."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.asked: list[Future[Any]] = []

    def hello(self, *_: object) -> Future[Any]:
        self.asked.append(Future())
        return self.asked[-1]

    renew = hello

    def ended(self, *_: object) -> None:
        pass


@pytest.fixture
def plane() -> MemoryControlPlane:
    return MemoryControlPlane()


@pytest.fixture
def member(plane: MemoryControlPlane) -> Member:
    return Member.joined(plane)


def run(scene: Scene, test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        scene.begin()
        await test()

    asyncio.run(main())


def reason_of(status: tuple[Any, ...]) -> str:
    """The reason of our ErrorInfo; empty without one: then the status is not final."""
    found = status_pb2.Status.FromString(status[2].get("grpc-status-details-bin", b""))
    info = error_details_pb2.ErrorInfo()
    for detail in found.details:
        assert detail.Unpack(info) and info.domain == "bc.identity"
        assert found.code == status[0].value[0]
    return info.reason


def renewal(member: Member, **changes: Any) -> bytes:
    asked = member.ask()
    proof = statements_pb2.SignedStatement.FromString(asked.pop)
    chain = (member.leaf, member.plane.issuing.der)
    request = pb.RenewRequest(**({"csr": asked.csr, "chain": chain, "renew_pop": proof} | changes))
    return request.SerializeToString()


async def welcomed(scene: Scene, member: Member) -> tuple[Context, asyncio.Task[tuple[Any, ...]]]:
    context = Context(member.leaf, HELLO)
    task = scene.session(context)
    assert (await context.hear())[0] == "welcome"
    return context, task


# ---- what goes well


def test_hello_is_answered_with_time_and_bundle(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane)

    async def test() -> None:
        context = Context(member.leaf, HELLO)
        task = scene.session(context)
        kind, welcome = await context.hear()
        assert kind == "welcome"
        assert welcome.server_time.ToDatetime(tzinfo=plane.clock.now().tzinfo) == plane.clock.now()
        assert welcome.trust_bundle.purpose == "trust-bundle"
        (node,) = plane.nodes()
        assert node.session and node.last_seen == plane.clock.now()
        plane.clock.pass_(minutes=5)
        context.half_close()
        assert await task == ()
        (node,) = plane.nodes()
        assert not node.session and node.last_seen == plane.clock.now()

    run(scene, test)


def test_renew_is_answered_with_a_statement(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane)

    async def test() -> None:
        reply, status = await scene.renew(member.leaf, renewal(member))
        assert status == ()
        assert reply.issued.purpose == "renew-response"
        assert reply.HasField("server_time")

    run(scene, test)


def test_news_reach_a_live_session(plane: MemoryControlPlane, member: Member) -> None:
    other = Member.joined(plane)
    scene = Scene(plane)

    async def test() -> None:
        (context, task), (others, others_task) = await welcomed(scene, member), await welcomed(scene, other)
        plane.renew_now(member.node, "moved")
        kind, renew_now = await context.hear()
        assert (kind, renew_now.reason) == ("renew_now", "moved")
        plane.admin(admin.AddRoot(other.parsed.spki.hex()))
        for one in (context, others):
            assert (await one.hear())[0] == "trust_bundle"
        plane.revoke(member.node, "stolen")
        kind, notice = await context.hear()
        assert (kind, notice.reason) == ("revoked", "operator: stolen")
        status = await asyncio.wait_for(task, PATIENCE_S)
        assert (status[0], status[1]) == (grpc.StatusCode.UNAUTHENTICATED, "operator: stolen")
        assert reason_of(status) == "CERTIFICATE_REVOKED"
        assert others.got.empty() and not others_task.done()
        others.half_close()
        assert await others_task == ()

    run(scene, test)


def test_a_bundle_that_a_session_has_is_not_said_again(plane: MemoryControlPlane, member: Member) -> None:
    """A change that was told while Hello was decided is in Welcome already."""
    scene = Scene(plane)
    plane.admin(admin.AddRoot(member.parsed.spki.hex()))
    (item,) = plane.news.told

    async def test() -> None:
        context, task = await welcomed(scene, member)
        scene.sessions.tell(item)
        plane.renew_now(member.node, "the next")
        assert (await context.hear())[0] == "renew_now"
        context.half_close()
        assert await task == ()

    run(scene, test)


def test_a_clone_ends_the_session_of_the_other(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane)
    thief = member.thief()
    newer = member.renewed()

    async def test() -> None:
        context, task = await welcomed(scene, newer)
        plane.clock.pass_(minutes=10)
        _, status = await scene.renew(thief.leaf, renewal(thief))
        assert reason_of(status) == "CERTIFICATE_REVOKED"
        assert (await context.hear())[1].reason == "clone-suspected"
        assert reason_of(await asyncio.wait_for(task, PATIENCE_S)) == "CERTIFICATE_REVOKED"

    run(scene, test)


def test_what_happens_while_hello_is_decided_is_told_after_it(plane: MemoryControlPlane, member: Member) -> None:
    """Between the decision and the answer nothing may fall through."""
    waits = Waits(plane.gateway)
    scene = Scene(plane, waits)

    async def test() -> None:
        context = Context(member.leaf, HELLO)
        task = scene.session(context)
        while not waits.asked:
            await asyncio.sleep(0)
        answer = member.hello()
        plane.revoke(member.node, "stolen")
        await asyncio.sleep(0)
        waits.asked[0].set_result(answer)
        assert (await context.hear())[0] == "welcome"
        assert (await context.hear())[0] == "revoked"
        assert reason_of(await asyncio.wait_for(task, PATIENCE_S)) == "CERTIFICATE_REVOKED"

    run(scene, test)


def test_an_old_revocation_is_not_for_a_new_generation(plane: MemoryControlPlane) -> None:
    member = Member.joined(plane, plane.token(node_id="rack1-7"))
    scene = Scene(plane)

    async def test() -> None:
        again = Member.joined(plane, plane.token(node_id="rack1-7"))
        context, task = await welcomed(scene, again)
        scene.sessions.tell(NodeRevoked(member.parsed.spiffe_id.node, 2, "stolen", plane.clock.now()))
        plane.renew_now(member.node, "after it")
        assert (await context.hear())[0] == "renew_now"
        context.half_close()
        assert await task == ()

    run(scene, test)


def test_a_renewal_asked_for_while_it_was_away_is_told_with_welcome(plane: MemoryControlPlane, member: Member) -> None:
    plane.renew_now(None, "moved")
    scene = Scene(plane)

    async def test() -> None:
        context, _ = await welcomed(scene, member)
        assert (await context.hear())[1].reason == "moved"
        plane.clock.pass_(seconds=1)
        newer, _ = await welcomed(scene, member.renewed())
        await asyncio.sleep(0)
        assert newer.got.empty()

    run(scene, test)


def test_a_newer_certificates_session_ends_the_older_quietly(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane)

    async def test() -> None:
        old, old_task = await welcomed(scene, member)
        same, same_task = await welcomed(scene, member)
        await asyncio.sleep(0.01)
        assert not old_task.done()
        new, new_task = await welcomed(scene, member.renewed())
        assert await asyncio.wait_for(asyncio.gather(old_task, same_task), PATIENCE_S) == [(), ()]
        assert old.got.empty() and same.got.empty()
        assert not new_task.done()
        new.half_close()
        assert await new_task == ()

    run(scene, test)


def test_an_older_certificates_late_welcome_ends_itself(plane: MemoryControlPlane, member: Member) -> None:
    """Both Hellos were decided in their order, and the older one's answer was held up."""
    waits = Waits(plane.gateway)
    scene = Scene(plane, waits)

    async def test() -> None:
        newer = member.renewed()
        answers = [member.hello(), newer.hello()]
        old, new = Context(member.leaf, HELLO), Context(newer.leaf, HELLO)
        tasks = [scene.session(old), scene.session(new)]
        while len(waits.asked) < 2:
            await asyncio.sleep(0)
        for context, number in ((new, 1), (old, 0)):
            waits.asked[number].set_result(answers[number])
            assert (await context.hear())[0] == "welcome"
        assert await asyncio.wait_for(tasks[0], PATIENCE_S) == ()
        assert not tasks[1].done()
        new.half_close()
        assert await tasks[1] == ()

    run(scene, test)


def test_a_session_that_is_over_leaves_nothing_behind(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane)

    async def test() -> None:
        _, task = await welcomed(scene, member)
        plane.revoke(member.node)
        await asyncio.wait_for(task, PATIENCE_S)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert scene.sessions._open == {} == scene.sessions._up

    run(scene, test)


def test_a_session_ends_with_its_leaf(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane)
    plane.clock.at = member.parsed.not_after - timedelta(milliseconds=20)

    async def test() -> None:
        _, task = await welcomed(scene, member)
        plane.clock.at = member.parsed.not_after
        status = await asyncio.wait_for(task, PATIENCE_S)
        assert status[0] is grpc.StatusCode.UNAUTHENTICATED
        assert reason_of(status) == ""

    run(scene, test)


def test_the_end_ends_sessions_and_those_that_still_begin(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane)

    async def test() -> None:
        _, task = await welcomed(scene, member)
        scene.sessions.stop()
        late = scene.session(Context(member.leaf, HELLO))
        for one in (task, late):
            status = await asyncio.wait_for(one, PATIENCE_S)
            assert status[0] is grpc.StatusCode.UNAVAILABLE
            assert reason_of(status) == ""

    run(scene, test)


def test_what_a_later_bcd_says_in_a_session_is_passed_over(plane: MemoryControlPlane, member: Member) -> None:
    scene = Scene(plane)

    async def test() -> None:
        context, task = await welcomed(scene, member)
        context.sent.put_nowait(b"\xff\xff")
        context.sent.put_nowait(HELLO)
        plane.renew_now(member.node, "still there")
        assert (await context.hear())[0] == "renew_now"
        context.half_close()
        assert await task == ()

    run(scene, test)


# ---- refusals


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
