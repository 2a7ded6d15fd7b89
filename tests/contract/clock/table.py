"""What the rows of the clock table share: a node in a simulated world, and what is to be seen of its renewals."""

import itertools
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bcd.domain.model.identity import Leaf
from bcd.ports.gateway import RenewAnswer, Renewed, RenewQuestion
from tests.fakes.gateway import MemoryConnection
from tests.fakes.running_node import World

# One look, the dial that may have to come first, and what a renewal takes.
A_LOOK = timedelta(seconds=65)
# The longest backoff, and a look.
A_BACKOFF = timedelta(seconds=665)


@dataclass
class Table:
    """A world whose renewals are written down: with which leaf, at what time by the gateway and in truth, and whether
    they worked. `awake` is when the node could next do anything after the last row's event."""

    world: World
    asked: list[tuple[Leaf, datetime, datetime, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        certify = self.world.gateway.certify

        def written_down(connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
            answer = certify(connection, question)
            seen = self.world.gateway.now(), self.world.true, isinstance(answer, Renewed)
            self.asked.append((connection.pair.leaf, *seen))
            return answer

        self.world.gateway.certify = written_down  # type: ignore[method-assign]
        self.world.gateway.on_renew = written_down

    @property
    def renewed(self) -> list[tuple[Leaf, datetime, datetime]]:
        # What the gateway gave, the node took.
        assert len(self.world.told("renewed")) == sum(worked for *_, worked in self.asked)
        return [(leaf, by_gateway, true) for leaf, by_gateway, true, worked in self.asked if worked]

    def no_storm(self) -> None:
        """At most one success in a quarter of a lifetime, and no more failures than the backoff has."""
        times = [true for _, _, true in self.renewed]
        for earlier, later in itertools.pairwise(times):
            assert later - earlier >= self.world.lifetime / 4
        failed = [true for _, _, true, worked in self.asked if not worked]
        hours = (self.world.true - self.world.begin) / timedelta(hours=1)
        assert len(failed) <= 10 + hours * 12

    def each_at_its_time(self, late: timedelta = A_LOOK) -> None:
        """By the gateway's clock every leaf was replaced at 60 to 65 % of its life, but for `late`."""
        assert self.renewed
        for leaf, by_gateway, _ in self.renewed:
            assert by_gateway >= leaf.not_before + leaf.lifetime * 0.60 - A_LOOK
            assert by_gateway <= leaf.not_before + leaf.lifetime * 0.65 + late

    def none_missed(self) -> None:
        """The leaf on disk is good now, by the gateway's clock, and not past its time."""
        leaf, now = self.world.leaf, self.world.gateway.now()
        assert leaf.not_before <= now < leaf.not_before + leaf.lifetime * 0.65 + A_BACKOFF
