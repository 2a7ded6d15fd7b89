"""The port `Gateway`: one contract over gRPC with mutual TLS and over the one in memory."""

import contextlib
from collections.abc import Callable
from datetime import timedelta

import pytest

from bcd.ports.gateway import Bundle, Ended, RenewNow, Retired, Revoked, Welcome
from tests.contract.ports.gateway_rig import (
    HELLO,
    QUESTION,
    RENEWED,
    WELCOME,
    Ears,
    Rig,
    connected,
    memory,
    over_grpc,
    renewal,
    session,
)
from tests.fakes.contracts import checks_of
from tests.fakes.gateway import BUNDLE
from tests.fakes.tls import REAL_NOW


class GatewayContract:
    @staticmethod
    def hello_arrives_as_it_was_said(rig: Rig) -> None:
        session(rig, WELCOME)
        assert rig.hellos == [HELLO]

    @staticmethod
    def everything_said_is_delivered_in_order(rig: Rig) -> None:
        said = (
            WELCOME,
            Bundle(BUNDLE),
            RenewNow("quota"),
            Bundle(BUNDLE),
            Welcome(REAL_NOW + timedelta(seconds=1), b""),
        )
        assert session(rig, *said) == list(said)

    @staticmethod
    def a_notice_of_revocation_is_the_last_word(rig: Rig) -> None:
        rig.says(WELCOME, Revoked("operator: stolen"), WELCOME)
        ears = Ears()
        with connected(rig) as connection:
            connection.start(HELLO, ears)
            assert [ears.next(), ears.next()] == [WELCOME, Revoked("operator: stolen")]
            connection.close()
        assert ears.silent

    @staticmethod
    def a_session_refused_as_revoked_or_retired_says_so(rig: Rig) -> None:
        assert session(rig, Retired()) == [Retired()]

    @staticmethod
    def a_session_that_ends_tells_why_and_how_long_to_wait(rig: Rig) -> None:
        for ended in (Ended("x"), Ended("x", pushback_s=7.25), Ended("x", never=True), Ended("x", refused=True)):
            (found,) = session(rig, ended)
            assert isinstance(found, Ended)
            assert (found.pushback_s, found.never, found.refused) == (ended.pushback_s, ended.never, ended.refused)
            assert "x" in found.why

    @staticmethod
    def a_closed_connection_delivers_nothing_and_may_be_closed_again(rig: Rig) -> None:
        rig.says(WELCOME)
        ears = Ears()
        with connected(rig) as connection:
            connection.start(HELLO, ears)
            ears.next()
            connection.close()
            connection.close()
        assert ears.silent

    @staticmethod
    def a_connection_closed_before_it_started_says_no_hello(rig: Rig) -> None:
        rig.says(WELCOME)
        ears = Ears()
        with connected(rig) as connection:
            connection.close()
            connection.start(HELLO, ears)
        assert ears.silent
        assert rig.hellos == []

    @staticmethod
    def a_question_arrives_as_it_was_asked_and_is_answered(rig: Rig) -> None:
        assert renewal(rig, RENEWED) == RENEWED
        assert rig.asked == [QUESTION]

    @staticmethod
    def a_renewal_refused_as_revoked_or_retired_says_so(rig: Rig) -> None:
        assert renewal(rig, Revoked("operator: stolen")) == Revoked("operator: stolen")
        assert renewal(rig, Retired()) == Retired()

    @staticmethod
    def a_renewal_that_fails_tells_why_and_how_long_to_wait(rig: Rig) -> None:
        for ended in (Ended("x"), Ended("x", pushback_s=7.25), Ended("x", never=True), Ended("x", refused=True)):
            found = renewal(rig, ended)
            assert isinstance(found, Ended)
            assert (found.pushback_s, found.never, found.refused) == (ended.pushback_s, ended.never, ended.refused)
            assert "x" in found.why

    @staticmethod
    def one_connection_carries_session_and_renewals(rig: Rig) -> None:
        rig.says(WELCOME)
        rig.answers(RENEWED)
        ears = Ears()
        with connected(rig) as connection:
            connection.start(HELLO, ears)
            ears.next()
            assert connection.renew(QUESTION) == RENEWED
            assert connection.renew(QUESTION) == RENEWED
        assert len(rig.asked) == 2

    @staticmethod
    def a_closed_connection_renews_nothing(rig: Rig) -> None:
        rig.answers(RENEWED)
        with connected(rig) as connection:
            connection.close()
            assert isinstance(connection.renew(QUESTION), Ended)
        assert rig.asked == []


@pytest.mark.parametrize("make", [memory, over_grpc])
@pytest.mark.parametrize("check", checks_of(GatewayContract).values(), ids=checks_of(GatewayContract))
def test_every_gateway_meets_the_contract(
    check: Callable[[Rig], None], make: Callable[[], contextlib.AbstractContextManager[Rig]]
) -> None:
    with make() as rig:
        check(rig)
