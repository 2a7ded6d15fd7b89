"""Ids, durations, hosts, addresses, the configuration: texts to values and back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.controlplane.adapters.files import config
from bcd.controlplane.adapters.grpc.peers import source
from bcd.controlplane.app.serve import DEFAULT_ENDPOINT, to_bind
from bcd.controlplane.domain.durations import MalformedDuration, duration, show_duration
from bcd.controlplane.domain.hosts import Endpoint, MalformedHost, host
from bcd.controlplane.domain.ids import TokenId, TokenText, short_id, token_text
from bcd.controlplane.domain.lifetimes import BadLifetime, leaf_lifetime
from bcd.controlplane.domain.settings import Settings
from bcd.domain.model.names import TrustDomain
from bcd.domain.model.tokens import parse_token
from tests.fakes.properties import few


@few
@given(st.binary(min_size=7, max_size=7), st.binary(min_size=32, max_size=32))
def test_a_token_is_taken_apart_as_it_was_put_together(raw: bytes, secret: bytes) -> None:
    text = token_text(TokenId(short_id(raw)), secret)
    parsed = TokenText.parse(text.encode())
    assert parsed is not None
    assert parsed.id == short_id(raw)
    # The node takes it for a token too.
    assert parse_token(text.encode()).reveal() == text.encode()


@pytest.mark.parametrize("text", [b"", b"bcjt_", b"bcjt_aaaaaaaaaa_" + b"A" * 42, b"bcjt_AAAAAAAAAA_" + b"A" * 43])
def test_what_is_not_a_token_is_none(text: bytes) -> None:
    assert TokenText.parse(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("40s", 40), ("30m", 1800), ("24h", 86400), ("7d", 604800), ("0s", 0), ("90m", 5400)]
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "24", "h", "1.5h", "-1h", " 1h", "1 h", "1h30m", "1H", "١h", "9999999999s"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(MalformedDuration):
        duration(text)


@few
@given(st.integers(min_value=0, max_value=10**8))
def test_a_shown_duration_is_read_back(seconds: int) -> None:
    assert duration(show_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


def test_a_leaf_lives_between_twenty_seconds_and_a_day() -> None:
    assert leaf_lifetime(timedelta(seconds=20)) == timedelta(seconds=20)
    assert leaf_lifetime(timedelta(hours=24)) == timedelta(hours=24)
    for wrong in (timedelta(seconds=19), timedelta(hours=24, seconds=1)):
        with pytest.raises(BadLifetime):
            leaf_lifetime(wrong)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Plane.Example", "plane.example"),
        ("plane.example.", "plane.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("2001:DB8:0::1", "2001:db8::1"),
    ],
)
def test_a_host_has_one_spelling(text: str, want: str) -> None:
    assert host(text) == want


@pytest.mark.parametrize("text", ["", "-a", "a..b", "a b", "a_b", "1.2.3", "256.1.1.1", "a" * 64, "*.example", 'a"b'])
def test_anything_else_is_no_host(text: str) -> None:
    with pytest.raises(MalformedHost):
        host(text)


@pytest.mark.parametrize("text", ["127.0.0.1:0", "[::]:8443", "localhost:65535"])
def test_an_endpoint_is_written_as_it_is_read(text: str) -> None:
    assert str(Endpoint.parse(text)) == text


@pytest.mark.parametrize("text", ["8443", ":8443", "localhost", "localhost:", "localhost:65536", "::1:8443", "a:-1"])
def test_anything_else_is_no_endpoint(text: str) -> None:
    with pytest.raises(MalformedHost):
        Endpoint.parse(text)


@pytest.mark.parametrize(
    ("wanted", "kept", "bound"),
    [
        (None, None, "[::]:0"),
        (None, "127.0.0.1:5", "127.0.0.1:5"),
        ("127.0.0.1:0", None, "127.0.0.1:0"),
        ("127.0.0.1:0", "127.0.0.1:5", "127.0.0.1:5"),
        ("[::]:0", "127.0.0.1:5", "[::]:5"),
        ("127.0.0.1:6", "127.0.0.1:5", "127.0.0.1:6"),
    ],
)
def test_a_port_once_given_is_kept(wanted: str | None, kept: str | None, bound: str) -> None:
    parsed = [Endpoint.parse(text) if text is not None else None for text in (wanted, kept)]
    assert str(to_bind(*parsed, DEFAULT_ENDPOINT)) == bound


@pytest.mark.parametrize(
    ("peer", "want"),
    [
        ("ipv4:192.0.2.7:4711", "192.0.2.7"),
        ("ipv6:[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1:2::/64"),
        ("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:4711", "2001:db8:1:2::/64"),
        ("ipv6:[::ffff:192.0.2.7]:4711", "192.0.2.7"),
        ("ipv6:[::1]:4711", "::1"),
        ("ipv6:[fe80::1%eth0]:4711", "fe80::/64"),
        ("unix:", "unix"),
        ("", "unknown"),
    ],
)
def test_a_source_is_an_address_without_its_port(peer: str, want: str) -> None:
    assert source(peer) == want


SETTINGS = Settings(TrustDomain("example.test"), ("plane.example", "::1"), timedelta(seconds=40))


def test_the_configuration_is_read_as_it_was_written() -> None:
    assert config.decode(config.encode(SETTINGS)) == SETTINGS


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"example.test"', '"Example"', "trust_domain"),
        ('"example.test"', "5", "trust_domain"),
        ('["plane.example", "::1"]', "[]", "hosts"),
        ('["plane.example", "::1"]', '"plane.example"', "hosts"),
        ('"plane.example"', '"a b"', "hosts"),
        ('"40s"', '"10s"', "leaf_lifetime"),
        ('"40s"', "40", "leaf_lifetime"),
        ('"40s"', '"soon"', "leaf_lifetime"),
        ("leaf_lifetime", "leaf_life", "leaf_life"),
        ("trust_domain =", "trust_domain", "syntax"),
    ],
)
def test_a_wrong_key_of_the_configuration_is_named(old: str, new: str, key: str) -> None:
    text = config.encode(SETTINGS).decode()
    assert old in text
    with pytest.raises(config.BadConfig) as caught:
        config.decode(text.replace(old, new, 1).encode() if key != "leaf_life" else text.replace(old, new).encode())
    assert caught.value.key == key


def test_a_configuration_is_utf_8() -> None:
    with pytest.raises(config.BadConfig):
        config.decode(b"\xff")
