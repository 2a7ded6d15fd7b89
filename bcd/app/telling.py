"""What a running node tells: its log, its journal (which `bcd status` reads) and its supervisor."""

import queue
from typing import NoReturn

from bcd.app.parts import Held, Parts
from bcd.domain.lifecycle.change_identity import IdentityChanged
from bcd.domain.model.failures import Failure, IdentityDead, Message, TryLater
from bcd.domain.model.identity import Leaf
from bcd.ports.gateway import Ended
from bcd.ports.journal import REVOKED

WAY_BACK = "bcd join --reset --yes, then bcd join"


class Telling:
    def __init__(self, parts: Parts, held: Held) -> None:
        self._parts = parts
        self._held = held
        self._events = parts.events
        # Public keys (SPKI), one for each signature, from whatever thread signed.
        self.signatures: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def ready(self) -> None:
        self._events.info("identity loaded", node=self._held.pairs.pair.leaf.spiffe_id.node)
        self.plan()
        self._parts.supervisor.tell("READY=1", f"STATUS={self._status()}")

    def stopping(self) -> None:
        self._parts.supervisor.tell("STOPPING=1")

    def status(self) -> None:
        self._parts.supervisor.tell(f"STATUS={self._status()}")

    def plan(self) -> None:
        """When the next renewal is to be (field report B26)."""
        state = self._held.state
        planned = state.renewal.planned(state.leaf, self._held.now(), self._held.clock.boottime_s())
        self._held.journal.planned(planned)
        self._events.info("next renewal planned", at=planned, expiresIn=_span(self._held.left_s()))
        self.status()

    def expired(self) -> None:
        state = self._held.state
        self._events.error(
            "the certificate expired, or the clock is wrong; the node stays up and keeps asking",
            notAfter=state.leaf.not_after,
            clock=self._held.clock.now(),
            serverTimeMark=state.reckoning.mark or "none",
            wayBack=WAY_BACK,
        )

    def retired(self, leaf: Leaf) -> None:
        self._events.error(
            "this certificate was replaced by another, which is not on this disk: is there a copy of this node?",
            node=leaf.spiffe_id.node,
            wayBack=WAY_BACK,
        )

    def no_session(self, ended: Ended) -> None:
        held, link = self._held, self._held.state.link
        wait_s = link.earliest_s - held.clock.boottime_s()
        fields: dict[str, object] = {"attempt": link.failures, "next_in_s": round(wait_s, 1)}
        if not link.up:
            held.journal.session(f"down: {ended.why}", held.now())
        self._events.warning("no session", why=ended.why, **fields, **_if_refused(ended))
        if not link.up:
            self.status()

    def not_renewed(self, ended: Ended) -> None:
        held, failures = self._held, self._held.state.renewal.failures
        fields: dict[str, object] = {"attempt": failures, "expiresIn": _span(held.left_s()), "why": ended.why}
        held.journal.attempted(held.now(), failures, ended.why)
        self._events.warning("renewal failed", **fields, **_if_refused(ended))
        self.plan()

    def revoked(self, leaf: Leaf, reason: str) -> NoReturn:
        """The notice, or its like: this identity is dead, unless the disk has another by now."""
        try:
            self._parts.change.stored(leaf)
        except (IdentityChanged, Failure):
            raise TryLater(Message.ANOTHER_LEAF) from None
        self._events.error("certificate revoked", reason=reason, node=leaf.spiffe_id.node, wayBack=WAY_BACK)
        self._held.journal.session(f"{REVOKED}: {reason}", self._held.now())
        raise IdentityDead(Message.REVOKED)

    def count_signatures(self) -> None:
        counted: dict[bytes, int] = {}
        while True:
            try:
                spki = self.signatures.get_nowait()
            except queue.Empty:
                break
            counted[spki] = counted.get(spki, 0) + 1
        for spki, count in counted.items():
            self._held.journal.signed(_kid(spki), count)

    def _status(self) -> str:
        state = self._held.state
        session = "session up" if state.link.up else "no session"
        return f"{session}; certificate until {state.leaf.not_after:%Y-%m-%dT%H:%M:%SZ}"


def _if_refused(ended: Ended) -> dict[str, object]:
    return {"wayBack": f"if this lasts: {WAY_BACK}"} if ended.refused else {}


def _kid(spki: bytes) -> str:
    from bcd.protocol.pki import ecdsa

    return ecdsa.thumbprint(ecdsa.public_key(spki))


def _span(seconds: float) -> str:
    whole = abs(int(seconds))
    # A part of a second past the end is no "-0s".
    sign = "-" if seconds <= -1 else ""
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    return f"{sign}{hours}h{minutes}m{rest}s" if hours else f"{sign}{minutes}m{rest}s" if minutes else f"{sign}{rest}s"
