"""A node that keeps to the rules of app.life, one act at a time, and a thief that keeps to none."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from bcd.controlplane.domain import gateway as answers
from bcd.domain.lifecycle.change_identity import IdentityChanged
from bcd.domain.lifecycle.renew import NewPair, NextKey, NotRenewed
from bcd.domain.model.claims import Claims
from bcd.domain.model.datadir import KEY, MAX_FILE_BYTES, NEXT_KEY
from bcd.domain.model.failures import Failure
from bcd.domain.model.identity import renew_at
from bcd.domain.model.keys import KeyState
from bcd.domain.model.loading import Decision, Loaded, NotJoined
from bcd.domain.model.running import LOOK_EVERY_S, RETIRED_WAIT_S
from bcd.ports.gateway import Ended, Heard, Pair, RenewAnswer, RenewQuestion, Retired, Revoked, Welcome
from bcd.protocol.pki import renew_pop
from tests.fakes.clock import ManualClock
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.lives import LOST, Life, Line, NumberedKeys
from tests.fakes.memory_disk import Folder, MemoryDisk, PowerLost

PATH = "/var/lib/bcd"
# A machine the control plane knows again: joined anew it is the same node, of another generation.
CLAIMS = Claims(product_uuid="4c4c4544-0042-3510-8052-b4c04f4d3532", board_serial="BRD-4711", hostname="metal")
Late = Callable[[], object]


@dataclass
class Net:
    """What happens to the next thing that is sent: "" (nothing), "request lost", "answer lost" or "late": the sender
    has given up by the time it arrives."""

    next: str = ""
    late: list[Late] = field(default_factory=list)

    def take(self) -> str:
        found, self.next = self.next, ""
        return found

    def arrive(self) -> None:
        late, self.late = self.late, []
        for one in late:
            one()


class NetLine(Line):
    def __init__(self, net: Net, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]
        self._net = net

    def answer_to_hello(self) -> Heard:
        return self._over_the_net(super().answer_to_hello)

    def answer_to_renew(self, question: RenewQuestion) -> RenewAnswer:
        return self._over_the_net(lambda: super(NetLine, self).answer_to_renew(question))

    def _over_the_net(self, ask: Callable[[], object]):  # type: ignore[no-untyped-def]
        match self._net.take():
            case "request lost":
                return LOST
            case "answer lost":
                ask()
                return LOST
            case "late":
                self._net.late.append(ask)
                return LOST
            case _:
                return ask()


class NetLife(Life):
    net: Net

    def line(self, pair: Pair) -> Line:
        return NetLine(self.net, self.plane, pair, self.sends, self.source)


@dataclass
class Honest:
    """One machine. `pair` is what its process uses, None when none runs; `dead` once it was told that it is revoked."""

    plane: MemoryControlPlane
    clock: ManualClock
    disk: MemoryDisk
    keys: NumberedKeys = field(default_factory=NumberedKeys)
    net: Net = field(default_factory=Net)
    wall: ManualClock = field(default_factory=ManualClock)
    pair: Pair | None = None
    next_key: NextKey | None = None
    dead: bool = False
    session: bool = False
    looked_s: float = 0.0
    idle_until_s: float = 0.0
    crash_in: int | None = None
    choose: int = -1
    crashes: int = 0
    _found: tuple[tuple[MemoryDisk, int], Decision] | None = None

    def life(self) -> NetLife:
        disk = self.disk
        made = NetLife(disk, PATH, self.plane, self.wall, self.keys, disk.mark, claims=CLAIMS)
        made.net = self.net
        return made

    def found(self) -> Decision:
        """What a load would decide; looked at anew where the disk has changed."""
        state = (self.disk, len(self.disk.trace))
        if self._found is None or self._found[0] != state:
            self._found = (state, self.life().load.look())
        return self._found[1]

    # ---- acts; each may be cut

    def cut(self, act: Callable[[], object]) -> None:
        """The act, with the crash that was asked for, if it comes that far."""
        if self.crash_in is not None:
            self.disk.power_lost_before = len(self.disk.trace) + self.crash_in
        try:
            act()
        except PowerLost:
            self.crash()
        finally:
            self.disk.power_lost_before = None
            self.crash_in = None

    def crash(self) -> None:
        """The process is gone; with `choose` not below 0 the power was, too, and one of the disks there may be is
        found."""
        self.crashes += 1
        cut = len(self.disk.trace)
        if self.choose >= 0:
            images = sorted(self.disk.images_at(cut), key=repr)
            image = images[self.choose % len(images)]
            assert isinstance(image, Folder)
            self.disk = MemoryDisk(image)
        else:
            self.disk = MemoryDisk(self.disk.image)
        self.stop()

    def stop(self) -> None:
        self.pair, self.next_key, self.session, self.idle_until_s = None, None, False, 0.0

    def start(self) -> None:
        if self.pair is None and not self.dead and isinstance(self.found(), Loaded):
            life = self.life()
            self.pair, self.next_key, self.session = life.start(), None, False
            self.looked_s = self.clock.boottime_s()

    def join(self) -> None:
        """`bcd join`, by a person who has a token that may reclaim."""
        if isinstance(self.found(), NotJoined):
            try:
                self.life().join(self.plane.token(allow_reclaim=True))
            except Failure:
                # A request that was begun and refused for good; the next join begins anew.
                return
            self.dead = False

    def reset(self) -> None:
        self.life().reset()
        # The new identity is this machine's; whoever runs finds out at its next look.
        self.dead = False

    def look(self) -> None:
        if self.pair is None or self.clock.boottime_s() < self.looked_s + LOOK_EVERY_S:
            return
        self.looked_s = self.clock.boottime_s()
        try:
            self.life().change.stored(self.pair.leaf)
        except IdentityChanged:
            self.anew()

    def anew(self) -> None:
        self.stop()
        self.start()

    @property
    def may_ask(self) -> bool:
        return self.pair is not None and self.clock.boottime_s() >= self.idle_until_s

    @property
    def in_date(self) -> bool:
        return self.pair is not None and self.clock.now() < self.pair.leaf.not_after

    def hello(self) -> None:
        self.look()
        if not self.may_ask or not self.in_date:
            return
        assert self.pair is not None
        try:
            heard = self.life().dial(self.pair)
        except IdentityChanged:
            self.anew()
            return
        self.session = isinstance(heard, Welcome)
        self._hear(heard)

    def renew(self) -> None:
        self.look()
        if not self.may_ask or not self.in_date:
            return
        assert self.pair is not None
        try:
            outcome = self.life().renew(self.pair, self.next_key, self.wall.now())
        except IdentityChanged:
            self.anew()
            return
        match outcome:
            case NewPair(pair):
                self.pair, self.next_key, self.session = pair, None, False
                # The dial follows at once.
                self.hello()
            case NotRenewed(_, next_key):
                self.next_key = next_key
            case other:
                self._hear(other)

    def _hear(self, heard: object) -> None:
        match heard:
            case Revoked():
                assert self.pair is not None
                try:
                    self.life().change.stored(self.pair.leaf)
                    self.dead = True
                except IdentityChanged:
                    pass
                self.stop()
            case Retired():
                # This pair is left alone for a while, unless the disk has another.
                before = self.pair
                self.anew()
                if before is not None and self.pair is not None and self.pair.leaf == before.leaf:
                    self.idle_until_s = self.clock.boottime_s() + RETIRED_WAIT_S
            case Ended():
                self.session = False
            case _:
                pass

    def on_time(self) -> None:
        """What it does by itself when some time has passed: it is restarted, dials, renews when that is due."""
        self.start()
        self.look()
        self.session = self.session and self.in_date
        if not self.session:
            self.hello()
        if self.pair is not None and self.clock.now() >= renew_at(self.pair.leaf):
            self.renew()


@dataclass
class Thief:
    """Holds a copy of a disk, and uses what it finds there and what it is given for that in any order."""

    plane: MemoryControlPlane
    clock: ManualClock
    keys: NumberedKeys
    pairs: list[Pair] = field(default_factory=list)
    next_key: NextKey | None = None
    welcome: bool = False
    used: bool = False

    @staticmethod
    def of(plane: MemoryControlPlane, clock: ManualClock, image: Folder, first_key: int) -> "Thief | None":
        thief = Thief(plane, clock, NumberedKeys(first_key))
        life = Life(MemoryDisk(image), PATH, plane, clock, thief.keys)
        if not isinstance(life.load.look(), Loaded):
            return None
        thief.pairs.append(life.start_as_is())
        # Keys that are no certificate's yet: of a renewal under way.
        for name in (NEXT_KEY, KEY):
            record = life.fs.read(name, MAX_FILE_BYTES)
            key = life.keys.open(record) if record is not None else None
            if key is not None and not isinstance(key, KeyState) and key.spki != thief.pairs[0].leaf.spki:
                thief.next_key = NextKey(key, key.request())
        return thief

    def acts(self, plan: str, step_s: float) -> bool:
        """Whether he does something in this step."""
        leaf, now = self.pairs[-1].leaf, self.clock.now()
        match plan:
            case "on time":
                return now >= renew_at(leaf)
            case "patient":
                return now >= leaf.not_after - timedelta(seconds=step_s)
        return True

    def pair(self, which: int) -> Pair:
        return self.pairs[which % len(self.pairs)]

    def hello(self, which: int) -> None:
        self.used = True
        leaf = self.pair(which).leaf
        # TLS lets no certificate through that is out of date.
        self.welcome = self.clock.now() < leaf.not_after and isinstance(
            self.plane.hello(leaf.der, "203.0.113.66"), answers.Welcomed
        )

    def renew(self, which: int, *, with_the_stolen_key: bool = False) -> None:
        self.used = True
        pair = self.pair(which)
        chosen = self.next_key if with_the_stolen_key else None
        if chosen is None:
            key = self.keys.create()
            chosen = NextKey(key, key.request())
        if self.clock.now() >= pair.leaf.not_after:
            return
        proof = renew_pop.make_renew_pop(
            chosen.csr, pair.leaf.der, self.clock.now(), pair.key.spki, pair.key.sign
        ).SerializeToString(deterministic=True)
        answer = self.plane.renew(pair.leaf.der, chosen.csr, proof, "203.0.113.66", pair.chain)
        if isinstance(answer, answers.Renewed):
            self.pairs.append(_opened(answer.signed, pair, chosen, self.plane))


def _opened(signed: bytes, held: Pair, chosen: NextKey, plane: MemoryControlPlane) -> Pair:
    from bcd.domain.model.pins import Pin, Pins
    from bcd.protocol.pki import renew_response

    expected = renew_response.Expected(chosen.csr, chosen.key.spki, held.leaf, Pins((Pin(plane.signing_pin),)))
    response = renew_response.open_renew_response(signed, expected)
    return Pair(response.leaf, response.chain, chosen.key)
