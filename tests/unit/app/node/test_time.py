"""No time, of the machine's or of a gateway's, ends a running node."""

from datetime import UTC, datetime, timedelta

import pytest

from bcd.ports.gateway import Welcome
from tests.fakes import pki
from tests.fakes.gateway import BUNDLE
from tests.fakes.running_node import HOUR_S, RENEWS_S, World


def test_an_expired_certificate_is_told_every_ten_minutes_and_the_node_stays_up() -> None:
    """Decision 15."""
    world = World()
    world.gateway.refuse()
    world.run(25.6 * HOUR_S)
    told = world.told("the certificate expired, or the clock is wrong; the node stays up and keeps asking")
    assert 23 <= len(told) <= 25
    assert told[0]["notAfter"] == world.first.not_after
    assert told[0]["serverTimeMark"] == pki.NOW
    assert told[0]["wayBack"] == "bcd join --reset --yes, then bcd join"
    first_told = world.events.lines.index(
        ("error", "the certificate expired, or the clock is wrong; the node stays up and keeps asking", told[0])
    )
    after = [text for _, text, _ in world.events.lines[first_told:]]
    assert "no session" in after
    assert "renewal failed" in after


def test_b21_a_clock_a_year_ahead_and_back_is_told_and_needs_no_restart() -> None:
    """Field report B21. Before first contact: after it, the wall clock is not asked at all."""
    world = World()
    year = timedelta(days=365)
    world.gateway.refuse()
    world.at(HOUR_S, lambda: world.step_wall(year))
    world.at(2 * HOUR_S, lambda: world.step_wall(-year))
    world.at(2 * HOUR_S, world.gateway.accept)
    world.run(RENEWS_S + 2 * HOUR_S)
    told = world.told("the certificate expired, or the clock is wrong; the node stays up and keeps asking")
    assert told
    assert (told[0]["clock"], told[0]["serverTimeMark"]) == (pki.NOW + year + timedelta(hours=1), pki.NOW)
    assert world.told("session up")
    assert len(world.used("renew")) == 1
    assert world.leaf != world.first


@pytest.mark.parametrize(
    "server_time", [datetime(1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
def test_no_time_a_gateway_tells_ends_the_node(server_time: datetime) -> None:
    world = World()
    world.gateway.on_hello = lambda connection: connection.say(Welcome(server_time, BUNDLE))
    world.at(3 * HOUR_S, lambda: world.gateway.session)
    world.run(3 * HOUR_S + 1)
    assert len(world.used("renew")) < 40
