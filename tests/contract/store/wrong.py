"""Stores that are wrong in one way each, to see that the contract notices."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from bcd.controlplane.domain.approvals import Approval
from bcd.controlplane.domain.certificates import Certificate, GivenAnswer
from bcd.controlplane.domain.eks import TpmKey
from bcd.controlplane.domain.ids import TokenId
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.settings import Restoration, SignedBundle
from bcd.controlplane.domain.tokens import Token
from bcd.controlplane.ports.store import Records
from bcd.domain.model.names import NodeId
from tests.fakes.controlplane.memory_store import (
    MemoryAnswers,
    MemoryApprovals,
    MemoryBundles,
    MemoryCertificates,
    MemoryChallenges,
    MemoryEkRoots,
    MemoryNodes,
    MemoryRefusals,
    MemoryRestorations,
    MemoryStore,
    MemoryTokens,
    MemoryTpmKeys,
)

T = TypeVar("T")


class KeepsWhatFailed(MemoryStore):
    def change(self, work: Callable[[Records], T]) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(work(self._records))
        except Exception as error:
            future.set_exception(error)
        return future


class FailsTheWholeGroup(MemoryStore):
    """Once a work failed, the next one fails with it."""

    failed: Exception | None = None

    def change(self, work: Callable[[Records], T]) -> Future[T]:
        failed, self.failed = self.failed, None
        if failed is not None:
            future: Future[T] = Future()
            future.set_exception(failed)
            return future
        future = super().change(work)
        error = future.exception()
        self.failed = error if isinstance(error, Exception) else None
        return future


class AnswersEarly(MemoryStore):
    """Says that it is done, then does it."""

    def __init__(self) -> None:
        super().__init__()
        self.later: list[Callable[[Records], object]] = []

    def change(self, work: Callable[[Records], T]) -> Future[T]:
        for waiting in self.later:
            super().change(waiting)
        self.later = [work]
        draft: Future[T] = Future()
        try:
            draft.set_result(work(self._records.copied()))
        except Exception as error:
            draft.set_exception(error)
        return draft


class LosesUpdates(MemoryStore):
    """Reads and writes are not one step."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = ThreadPoolExecutor(8)

    def change(self, work: Callable[[Records], T]) -> Future[T]:
        def run() -> T:
            draft = self._records.copied()
            result = work(draft)
            time.sleep(0.001)
            self._records = draft
            return result

        return self.threads.submit(run)


class LastComesFirst(MemoryStore):
    """Does what it is given in pairs, the second before the first."""

    def __init__(self) -> None:
        super().__init__()
        self.held: tuple[Callable[[Records], object], Future[object]] | None = None

    def change(self, work: Callable[[Records], T]) -> Future[T]:
        if self.held is None:
            future: Future[T] = Future()
            self.held = (work, future)  # type: ignore[assignment]
            return future
        first, waiting = self.held
        self.held = None
        future = super().change(work)
        waiting.set_result(super().change(first).result())
        return future

    def read(self, work: Callable[[Records], T]) -> T:
        if self.held is not None:
            first, waiting = self.held
            self.held = None
            waiting.set_result(super().change(first).result())
        return super().read(work)


