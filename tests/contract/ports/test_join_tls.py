"""Which server a join talks to: the CA with the pinned key, the host name, the dates."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import grpc
import pytest

from bcd.domain.model.joining import Issued
from bcd.domain.model.pins import Pins
from tests.contract.ports.join_rig import (
    CA,
    CONFIG,
    NEXT_CA,
    QUESTION,
    Service,
    failed,
    mismatch,
    question,
    served,
    transport,
)
from tests.fakes import pki, tls
from tests.fakes.clock import ManualClock
from tests.fakes.outside import closed_port
from tests.fakes.tls import REAL_NOW, ServingCa


def test_b55_another_ca_than_the_pinned_one_is_a_mismatch_that_names_both_pins_and_the_file() -> None:
    """Field report B55."""
    failure = mismatch(NEXT_CA.leaf(), NEXT_CA.der)
    assert f"have {CA.pin}, presented {NEXT_CA.pin}" in failure.text
    assert CONFIG in failure.text


def test_b55_while_a_ca_is_rotated_both_are_pinned_and_either_serves() -> None:
    both = Pins((CA.pin, NEXT_CA.pin))
    for ca in (CA, NEXT_CA):
        assert isinstance(served(ca.leaf(), ca.der, pins=both), Issued)
        assert isinstance(served(ca.leaf(), ca.der, CA.der, NEXT_CA.der, pins=both), Issued)


@pytest.mark.parametrize("order", [(CA, NEXT_CA), (NEXT_CA, CA)])
def test_b55_of_two_cas_in_the_chain_the_pinned_one_counts(order: tuple[ServingCa, ServingCa]) -> None:
    assert isinstance(served(CA.leaf(), *(ca.der for ca in order)), Issued)
    assert "certificate" in failed(served(NEXT_CA.leaf(), *(ca.der for ca in order))).lower()


def test_the_same_ca_with_other_dates_may_stand_beside_it() -> None:
    past = ServingCa.make(3100, not_after=REAL_NOW - timedelta(days=1))
    for first, second in ((past, CA), (CA, past)):
        assert isinstance(served(CA.leaf(), first.der, second.der), Issued)


@pytest.mark.parametrize("beside", [CA.pem, NEXT_CA.pem + CA.pem])
def test_with_the_ca_beside_the_configuration_the_server_need_not_present_it(beside: bytes) -> None:
    assert isinstance(served(CA.leaf(), ca_file=beside), Issued)
    assert "no CA in the chain" in mismatch(CA.leaf()).text


STALE = {
    "rubbish": b"rubbish",
    "empty": b"",
    "another CA": NEXT_CA.pem,
    "an older one of the same key": ServingCa.make(3100, "old name").pem,
    "expired": ServingCa.make(3100, not_after=REAL_NOW - timedelta(days=1)).pem,
    "no CA": ServingCa.make(3100, is_ca=False).pem,
    "not by its own key": ServingCa.make(3100, signer=pki.OTHER_KEY).pem,
}


@pytest.mark.parametrize("beside", STALE)
def test_b55_a_stale_ca_beside_the_configuration_only_costs_a_look_at_the_server(beside: str) -> None:
    assert isinstance(served(CA.leaf(), CA.der, ca_file=STALE[beside]), Issued)


def test_b55_a_stale_ca_beside_the_configuration_hides_no_mismatch() -> None:
    assert f"presented {NEXT_CA.pin}" in mismatch(NEXT_CA.leaf(), NEXT_CA.der, ca_file=CA.pem).text


def test_b55_a_rotation_between_two_questions_of_one_transport_is_noticed() -> None:
    """The port is the same, the CA another: the second question finds it by one new look."""
    service = Service()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    asked = transport(port, Pins((CA.pin, NEXT_CA.pin)))
    good = question(service.plane, service.plane.token())
    for ca in (CA, NEXT_CA):
        with served_at(port, service, ca):
            assert isinstance(asked.join(good), Issued)


@contextmanager
def served_at(port: int, handler: tls.Handler, ca: ServingCa) -> Iterator[None]:
    class Handler(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(handler)

    server = grpc.server(tls.ThreadPoolExecutor(2), handlers=[Handler()])
    chain = tls.to_pem(ca.leaf(), ca.der)
    assert server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([(tls.LEAF_KEY_PEM, chain)])) == port
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


@pytest.mark.parametrize("ca", ["no CA", "not by its own key"])
def test_a_pinned_certificate_that_is_no_ca_of_its_own_is_no_root(ca: str) -> None:
    kind = {"is_ca": False} if ca == "no CA" else {"signer": pki.OTHER_KEY}
    wrong = ServingCa.make(3100, **kind)  # type: ignore[arg-type]
    mismatch(CA.leaf(), wrong.der)


@pytest.mark.parametrize("beside", [None, CA.pem])
def test_a_certificate_for_another_host_is_a_failure_that_says_so(beside: bytes | None) -> None:
    why = failed(served(CA.leaf(names=("elsewhere.example",)), CA.der, ca_file=beside))
    assert "another host name" in why


@pytest.mark.parametrize("beside", [None, CA.pem])
@pytest.mark.parametrize("when", ["future", "past"])
def test_b23_a_certificate_out_of_date_is_told_with_the_local_clock(when: str, beside: bytes | None) -> None:
    """Field report B23."""
    days = timedelta(days=2 if when == "future" else -4)
    leaf = CA.leaf(not_before=REAL_NOW + days, not_after=REAL_NOW + days + timedelta(days=2))
    why = failed(served(leaf, CA.der, ca_file=beside))
    assert f"local clock {REAL_NOW:%Y-%m-%dT%H:%M:%SZ}" in why
    assert ("before the server certificate" if when == "future" else "after the server certificate") in why


@pytest.mark.parametrize(("year", "words"), [(2010, "before"), (2099, "after")])
def test_b23_a_clock_years_off_is_told_as_the_clocks_fault(year: int, words: str) -> None:
    why = failed(served(CA.leaf(), CA.der, ca_file=CA.pem, clock=ManualClock(datetime(year, 1, 1, tzinfo=UTC))))
    assert f"local clock {year}-01-01T00:00:00Z is {words} the server certificate" in why
    assert "fix the clock" in why


def test_an_ipv6_address_is_a_server_as_any_other() -> None:
    if not _has_ipv6():
        pytest.skip("no IPv6 loopback here")
    assert isinstance(served(CA.leaf(), CA.der, host="[::1]"), Issued)
    assert "[::1]:" in failed(served(CA.leaf(names=("127.0.0.1",)), CA.der, host="[::1]"))


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_a_host_name_is_checked_as_it_is_written() -> None:
    assert isinstance(served(CA.leaf(), CA.der, name="localhost"), Issued)
    assert "another host name" in failed(served(CA.leaf(names=("127.0.0.1",)), CA.der, name="localhost"))


@pytest.mark.parametrize("host", ["name.invalid", "a..b", ".", "-", "x" * 64 + ".invalid", "1.2.3.4.5.invalid"])
@pytest.mark.parametrize("beside", [None, CA.pem])
def test_a_name_that_does_not_resolve_is_a_failure_that_says_so(host: str, beside: bytes | None) -> None:
    why = failed(transport(443, host=host, ca_file=beside, timeout_s=5).join(QUESTION))
    assert host in why
    assert "does not resolve" in why or "UNAVAILABLE" in why


def test_a_port_where_nobody_listens_is_a_failure_that_says_so() -> None:
    with closed_port() as port:
        for beside in (None, CA.pem):
            assert "connection refused" in failed(transport(port, ca_file=beside).join(QUESTION)).lower()
