"""A node's session at the gateway: Welcome, news, and what ends it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import grpc

from bcd.controlplane.domain import admin
from bcd.controlplane.domain.news import NodeRevoked
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.gateway_calls import (
    HELLO,
    PATIENCE_S,
    Context,
    Scene,
    Waits,
    reason_of,
    renewal,
    run,
    welcomed,
)
from tests.fakes.controlplane.member import Member


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
