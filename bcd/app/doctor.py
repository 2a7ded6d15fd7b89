"""`bcd doctor`: what is wrong, and the way back. It reads, and asks both ports for their certificates; it changes
nothing."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bcd.app.findings import Check, Finding, Level, Told, failed
from bcd.app.look import PendingUnreadable, Sight
from bcd.domain.model import datadir
from bcd.domain.model.failures import Failure, Message
from bcd.domain.model.identity import renew_at
from bcd.domain.model.keys import KeyKind
from bcd.domain.model.loading import Loaded, PromoteNext, RemoveNext
from bcd.domain.model.tpm import TpmFound
from bcd.ports.journal import REVOKED, CorruptJournal, JournalOf, NoJournal
from bcd.protocol.files.config import Address, Config
from bcd.protocol.files.encoding import to_time

_NEEDED = ("join", "gateway", "serving_ca_spki_pin", "join_encryption_key_pin", "join_signing_key_pin")


@dataclass(frozen=True)
class Doctor:
    """`config` is the configuration or the failure to read it. `reach` asks a port for the pinned CA and tells what
    keeps it from being used now, or None; `encryption_key` reads the key beside the configuration. Both raise what
    only a person can put right. `tpm` identifies the TPM that new keys go into, or is None where they go into none;
    `tpm_is_named`: somebody said which, so that its absence is a mistake."""

    config: Config | Failure
    look: Callable[[], Sight] | None
    reach: Callable[[Config, Address], str | None]
    encryption_key: Callable[[Config], None]
    tpm: Callable[[], TpmFound] | None = None
    tpm_is_named: bool = False

    def __call__(self) -> tuple[Finding, ...]:
        """In the order of Check."""
        return tuple(self._findings())

    def _findings(self) -> Iterator[Finding]:
        if isinstance(self.config, Failure):
            yield failed(Check.CONFIG, self.config)
        else:
            yield from self._config(self.config)
        if self.look is not None:
            sight, tpm = self.look(), self._tpm()
            yield _directory(sight)
            yield _identity(sight)
            yield _node_key(sight, tpm, named=self.tpm_is_named)
            yield _tpm(tpm, named=self.tpm_is_named)
            yield from (check(sight) for check in _CHECKS)
        if not isinstance(self.config, Failure):
            join = (Told.JOIN_PORT_NONE, Told.JOIN_PORT_TROUBLE, Told.JOIN_PORT_OK)
            yield self._port(self.config, Check.JOIN_PORT, self.config.join, join)
            gateway = (Told.GATEWAY_NONE, Told.GATEWAY_TROUBLE, Told.GATEWAY_OK)
            yield self._port(self.config, Check.GATEWAY, self.config.gateway, gateway)

    def _tpm(self) -> TpmFound | Failure | None:
        try:
            return self.tpm() if self.tpm is not None else None
        except Failure as failure:
            return failure

    def _config(self, config: Config) -> Iterator[Finding]:
        missing = [key for key in _NEEDED if getattr(config, key) is None]
        if missing:
            yield Told.CONFIG_INCOMPLETE(path=config.path, keys=", ".join(missing))
        elif _others_may_write(config.path):
            yield Told.CONFIG_WRITABLE(path=config.path)
        else:
            yield Told.CONFIG_OK(path=config.path)
        if config.join_encryption_key_pin is not None:
            try:
                self.encryption_key(config)
                yield Told.ENCRYPTION_KEY_OK()
            except Failure as failure:
                yield failed(Check.ENCRYPTION_KEY, failure)

    def _port(self, config: Config, check: Check, address: Address | None, told: tuple[Told, Told, Told]) -> Finding:
        none, trouble, ok = told
        if address is None or config.serving_ca_spki_pin is None:
            return none()
        try:
            why = self.reach(config, address)
        except Failure as failure:
            return failed(check, failure)
        if why is not None:
            # A wrong clock is no matter of the network, and says itself what is to be done.
            said, _, way_back = why.partition("; ")
            return trouble(trouble=said, way_back=way_back or "check the network and the control plane")
        return ok(address=address)


def _directory(sight: Sight) -> Finding:
    faults = [fault for fault in sight.faults if fault.message is not Message.FOREIGN_JOURNAL]
    if faults:
        return failed(Check.DIRECTORY, faults[0])
    directory = sight.directory
    if directory is None and isinstance(sight.found, Failure) and sight.found.message is not Message.NOT_JOINED:
        # What keeps everybody from looking into it.
        return failed(Check.DIRECTORY, sight.found)
    if directory is None:
        return Told.DIRECTORY_NONE()
    if directory.read_only:
        return Told.DIRECTORY_READ_ONLY(path=directory.path)
    if directory.free_bytes < datadir.MAX_FILE_BYTES:
        return Told.DIRECTORY_FULL(path=directory.path, free=directory.free_bytes)
    return Told.DIRECTORY_OK(path=directory.path)


def _identity(sight: Sight) -> Finding:
    if not isinstance(sight.found, Loaded):
        return failed(Check.IDENTITY, sight.found)
    identity = sight.found.identity
    who = f"{identity.node_id} (site {identity.site_id}, role {identity.role.value})"
    match sight.found:
        case PromoteNext():
            return Told.IDENTITY_PROMOTES(who=who)
        case RemoveNext() if sight.told.running:
            return Told.IDENTITY_RENEWS(who=who)
        case RemoveNext():
            return Told.IDENTITY_REMOVES(who=who)
    return Told.IDENTITY_OK(who=who)


def _node_key(sight: Sight, tpm: TpmFound | Failure | None, *, named: bool) -> Finding:
    if not isinstance(sight.found, Loaded):
        return Told.NODE_KEY_NONE()
    if sight.found.kind is KeyKind.TPM:
        return Told.NODE_KEY_TPM()
    match tpm:
        case None:
            return Told.NODE_KEY_UNUSED()
        case Failure(message=Message.TPM_ABSENT):
            return Told.NODE_KEY_NO_SUCH_TPM() if named else Told.NODE_KEY_FILE()
        case TpmFound(node_keys=None):
            return Told.NODE_KEY_MOVES()
    return Told.NODE_KEY_STAYS()


def _tpm(tpm: TpmFound | Failure | None, *, named: bool) -> Finding:
    match tpm:
        case None:
            return Told.TPM_UNUSED()
        case Failure(message=Message.TPM_ABSENT) as absent if not named:
            return Told.TPM_NONE(why=failed(Check.TPM, absent).message)
        case Failure() as failure:
            return failed(Check.TPM, failure, Level.WARN)
        case TpmFound(node_keys=Failure() as failure):
            return failed(Check.TPM, failure, Level.WARN)
    # As an operator puts them on the allow-list.
    keys = [f"EK {key.kind.value} {key.sha256}" for key in tpm.endorsement_keys if key.sha256]
    if not keys and tpm.trouble is not None:
        # It holds node keys and cannot say a word for one: no join by TPM, no renewal of a certificate that names its
        # attestation key.
        return failed(Check.TPM, tpm.trouble, Level.WARN)
    return Told.TPM_OK(device=tpm.device, keys=", ".join(keys))


def _certificate(sight: Sight) -> Finding:
    if not isinstance(sight.found, Loaded):
        return Told.CERTIFICATE_NONE()
    leaf = sight.found.identity.leaf
    until, at = to_time(leaf.not_after), to_time(renew_at(leaf).replace(microsecond=0))
    if sight.now >= leaf.not_after:
        return Told.CERTIFICATE_EXPIRED(until=until)
    if sight.now >= renew_at(leaf):
        return Told.CERTIFICATE_LATE(until=until, at=at)
    return Told.CERTIFICATE_OK(until=until, at=at)


def _journal(sight: Sight) -> Finding:
    match sight.journal:
        case NoJournal():
            return Told.JOURNAL_NONE()
        case CorruptJournal(why):
            return Told.JOURNAL_CORRUPT(why=why)
        case JournalOf():
            foreign = [fault for fault in sight.faults if fault.message is Message.FOREIGN_JOURNAL]
            return failed(Check.JOURNAL, foreign[0]) if foreign else Told.JOURNAL_OK()


def _pending(sight: Sight) -> Finding:
    match sight.pending:
        case None:
            return Told.PENDING_NONE()
        case PendingUnreadable(why):
            return Told.PENDING_UNREADABLE(why=why)
        case pending if isinstance(sight.found, Loaded):
            return Told.PENDING_DONE(begun=to_time(pending.begun.replace(microsecond=0)))
        case pending:
            waiting = f", waiting for approval {pending.pending_id}" if pending.pending_id else ""
            return Told.PENDING_BEGUN(begun=to_time(pending.begun.replace(microsecond=0)), waiting=waiting)


def _clock(sight: Sight) -> Finding:
    mark = sight.found.identity.server_time if isinstance(sight.found, Loaded) else None
    if mark is None:
        return Told.CLOCK_UNKNOWN()
    if sight.now == mark:
        return Told.CLOCK_BEHIND(mark=to_time(mark.replace(microsecond=0)))
    return Told.CLOCK_OK()


def _node(sight: Sight) -> Finding:
    if not isinstance(sight.found, Loaded):
        return Told.NODE_NONE()
    told = sight.told
    if told.running:
        return Told.NODE_RUNS(process=told.running)
    if told.session.startswith(REVOKED) and told.session_since is not None:
        return Told.NODE_REVOKED(session=told.session, at=to_time(told.session_since.replace(microsecond=0)))
    return Told.NODE_STOPPED()


def _session(sight: Sight) -> Finding:
    told = sight.told
    if not told.running or told.session_since is None:
        return Told.SESSION_NONE()
    since = to_time(told.session_since.replace(microsecond=0))
    return Told.SESSION_UP(since=since) if told.session == "up" else Told.SESSION_DOWN(state=told.session, since=since)


def _renewal(sight: Sight) -> Finding:
    told = sight.told
    if not told.last_error or told.last_error_at is None:
        return Told.RENEWAL_NONE()
    at = to_time(told.last_error_at.replace(microsecond=0))
    return Told.RENEWAL_FAILED(failures=told.failures, at=at, error=told.last_error)


# The rest, in the order of Check.
_CHECKS: tuple[Callable[[Sight], Finding], ...] = (
    _certificate,
    _journal,
    _pending,
    _clock,
    _node,
    _session,
    _renewal,
)


def _others_may_write(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return bool(found.st_mode & 0o022) or found.st_uid not in (0, os.geteuid())
