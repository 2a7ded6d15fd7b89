"""`bcd doctor`: what is wrong, and the way back. It reads, and asks the join port for its certificate; it changes
nothing."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from bcd.app.look import PendingUnreadable, Sight
from bcd.domain.model import datadir
from bcd.domain.model.failures import Failure, Message
from bcd.domain.model.identity import renew_at
from bcd.domain.model.loading import Loaded, PromoteNext, RemoveNext
from bcd.ports.journal import CorruptJournal, JournalOf, NoJournal
from bcd.protocol.files.config import Config
from bcd.protocol.files.encoding import to_time

JOIN_AGAIN = "bcd join --reset --yes, then bcd join"


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True)
class Finding:
    """One line of the report. `way_back` is a command or what to do; empty where nothing is to be done."""

    check: str
    level: Level
    message: str
    way_back: str = ""


@dataclass(frozen=True)
class Doctor:
    """`config` is the configuration or the failure to read it; `reach` asks the join port for the pinned CA, and
    `encryption_key` reads the key beside the configuration: both return nothing or raise what is wrong."""

    config: Config | Failure
    look: Callable[[], Sight] | None
    reach: Callable[[Config], str | None]
    encryption_key: Callable[[Config], None]

    def __call__(self) -> tuple[Finding, ...]:
        return tuple(self._findings())

    def _findings(self) -> Iterator[Finding]:
        if isinstance(self.config, Failure):
            yield _failed("config", self.config)
        else:
            yield from self._config(self.config)
        if self.look is not None:
            sight = self.look()
            yield _directory(sight)
            yield _identity(sight)
            yield _node_key(sight)
            yield _certificate(sight)
            yield _journal(sight)
            yield _pending(sight)
            yield _clock(sight)
        if not isinstance(self.config, Failure):
            yield self._join_port(self.config)

    def _config(self, config: Config) -> Iterator[Finding]:
        missing = [
            key
            for key in ("join", "serving_ca_spki_pin", "join_encryption_key_pin", "join_signing_key_pin")
            if getattr(config, key) is None
        ]
        way_back = "bcd-controlplane node-config writes it"
        if missing:
            yield Finding("config", Level.FAIL, f"{config.path} has no {', '.join(missing)}", way_back)
        elif _others_may_write(config.path):
            message = f"{config.path} may be written by others than root: whoever does owns this node's trust"
            yield Finding("config", Level.FAIL, message, f"chmod go-w {config.path}")
        else:
            yield Finding("config", Level.OK, config.path)
        if config.join_encryption_key_pin is not None:
            try:
                self.encryption_key(config)
                yield Finding("join encryption key", Level.OK, "matches its pin")
            except Failure as failure:
                yield _failed("join encryption key", failure)

    def _join_port(self, config: Config) -> Finding:
        if config.join is None or config.serving_ca_spki_pin is None:
            return Finding("join port", Level.NOT_APPLICABLE, "not configured")
        try:
            trouble = self.reach(config)
        except Failure as failure:
            return _failed("join port", failure)
        if trouble is not None:
            # A wrong clock is no matter of the network, and says itself what is to be done.
            said, _, way_back = trouble.partition("; ")
            return Finding("join port", Level.WARN, said, way_back or "check the network and the control plane")
        return Finding("join port", Level.OK, f"{config.join} presents the pinned serving CA")


# How the way back begins in the documented messages that have one.
_WAYS_BACK = (
    "; join again: ",
    "; get ",
    ": get ",
    ": chmod ",
    ": chown ",
    ": run it as root",
    ": make ",
    ": move ",
    ": name ",
    ": remount ",
)


def _failed(check: str, failure: Failure) -> Finding:
    """A documented message as a finding, cut where its own way back begins."""
    level = Level.WARN if failure.message is Message.NOT_JOINED else Level.FAIL
    for mark in _WAYS_BACK:
        said, found, way_back = failure.text.partition(mark)
        if found:
            return Finding(check, level, said, (mark + way_back).removeprefix("; join again").lstrip(":; "))
    if failure.message is Message.NOT_JOINED:
        return Finding(check, level, "this node has not joined", "bcd join")
    return Finding(check, level, failure.text)


def _directory(sight: Sight) -> Finding:
    faults = [fault for fault in sight.faults if fault.message is not Message.FOREIGN_JOURNAL]
    if faults:
        return _failed("data directory", faults[0])
    if sight.directory is None:
        return Finding("data directory", Level.NOT_APPLICABLE, "there is none yet")
    if sight.directory.read_only:
        message = f"{sight.directory.path} is on a read-only file system: nothing can be renewed or joined"
        return Finding("data directory", Level.FAIL, message, "remount it writable")
    if sight.directory.free_bytes < datadir.MAX_FILE_BYTES:
        message = f"{sight.directory.path} has {sight.directory.free_bytes} bytes free"
        return Finding("data directory", Level.WARN, message, "make room: a renewal needs it")
    return Finding("data directory", Level.OK, sight.directory.path)


def _identity(sight: Sight) -> Finding:
    if not isinstance(sight.found, Loaded):
        return _failed("identity", sight.found)
    identity = sight.found.identity
    who = f"{identity.node_id} (site {identity.site_id}, role {identity.role.value})"
    match sight.found:
        case PromoteNext():
            return Finding("identity", Level.OK, f"{who}; a renewal was cut off: the next start promotes node.key.next")
        case RemoveNext():
            return Finding("identity", Level.OK, f"{who}; a renewal was cut off: the next start removes node.key.next")
    return Finding("identity", Level.OK, who)


def _node_key(sight: Sight) -> Finding:
    if not isinstance(sight.found, Loaded):
        return Finding("node key", Level.NOT_APPLICABLE, "no identity")
    return Finding("node key", Level.OK, "a file (this version of bcd keeps no key in a TPM)")


def _certificate(sight: Sight) -> Finding:
    if not isinstance(sight.found, Loaded):
        return Finding("certificate", Level.NOT_APPLICABLE, "no identity")
    leaf = sight.found.identity.leaf
    if sight.now >= leaf.not_after:
        return Finding("certificate", Level.FAIL, f"expired at {to_time(leaf.not_after)}", JOIN_AGAIN)
    plan = f"valid until {to_time(leaf.not_after)}, to be renewed at {to_time(renew_at(leaf).replace(microsecond=0))}"
    if sight.now >= renew_at(leaf):
        return Finding("certificate", Level.WARN, f"{plan}: that is past", "see that bcd node runs")
    return Finding("certificate", Level.OK, plan)


def _journal(sight: Sight) -> Finding:
    match sight.journal:
        case NoJournal():
            return Finding("journal", Level.NOT_APPLICABLE, "there is none yet")
        case CorruptJournal(why):
            return Finding("journal", Level.WARN, f"journal.db {why}", "the next join or start sets it aside")
        case JournalOf():
            foreign = [fault for fault in sight.faults if fault.message is Message.FOREIGN_JOURNAL]
            return _failed("journal", foreign[0]) if foreign else Finding("journal", Level.OK, "this node's")


def _pending(sight: Sight) -> Finding:
    match sight.pending:
        case None:
            return Finding("pending join", Level.NOT_APPLICABLE, "none")
        case PendingUnreadable(why):
            return Finding("pending join", Level.FAIL, f"join.pending {why}", JOIN_AGAIN)
        case pending if isinstance(sight.found, Loaded):
            return Finding(
                "pending join", Level.OK, f"begun {to_time(pending.begun)} and done; the next join tidies up"
            )
        case pending:
            waiting = f", waiting for approval {pending.pending_id}" if pending.pending_id else ""
            return Finding(
                "pending join", Level.WARN, f"begun {to_time(pending.begun)}{waiting}", "bcd join goes on with it"
            )


def _clock(sight: Sight) -> Finding:
    mark = sight.found.identity.server_time if isinstance(sight.found, Loaded) else None
    if mark is None:
        return Finding("clock", Level.NOT_APPLICABLE, "no server time to compare with")
    if sight.now == mark:
        message = f"the clock is behind the time the server told last ({to_time(mark.replace(microsecond=0))})"
        return Finding("clock", Level.FAIL, message, "set the clock")
    return Finding("clock", Level.OK, "not behind the server's")


def _others_may_write(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return bool(found.st_mode & 0o022) or found.st_uid not in (0, os.geteuid())
