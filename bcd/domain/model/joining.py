"""A join under way, as a table: what has been asked, what came back, what is done next. No I/O, no clock."""

from dataclasses import dataclass, replace
from typing import assert_never

from bcd.domain.model.attestation import MAX_ROUNDS, JoinChallenge
from bcd.domain.model.backoff import JOIN_ATTEMPTS, join_delay_s

# Protocol, "Services": an approval is waited out at least this long between two questions.
MIN_PENDING_WAIT_S = 1.0
# A control plane that asks for more than this between two questions is asked after this all the same: an approval
# given meanwhile would go unseen for days.
MAX_PENDING_WAIT_S = 3600.0


@dataclass(frozen=True)
class Issued:
    """`signed` is the serialized SignedStatement, not yet looked at."""

    signed: bytes


@dataclass(frozen=True)
class Pending:
    """Somebody has to approve this request first."""

    id: str
    retry_after_s: float


@dataclass(frozen=True)
class Challenged:
    """The machine's TPM is to prove what it showed, within `lasts_s` seconds of the answer."""

    challenge: JoinChallenge
    lasts_s: float


@dataclass(frozen=True)
class JoinDenied:
    """The control plane's final no. `refusal_id` is empty when it gave none."""

    refusal_id: str


@dataclass(frozen=True)
class Failed:
    """No answer, or one that decides nothing. `pushback_s`: wait exactly that long; `never`: do not ask again."""

    why: str
    pushback_s: float | None = None
    never: bool = False


Answer = Issued | Pending | Challenged | JoinDenied | Failed


@dataclass(frozen=True)
class Progress:
    """How often in a row nothing was decided, which approval is waited for, and how many challenges there were."""

    failures: int = 0
    pending_id: str = ""
    rounds: int = 0


@dataclass(frozen=True)
class AskAgain:
    """The same request once more after `wait_s` seconds."""

    progress: Progress
    wait_s: float


@dataclass(frozen=True)
class Prove:
    """Answer the challenge with the same request, if `lasts_s` seconds have not passed when the answer is there."""

    progress: Progress
    challenge: JoinChallenge
    lasts_s: float


@dataclass(frozen=True)
class Unanswered:
    """A challenge that is not followed; `why` completes "the challenge …"."""

    why: str


@dataclass(frozen=True)
class Check:
    """Verify this, then store it."""

    signed: bytes


@dataclass(frozen=True)
class Denied:
    refusal_id: str


@dataclass(frozen=True)
class GiveUp:
    """The attempts are used up, or the server asked for no more."""

    attempts: int
    last: str
    asked_to: bool


Next = AskAgain | Prove | Unanswered | Check | Denied | GiveUp


def next_step(progress: Progress, answer: Answer, fraction: float) -> Next:
    """What follows `answer`; `fraction` is the randomness of a backoff, in [0, 1)."""
    match answer:
        case Issued(signed):
            return Check(signed)
        case JoinDenied(refusal_id):
            return Denied(refusal_id)
        case Pending(pending_id, retry_after_s):
            # An answer: the count begins anew, or a week of waiting would use the attempts up.
            wait_s = min(max(MIN_PENDING_WAIT_S, retry_after_s), MAX_PENDING_WAIT_S)
            return AskAgain(Progress(0, pending_id), wait_s)
        case Challenged(challenge, lasts_s):
            if progress.rounds >= MAX_ROUNDS:
                return Unanswered(f"is number {progress.rounds + 1}, and {MAX_ROUNDS} are followed")
            if lasts_s <= 0:
                return Unanswered("had ended when it came")
            return Prove(replace(progress, failures=0, rounds=progress.rounds + 1), challenge, lasts_s)
        case Failed(why, pushback_s, never):
            failures = progress.failures + 1
            if never:
                return GiveUp(failures, why, asked_to=True)
            if failures >= JOIN_ATTEMPTS:
                return GiveUp(failures, why, asked_to=False)
            wait_s = join_delay_s(failures, fraction) if pushback_s is None else pushback_s
            return AskAgain(replace(progress, failures=failures), wait_s)
    assert_never(answer)
