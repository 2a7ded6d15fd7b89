"""Everything that may happen to a node, in any order: nobody loses an identity, no honest node is called a copy, and
whoever holds a copy is caught or has nothing."""

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bcd.controlplane.domain.audit import Kind
from bcd.domain.lifecycle.renew import NewPair
from bcd.domain.model.loading import Loaded, Mismatch, NotJoined
from tests.fakes.clock import ManualClock
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.memory_store import MemoryRecords
from tests.fakes.honest import Honest, Thief
from tests.fakes.lives import NumberedKeys
from tests.fakes.memory_disk import Folder, MemoryDisk

# More on demand: each finds what it finds in the first few hundred.
RUNS = int(os.environ.get("BCD_TEST_RUNS", "1400"))
DAY_S = 86_400.0
MINUTE_S = 60.0
# A request that was given up is not on its way for longer than this.
LATE_AT_MOST_S = 9 * MINUTE_S
# From the end of what may happen until the longest certificate has ended, in steps that a renewal cannot slip through.
STEP_S = DAY_S / 8
STEPS = 11
# When he uses what he has: always, when a node would renew, or in the last moment alone.
PLANS = ("eager", "on time", "patient")
few = st.integers(0, 7)


class World(RuleBasedStateMachine):
    """One honest machine and its control plane; nothing is stolen."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.plane = MemoryControlPlane(self.clock)
        disk = MemoryDisk()
        disk.plant("/var", Folder(mode=0o755))
        self.node = Honest(self.plane, self.clock, disk, NumberedKeys(1000))
        self.node.join()
        self.node.on_time()
        self.thief: Thief | None = None
        self.snapshots: list[MemoryRecords] = []
        self.reset_begun = False
        self.restores = 0
        self.revoked = False

    # ---- the node

    @rule()
    def load(self) -> None:
        self.node.cut(self.node.start)

    @rule()
    def restart(self) -> None:
        self.node.stop()
        self.node.cut(self.node.start)

    @rule()
    def welcome(self) -> None:
        self.node.cut(self.node.hello)

    @rule()
    def renew(self) -> None:
        self.node.cut(self.node.renew)

    @rule(what=st.sampled_from(["request lost", "answer lost", "late"]))
    def the_next_call(self, what: str) -> None:
        self.node.net.next = what

    @rule()
    def what_is_late_arrives(self) -> None:
        self.node.net.arrive()

    @rule(changes=st.integers(0, 24), choose=st.integers(-2, 7))
    def crash_soon(self, changes: int, choose: int) -> None:
        self.node.crash_in, self.node.choose = changes, choose

    @rule(choose=st.integers(-1, 7))
    def crash_now(self, choose: int) -> None:
        self.node.choose = choose
        self.node.crash()

    @rule()
    def a_second_process_renews(self) -> None:
        """Such as a node that runs without a journal: with the same disk, and memory of its own."""
        node = self.node
        if node.dead or not isinstance(node.found(), Loaded):
            return
        life = node.life()
        pair = life.start()
        if self.clock.now() >= pair.leaf.not_after:
            return
        outcome = life.renew(pair)
        if isinstance(outcome, NewPair):
            life.dial(outcome.pair)
            # Which the first one finds out before the grace is over.
            self.pass_time(40.0)

    @rule()
    def set_the_clock(self) -> None:
        self.node.wall.set(self.node.wall.now().replace(year=2010 if self.node.wall.now().year > 2020 else 2036))

    @rule()
    def reset_and_join(self) -> None:
        self.reset_begun = True
        self.node.cut(self.node.reset)
        if isinstance(self.node.found(), NotJoined):
            self.reset_begun = False
            self.node.cut(self.node.join)
        if isinstance(self.node.found(), Loaded) and not self.node.life().fs.read("join.pending", 10):
            self.reset_begun = False
        self.revoked = False

    @rule()
    def finish_joining(self) -> None:
        """A person who finds the node not joined, or with a mismatch that points back to --reset."""
        if isinstance(self.node.found(), Mismatch) and self.reset_begun:
            self.node.reset()
            self.reset_begun = False
        self.node.cut(self.node.join)

    # ---- the control plane

    @rule()
    def back_up(self) -> None:
        if len(self.snapshots) < 3:
            self.snapshots.append(self.plane.snapshot())

    @precondition(lambda self: self.snapshots)
    @rule(which=few)
    def restore(self, which: int) -> None:
        # Whatever was on its way was on its way to a server that is no more.
        self.node.net.late.clear()
        self.node.session = False
        self.plane.restore(self.snapshots[which % len(self.snapshots)])
        self.plane.restored()
        self.restores += 1

    @rule()
    def revoke(self) -> None:
        for node in self.plane.nodes():
            self.plane.revoke(node.id)
            self.revoked = True

    # ---- time

    @rule(seconds=st.sampled_from([1.0, 40.0, 5 * MINUTE_S, 12 * MINUTE_S, 2 * 3600.0]))
    def time_passes(self, seconds: float) -> None:
        self.pass_time(seconds)

    def pass_time(self, seconds: float) -> None:
        if seconds > LATE_AT_MOST_S:
            self.node.net.arrive()
        self.clock.forward(seconds)
        self.node.wall.forward(seconds)
        self.node.on_time()

    # ---- what always holds

    @invariant()
    def the_identity_loads(self) -> None:
        if not hasattr(self, "node"):
            return
        match self.node.found():
            case Loaded():
                pass
            case NotJoined() | Mismatch():
                assert self.reset_begun or self.joining, "a node that cannot load"
            case other:
                raise AssertionError(f"a node that cannot load: {other}")

    @property
    def joining(self) -> bool:
        """A join was cut, or none has been made yet."""
        return isinstance(self.node.found(), NotJoined)

    @invariant()
    def nobody_is_wrongly_called_a_copy(self) -> None:
        if hasattr(self, "node") and not (self.thief is not None and self.thief.used):
            assert self.clones() == 0, "an honest node was called a copy"

    def audited(self) -> list[Kind]:
        return self.plane.store.read(lambda records: [row.event.kind for row in records.audit.rows])

    def clones(self) -> int:
        return self.audited().count(Kind.NODE_CLONED)

    def teardown(self) -> None:
        if hasattr(self, "node"):
            self.the_end()

    def the_end(self) -> None:
        """Left alone, the node lives: with whatever disk it has, unless it was revoked or is between two joins."""
        node = self.node
        node.net.next = ""
        node.net.arrive()
        node.crash_in = None
        for _ in range(3):
            self.pass_time(13 * MINUTE_S)
        if node.dead or not isinstance(node.found(), Loaded) or self.revoked:
            return
        assert node.pair is not None
        if not node.in_date:
            return
        self.pass_time(3700.0)
        before = node.pair.leaf
        node.renew()
        assert node.pair is not None, "its renewal ended it"
        assert node.pair.leaf != before, "an honest node that cannot renew"
        assert node.session, "an honest node that has no session"


def run(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_an_honest_node_alone() -> None:
    """B01, B02, B03, B61: it always loads, is never called a copy, and renews whatever happened before."""
    run(World, RUNS, 20)


class Stolen(World):
    """The disk is copied at some moment, and the copy used in any order."""

    @precondition(lambda self: self.thief is None)
    @rule()
    def copy_the_disk(self) -> None:
        self.restored_before = self.restores
        self.thief = Thief.of(self.plane, self.clock, self.node.disk.image, 900_000)

    @precondition(lambda self: self.thief is not None)
    @rule(which=few)
    def the_thief_says_hello(self, which: int) -> None:
        assert self.thief is not None
        self.thief.hello(which)

    @precondition(lambda self: self.thief is not None)
    @rule(which=few, stolen=st.booleans())
    def the_thief_renews(self, which: int, stolen: bool) -> None:
        assert self.thief is not None
        self.thief.renew(which, with_the_stolen_key=stolen)

    @precondition(lambda self: self.thief is not None)
    @rule(plan=st.sampled_from(PLANS), last=st.booleans())
    def the_thief_decides(self, plan: str, last: bool) -> None:
        self.plan = (plan, last)

    def the_end(self) -> None:
        node, thief = self.node, self.thief
        node.net.next = ""
        node.net.arrive()
        node.crash_in = None
        plan, last = getattr(self, "plan", ("eager", True))
        for _ in range(STEPS):
            self.pass_time(STEP_S)
            if thief is not None and thief.acts(plan, STEP_S):
                thief.hello(-1)
                thief.renew(-1 if last else 0)
                thief.hello(-1)
        if thief is not None:
            self.judge_the_thief(thief)

    @property
    def restored_since_the_theft(self) -> bool:
        return self.restores > self.restored_before

    def judge_the_thief(self, thief: Thief) -> None:
        """He uses the best he has until the longest certificate has ended."""
        thief.hello(-1)
        if self.restored_since_the_theft:
            # See the test below: he may have come first, and then the node knows that something is wrong.
            assert not (thief.welcome and self.node.session and self.node.in_date), "both live on"
            return
        assert not thief.welcome, "the thief lives on"
        if not (thief.used or self.revoked):
            assert not self.node.dead, "the node died of a thief who did nothing"


def test_a_copied_disk_used_in_any_order() -> None:
    """B48: by the time the longest certificate has ended the thief is caught, with the node, or has nothing."""
    run(Stolen, RUNS // 2, 16)


def _world(machine: type[World]) -> World:
    made = machine()
    made.begin()
    return made


def test_a_thief_who_has_the_next_key_certified_first_keeps_nobody_from_renewing() -> None:
    """Copied in the middle of a renewal: the node's own request is declined then, and it goes on with another key."""
    world = _world(Stolen)
    world.the_next_call("request lost")
    world.renew()
    world.copy_the_disk()
    assert world.thief is not None
    world.time_passes(2 * 3600.0)
    world.the_thief_renews(0, stolen=True)
    world.the_thief_decides("patient", last=True)
    world.the_end()


