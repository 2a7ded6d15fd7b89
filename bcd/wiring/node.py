"""What every command of a node needs, built without a container: the data directory, its keys, its loader."""

import os
import pwd
from collections.abc import Callable
from dataclasses import dataclass

from bcd.adapters.fs.holder import holder
from bcd.adapters.fs.local import LocalFs, Owner
from bcd.adapters.host.clock import SystemClock
from bcd.adapters.journal.sqlite import SqliteJournal
from bcd.adapters.keys.file import FileKeys
from bcd.adapters.log.quiet import Quiet
from bcd.app.look import Look, told
from bcd.domain.lifecycle.load import Load
from bcd.domain.model import datadir
from bcd.domain.model.failures import FixConfiguration, Message
from bcd.domain.model.keys import KeyUnasked
from bcd.ports.events import Events
from bcd.ports.keys import KeyStore
from bcd.protocol.files.config import Config


def owner(config: Config) -> Owner | None:
    """The user the files are to belong to, when the configuration names one."""
    if config.helper is None:
        return None
    try:
        found = pwd.getpwnam(config.helper.user)
    except KeyError:
        raise FixConfiguration(
            Message.CONFIG_KEY,
            path=config.path,
            key="helper.user",
            why=f"there is no user {config.helper.user}: useradd --system {config.helper.user}",
        ) from None
    return Owner(found.pw_name, found.pw_uid, found.pw_gid)


def data_directory(config: Config) -> LocalFs:
    # Only root can give files away, and only root's files need it.
    return LocalFs(config.data_dir, SystemClock(), owner(config) if os.geteuid() == 0 else None)


def check_directory(config: Config) -> None:
    """FixConfiguration when the data directory is there and is not what decision 11 wants of it."""
    directory = data_directory(config).look()
    to_be = owner(config)
    uid = to_be.uid if to_be is not None and os.geteuid() == 0 else os.geteuid()
    for fault in datadir.faults(directory, (), uid) if directory is not None else ():
        # Root's own directory is handed over with what lies in it.
        if fault.want_uid is None or fault.uid != 0:
            raise told(fault, config.data_dir)


def record_directory(config: Config) -> LocalFs | None:
    """Where root's record of a join goes, under `[helper]`."""
    if config.helper is None or os.geteuid() != 0:
        return None
    return LocalFs(config.helper.record_dir, SystemClock())


def looker(config: Config, keys: KeyStore | None = None) -> Look:
    """A look at the data directory, as `status`, `doctor` and a starting node take it; without `keys` it opens no TPM,
    and takes a record at its word."""
    parts = reader(config, Quiet(), keys or FileKeys(KeyUnasked()))
    user = owner(config)
    return Look(parts.fs, parts.load, parts.journal, parts.clock, config.data_dir, user.uid if user else os.geteuid())


def checker(config: Config) -> Callable[[], None]:
    """Raises what keeps a node from starting: modes, owners, another node's journal (decision 11)."""
    look = looker(config)

    def check() -> None:
        faults = look().faults
        if faults:
            raise faults[0]

    return check


@dataclass(frozen=True)
class Reader:
    """The parts of a command that only looks."""

    fs: LocalFs
    load: Load
    journal: SqliteJournal
    clock: SystemClock


def reader(config: Config, events: Events, keys: KeyStore) -> Reader:
    fs = data_directory(config)
    load = Load(fs, keys, events, config.data_dir)
    return Reader(fs, load, SqliteJournal(config.data_dir, holder), SystemClock())
