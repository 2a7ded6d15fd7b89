"""The gateway's two calls: Hello and Renew, each one transaction of the store."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TypeVar

from bcd.controlplane.app import renew
from bcd.controlplane.app.bundle import newest_bundle
from bcd.controlplane.app.note import Effect
from bcd.controlplane.app.renew import RenewCertificate
from bcd.controlplane.app.use import Call, InUse, UseCertificate
from bcd.controlplane.domain.gateway import (
    Greeting,
    HelloAnswer,
    Malformed,
    Presented,
    RenewAnswer,
    RenewRequest,
    Welcomed,
)
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.store import Records, Store

T = TypeVar("T")
After = Callable[[Effect], None]


@dataclass(frozen=True)
class Gateway:
    """`ports.gateways.Gateways`."""

    store: Store
    clock: WallClock
    use: UseCertificate
    renewal: RenewCertificate

    def hello(self, presented: Presented, greeting: Greeting) -> Future[HelloAnswer]:
        if not greeting.in_bounds:
            return _done(Malformed("Hello is out of bounds"))
        return self._changing(lambda records, after: self._hello(self._call(records, presented, after), greeting))

    def renew(self, presented: Presented, request: RenewRequest) -> Future[RenewAnswer]:
        question = renew.form(presented, request)
        if isinstance(question, Malformed):
            return _done(question)
        return self._changing(lambda records, after: self.renewal(self._call(records, presented, after), question))

    def ended(self, presented: Presented) -> None:
        def seen(records: Records) -> None:
            node = records.nodes.get(presented.node_id)
            if node is not None:
                records.nodes.put(replace(node, last_seen=self.clock.now()))

        # Nobody waits for it: a store that is away loses an instant nobody decides by.
        self.store.change(seen)

    def _changing(self, work: Callable[[Records, After], T]) -> "Future[T]":
        """`work` in one transaction. Once that is durable its effects are carried out, then the answer is there,
        whether or not anybody still waits for it."""
        effects: list[Effect] = []
        answer: Future[T] = Future()

        def after(done: Future[T]) -> None:
            error = done.exception()
            if error is not None:
                answer.set_exception(error)
                return
            try:
                for effect in effects:
                    effect()
            finally:
                answer.set_result(done.result())

        self.store.change(lambda records: work(records, effects.append)).add_done_callback(after)
        return answer

    def _call(self, records: Records, presented: Presented, after: After) -> Call:
        return Call(records, presented, self.clock.now(), after)

    def _hello(self, call: Call, greeting: Greeting) -> HelloAnswer:
        used = self.use(call)
        if not isinstance(used, InUse):
            return used
        node, certificate = used.node, used.certificate
        call.records.nodes.put(replace(node, last_seen=call.now, daemon_version=greeting.daemon_version))
        asked = node.renew_asked is not None and certificate.issued <= node.renew_asked
        reason = node.renew_reason if asked else ""
        bundle = newest_bundle(call.records)
        return Welcomed(call.now, bundle, reason, node.generation, certificate.not_after)


def _done(answer: T) -> "Future[T]":
    future: Future[T] = Future()
    future.set_result(answer)
    return future