def test_a_restored_server_and_a_thief_who_comes_first() -> None:
    """After a restore the retired certificate is the current one again, and a thief can renew it before the node is
    back. Once he uses what he got, the node's own certificate beside it shows the copy. They never both live."""
    world = _world(Stolen)
    world.back_up()
    world.copy_the_disk()
    world.time_passes(2 * 3600.0)
    world.renew()
    world.time_passes(2 * 3600.0)
    world.restore(0)
    world.the_thief_renews(0, stolen=False)
    world.the_thief_says_hello(1)
    world.the_end()
    assert not world.node.session
    assert not world.thief.welcome
    assert Kind.NODE_CLONED in world.audited()


def test_a_thief_is_caught_with_the_node_when_both_use_what_they_have() -> None:
    """B48: both learn that the identity is dead, and neither is welcome again."""
    world = _world(Stolen)
    world.copy_the_disk()
    thief = world.thief
    assert thief is not None
    world.the_thief_renews(0, stolen=False)
    world.the_thief_says_hello(1)
    world.node.hello()
    world.time_passes(12 * MINUTE_S)
    world.node.hello()
    assert world.node.dead
    assert world.audited().count(Kind.NODE_CLONED) == 1
    for which in range(2):
        thief.hello(which)
        assert not thief.welcome


def test_a_request_that_arrives_after_its_certificate_was_replaced_makes_nobody_a_copy() -> None:
    """Given up by the node, which asked again and has gone on with the new pair by then."""
    world = _world(World)
    world.the_next_call("late")
    world.renew()
    world.renew()
    world.what_is_late_arrives()
    world.nobody_is_wrongly_called_a_copy()
    world.the_end()


def test_a_node_whose_certificate_a_restored_server_does_not_know_goes_on() -> None:
    world = _world(World)
    world.back_up()
    world.time_passes(2 * 3600.0)
    world.renew()
    world.restore(0)
    world.the_end()
    assert world.node.session


def test_a_node_joined_anew_leaves_a_thief_nothing() -> None:
    world = _world(Stolen)
    world.copy_the_disk()
    world.reset_and_join()
    world.node.on_time()
    world.the_thief_says_hello(0)
    assert world.thief is not None
    assert not world.thief.welcome
    world.the_end()
    assert world.node.session
