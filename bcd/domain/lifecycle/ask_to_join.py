"""Asking the control plane with one request, as the table in model.joining says, until there is an answer to store."""

from dataclasses import dataclass, replace

from bcd.domain.lifecycle.attest import Attest
from bcd.domain.lifecycle.begin_join import Begun
from bcd.domain.model import datadir
from bcd.domain.model.attestation import ChallengeAnswer
from bcd.domain.model.datadir import PENDING
from bcd.domain.model.failures import FixConfiguration, Message, Refused, TryLater
from bcd.domain.model.joining import (
    Answer,
    AskAgain,
    Check,
    Denied,
    Failed,
    GiveUp,
    Progress,
    Prove,
    Unanswered,
    next_step,
)
from bcd.domain.model.pins import Pins
from bcd.ports.clock import Clock
from bcd.ports.entropy import Entropy
from bcd.ports.events import Events
from bcd.ports.fs import Fs
from bcd.ports.hardware import Hardware
from bcd.ports.join_transport import JoinQuestion, JoinTransport
from bcd.protocol.files import join_pending
from bcd.protocol.pki import join_response


@dataclass(frozen=True)
class AskToJoin:
    fs: Fs
    attest: Attest
    transport: JoinTransport
    hardware: Hardware
    signing_pins: Pins
    clock: Clock
    entropy: Entropy
    events: Events
    version: str

    def __call__(self, begun: Begun) -> join_response.JoinResponse:
        """The answer, checked. Refused for the control plane's final no, with the request set aside; TryLater when
        there is no answer, or one that does not verify, and the request stays. The caller holds the lock."""
        progress = Progress(pending_id=begun.pending.pending_id)
        claims = self.hardware.claims()
        proof: ChallengeAnswer | None = None
        while True:
            answer = self.transport.join(JoinQuestion(begun.pending, claims, self.version, begun.evidence, proof))
            match next_step(progress, answer, self.entropy.fraction()):
                case Check(signed):
                    return self._check(signed, begun)
                case AskAgain(following, wait_s):
                    if following.pending_id != begun.pending.pending_id:
                        begun = self._waits_for(following.pending_id, begun)
                    self._tell(following, answer, wait_s)
                    if following.pending_id and not following.failures:
                        # After an approval there is another challenge: the answer to the one before is stale.
                        proof = None
                        # A person takes hours: others may want the room in the TPM.
                        self.attest.attestor.release()
                    progress = following
                    self.clock.wait(wait_s)
                case Prove(following, challenge, lasts_s):
                    proof = self.attest(challenge, lasts_s, begun.evidence, begun.key, begun.pending.csr)
                    progress = following
                case Unanswered(why):
                    raise TryLater(Message.CHALLENGE, why=why)
                case Denied(refusal_id):
                    raise self._refused(refusal_id, begun)
                case GiveUp(attempts, last, asked_to):
                    raise TryLater(Message.NO_RETRY if asked_to else Message.GAVE_UP, attempts=attempts, last=last)

    def _waits_for(self, pending_id: str, begun: Begun) -> Begun:
        """Durable before the wait: a person may take days, and another process asks for the same approval then."""
        pending = replace(begun.pending, pending_id=pending_id)
        self.fs.write(PENDING, join_pending.encode(pending))
        return replace(begun, pending=pending)

    def _tell(self, progress: Progress, answer: Answer, wait_s: float) -> None:
        if isinstance(answer, Failed):
            self.events.warning(
                "join attempt failed", attempt=progress.failures, why=answer.why, next_in_s=round(wait_s, 1)
            )
        else:
            self.events.info("waiting for approval", id=progress.pending_id, next_in_s=round(wait_s, 1))

    def _refused(self, refusal_id: str, begun: Begun) -> Refused:
        # The same request would be refused for ever; the next join begins anew.
        self.fs.move_aside(PENDING, datadir.refused_name(self.clock.now()))
        message = Message.JOIN_REFUSED if begun.evidence is None else Message.TPM_JOIN_REFUSED
        return Refused(message, id=refusal_id or "none given")

    def _check(self, signed: bytes, begun: Begun) -> join_response.JoinResponse:
        pending = begun.pending
        expected = join_response.Expected(pending.csr, begun.key.spki, pending.role, pending.node_id, self.signing_pins)
        try:
            return join_response.open_join_response(signed, expected)
        except join_response.SigningKeyIsAnother as error:
            raise FixConfiguration(Message.SIGNING_PIN, have=self.signing_pins, presented=error.presented) from None
        except join_response.DoesNotVerify as error:
            raise TryLater(Message.BAD_ANSWER, number=error.number, why=error.why) from None
