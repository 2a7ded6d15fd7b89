"""The identity's values: whose it is, and when its leaf is replaced."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model import identity
from bcd.domain.model.identity import Identity, Leaf, renew_at, same_identity
from bcd.domain.model.names import NodeId, Role, SiteId, SpiffeId, TrustDomain
from tests.fakes.properties import few

START = datetime(2026, 9, 26, 12, 0, tzinfo=UTC)


def leaf(node: str = "n-7", lifetime: timedelta = timedelta(hours=24), role: Role = Role.NODE) -> Leaf:
    spiffe_id = SpiffeId(TrustDomain("example.org"), SiteId("hall-2"), NodeId(node))
    return Leaf(b"der", b"spki", spiffe_id, role, START, START + lifetime)


NODES = st.from_regex(r"\A[a-z0-9-]{1,20}\Z")


@few
@given(NODES, st.integers(20, 86400))
def test_a_leaf_is_replaced_between_60_and_65_percent_of_its_lifetime(node: str, seconds: int) -> None:
    lifetime = timedelta(seconds=seconds)
    passed = renew_at(leaf(node, lifetime)) - START
    assert lifetime * 0.60 <= passed <= lifetime * 0.65


@few
@given(NODES, st.integers(20, 86400), st.binary(max_size=8))
def test_one_node_replaces_every_leaf_at_the_same_share_of_its_lifetime(node: str, seconds: int, der: bytes) -> None:
    one = leaf(node)
    other = replace(leaf(node, timedelta(seconds=seconds)), der=der, spki=der)
    share, other_share = ((renew_at(x) - START) / x.lifetime for x in (one, other))
    assert share == pytest.approx(other_share, abs=1e-6)


def test_a_rack_does_not_renew_in_one_second() -> None:
    instants = sorted(renew_at(leaf(f"n-{i}")) for i in range(200))
    assert len(set(instants)) == 200
    assert instants[-1] - instants[0] > timedelta(hours=1)


def test_the_share_of_a_known_node_is_the_documented_one() -> None:
    """60 % + 5 % × the first 8 bytes of SHA-256(node id), big-endian, as a fraction of 2^64."""
    spread = int.from_bytes(sha256(b"n-7").digest()[:8]) / 2**64
    assert renew_at(leaf("n-7")) == START + timedelta(hours=24) * (0.60 + 0.05 * spread)


def test_the_plan_counts_from_the_leafs_own_dates() -> None:
    """B25: the same instant whatever zone the dates are told in."""
    here = leaf()
    zone = timezone(timedelta(hours=14))
    there = replace(here, not_before=here.not_before.astimezone(zone), not_after=here.not_after.astimezone(zone))
    assert renew_at(there) == renew_at(here)


def test_the_same_node_in_the_same_role_is_the_same_identity() -> None:
    assert same_identity(leaf(), replace(leaf(), der=b"new", spki=b"new", not_after=START + timedelta(hours=1)))


@pytest.mark.parametrize(
    "other",
    [
        leaf("n-8"),
        leaf(role=Role.SITE),
        replace(leaf(), spiffe_id=replace(leaf().spiffe_id, site=SiteId("hall-3"))),
        replace(leaf(), spiffe_id=replace(leaf().spiffe_id, trust_domain=TrustDomain("example.net"))),
    ],
)
def test_another_node_site_domain_or_role_is_another_identity(other: Leaf) -> None:
    assert not same_identity(leaf(), other)


def test_an_identity_is_what_its_leaf_says() -> None:
    it = Identity(leaf(role=Role.SITE), (b"der",))
    assert (it.node_id, it.site_id, it.trust_domain, it.role) == ("n-7", "hall-2", "example.org", Role.SITE)
    assert it.leaf.sha256 == sha256(b"der").digest()
    assert it.leaf.lifetime == timedelta(hours=24)
    assert it.trust is None
    assert it.server_time is None


def test_a_node_certificate_lasts_a_day_and_a_ramdisks_two_hours() -> None:
    assert {
        Role.NODE: timedelta(hours=24),
        Role.SITE: timedelta(hours=24),
        Role.RAMDISK: timedelta(hours=2),
    } == identity.MAX_LIFETIME
