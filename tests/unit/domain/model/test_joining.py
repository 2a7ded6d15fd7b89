"""What follows an answer of the control plane while a node joins."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model import joining
from bcd.domain.model.attestation import JoinChallenge, TpmChallenge
from bcd.domain.model.backoff import join_delay_s
from bcd.domain.model.joining import (
    AskAgain,
    Challenged,
    Check,
    Denied,
    Failed,
    GiveUp,
    Issued,
    JoinDenied,
    Pending,
    Progress,
    Prove,
    Unanswered,
    next_step,
)
from bcd.domain.model.names import Role
from bcd.domain.model.pending import PendingJoin, SealedToken
from tests.fakes.properties import few

FRACTION = st.floats(0, 1, exclude_max=True)
PROGRESS = st.builds(Progress, st.integers(0, 19), st.sampled_from(["", "p-1"]))


@few
@given(PROGRESS, FRACTION)
def test_an_issued_certificate_is_checked_and_a_refusal_is_final(progress: Progress, fraction: float) -> None:
    assert next_step(progress, Issued(b"signed"), fraction) == Check(b"signed")
    assert next_step(progress, JoinDenied("r-1"), fraction) == Denied("r-1")


@pytest.mark.parametrize(
    ("asked", "waited"), [(0, 1.0), (0.5, 1.0), (1, 1.0), (30, 30.0), (3600, 3600.0), (3601, 3600.0), (1e9, 3600.0)]
)
def test_an_approval_is_waited_out_between_one_second_and_an_hour(asked: float, waited: float) -> None:
    assert next_step(Progress(7, ""), Pending("p-2", asked), 0.3) == AskAgain(Progress(0, "p-2"), waited)


def test_a_week_of_approval_does_not_use_the_attempts_up() -> None:
    progress = Progress()
    for _ in range(1000):
        step = next_step(progress, Pending("p-1", 600), 0.0)
        assert isinstance(step, AskAgain)
        lost = next_step(step.progress, Failed("lost"), 0.0)
        assert isinstance(lost, AskAgain)
        assert lost.progress == Progress(1, "p-1")
        progress = lost.progress


@few
@given(FRACTION)
def test_twenty_failures_in_a_row_and_no_fewer_end_the_join(fraction: float) -> None:
    progress = Progress()
    for attempt in range(1, 20):
        step = next_step(progress, Failed("no route"), fraction)
        assert step == AskAgain(Progress(attempt, ""), join_delay_s(attempt, fraction))
        assert isinstance(step, AskAgain)
        progress = step.progress
    assert next_step(progress, Failed("no route"), fraction) == GiveUp(20, "no route", asked_to=False)


@pytest.mark.parametrize("pushback_s", [0.0, 0.001, 7.25, 86400.0])
def test_a_pushback_is_waited_out_exactly_and_counts(pushback_s: float) -> None:
    step = next_step(Progress(3, "p-1"), Failed("busy", pushback_s), 0.9)
    assert step == AskAgain(Progress(4, "p-1"), pushback_s)


def test_a_pushback_does_not_give_a_21st_attempt() -> None:
    assert next_step(Progress(19), Failed("busy", 1.0), 0.0) == GiveUp(20, "busy", asked_to=False)
    assert isinstance(next_step(Progress(18), Failed("busy", 1.0), 0.0), AskAgain)


def test_never_again_ends_the_join_at_once() -> None:
    assert next_step(Progress(), Failed("busy", None, never=True), 0.0) == GiveUp(1, "busy", asked_to=True)
    assert next_step(Progress(19), Failed("busy", None, never=True), 0.0) == GiveUp(20, "busy", asked_to=True)


def test_a_request_under_way_shows_no_secret() -> None:
    sealed = SealedToken("kid-1", b"S3aled")
    pending = PendingJoin(
        "join-token", Role.NODE, None, b"S3cret key", b"csr", sealed, "", datetime(2026, 9, 26, tzinfo=UTC)
    )
    assert "join-token" in repr(pending)
    assert "S3cret" not in repr(pending)
    assert "S3aled" not in repr(pending) + repr(sealed)


def test_the_bounds_of_an_approval_are_stated() -> None:
    assert (joining.MIN_PENDING_WAIT_S, joining.MAX_PENDING_WAIT_S) == (1.0, 3600.0)


# --- Challenges

CHALLENGE = JoinChallenge("c-1", "tpm", datetime(2026, 1, 1, tzinfo=UTC), TpmChallenge(b"", b"", b"", 0, b"", b""))


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_challenge_is_followed_and_counted_and_is_an_answer(rounds: int) -> None:
    step = next_step(Progress(7, "p-1", rounds), Challenged(CHALLENGE, 600.0), 0.3)
    assert step == Prove(Progress(0, "p-1", rounds + 1), CHALLENGE, 600.0)


def test_a_fourth_challenge_is_not_followed() -> None:
    assert next_step(Progress(rounds=3), Challenged(CHALLENGE, 600.0), 0.3) == Unanswered(
        "is number 4, and 3 are followed"
    )


@pytest.mark.parametrize("lasts_s", [0.0, -1.0, -1e9])
def test_a_challenge_that_had_ended_when_it_came_is_not_followed(lasts_s: float) -> None:
    assert isinstance(next_step(Progress(), Challenged(CHALLENGE, lasts_s), 0.3), Unanswered)


def test_failures_between_challenges_give_no_more_of_them_and_an_approval_does() -> None:
    lost = next_step(Progress(rounds=2), Failed("lost"), 0.0)
    assert isinstance(lost, AskAgain)
    assert lost.progress.rounds == 2
    approved = next_step(Progress(rounds=2), Pending("p-1", 1), 0.0)
    assert isinstance(approved, AskAgain)
    assert approved.progress.rounds == 0