class MergesTheNameless(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.nodes = _Nameless()


class _Nameless(MemoryNodes):
    def of_machine(self, machine: str) -> Sequence[Node]:
        return [row for row in self.all() if row.machine == machine]


class RoundsTimes(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.tokens = _Rounded()


class _Rounded(MemoryTokens):
    def get(self, token_id: TokenId) -> Token | None:
        found = self.rows.get(token_id)
        return replace(found, created=found.created.replace(microsecond=0)) if found else None


class AnswersByKeyAlone(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.answers = _ByKey()


class _ByKey(MemoryAnswers):
    def get(self, credential: str, spki_sha256: bytes) -> GivenAnswer | None:
        return next((row for row in self.rows.values() if row.spki_sha256 == spki_sha256), None)


class AsksByCredentialAlone(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.approvals = _ByCredential()


class _ByCredential(MemoryApprovals):
    def asked(self, credential: str, spki_sha256: bytes) -> Approval | None:
        return next(iter(self.of_credential(credential)), None)


class KeepsTheOldestRefusals(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.refusals = _Oldest()


class _Oldest(MemoryRefusals):
    def trim(self, before: datetime, keep: int) -> int:
        kept = sorted((row for row in self.rows.values() if row.at >= before), key=lambda row: row.at)[:keep]
        gone = len(self.rows) - len(kept)
        self.rows = {row.id: row for row in kept}
        return gone


class CountsEveryone(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.refusals = _Everyone()


class _Everyone(MemoryRefusals):
    def count_since(self, at: datetime, source: str | None = None) -> int:
        return super().count_since(at)


class LetsVersionsFall(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.bundles = _Falling()


class _Falling(MemoryBundles):
    def add(self, bundle: SignedBundle) -> None:
        self.rows.append(bundle)


class OpensEveryCertificate(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.certificates = _EveryOpen()


class _EveryOpen(MemoryCertificates):
    def open(self, node_id: NodeId) -> Sequence[Certificate]:
        return self.of_node(node_id)


class CountsJoinsAsRenewals(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.certificates = _JoinsCount()


class _JoinsCount(MemoryCertificates):
    def renewals_since(self, node_id: NodeId, at: datetime) -> Sequence[datetime]:
        return [row.issued for row in self.of_node(node_id) if row.issued >= at]


class KeepsNodes(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.nodes = _Kept()


class TakesTheKeyless(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.nodes = _Keyless()


class _Keyless(MemoryNodes):
    def of_ek(self, ek: str) -> Sequence[Node]:
        return [row for row in self.all() if row.ek == ek]


class KeepsRoots(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.ek_roots = _KeptRoots()


class _KeptRoots(MemoryEkRoots):
    def remove(self, fingerprint: str) -> None:
        pass


class _Kept(MemoryNodes):
    def remove(self, node_id: NodeId) -> None:
        pass


class KnowsATpmByOneKey(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.tpm_keys = _ByAttestationKey()


class _ByAttestationKey(MemoryTpmKeys):
    def put(self, key: TpmKey) -> None:
        self.rows = {pair: row for pair, row in self.rows.items() if row.ek != key.ek}
        super().put(key)


class CountsEveryChallenge(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.challenges = _CountedTogether()


class _CountedTogether(MemoryChallenges):
    def count(self, source: str | None = None) -> int:
        return super().count()


class FindsTheLatestRestoration(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self._records.restorations = _Latest()


class _Latest(MemoryRestorations):
    def newest(self) -> Restoration | None:
        return max(self.rows, key=lambda row: row.at, default=None)


class GoesOnWhenClosed(MemoryStore):
    def close(self) -> None:
        pass


# The clause that each must fail, by its name; it may fail more.
WRONG: dict[type[MemoryStore], str] = {
    KeepsWhatFailed: "work_that_raises_leaves_nothing_behind",
    FailsTheWholeGroup: "one_work_that_raises_does_not_take_its_neighbours_along",
    AnswersEarly: "what_is_answered_can_be_read",
    LosesUpdates: "no_use_of_a_token_is_lost_between_threads",
    LastComesFirst: "works_are_done_in_the_order_they_came",
    MergesTheNameless: "machines_without_a_name_are_never_one",
    RoundsTimes: "rows_come_back_as_they_were_put",
    AnswersByKeyAlone: "an_answer_is_for_one_credential_and_one_key",
    AsksByCredentialAlone: "a_question_is_found_by_credential_and_key",
    KeepsTheOldestRefusals: "the_oldest_refusals_go",
    CountsEveryone: "refusals_are_counted_from_an_instant_on",
    OpensEveryCertificate: "open_certificates_are_those_issued_and_current",
    CountsJoinsAsRenewals: "renewals_are_told_from_an_instant_on_and_without_joins",
    KeepsNodes: "a_node_that_is_removed_leaves_its_certificates",
    TakesTheKeyless: "nodes_without_an_endorsement_key_are_never_one",
    KeepsRoots: "a_root_or_a_row_of_the_allow_list_is_removed_alone",
    KnowsATpmByOneKey: "keys_of_tpms_are_found_by_either_key",
    CountsEveryChallenge: "challenges_are_counted_found_and_removed_each_by_itself",
    FindsTheLatestRestoration: "the_newest_restoration_is_the_last_one_told",
    LetsVersionsFall: "a_bundles_version_only_rises",
    GoesOnWhenClosed: "a_closed_store_says_so",
}
