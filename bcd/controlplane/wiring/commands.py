"""The same choices as the container's, for commands that work on the store themselves.

Loading the container's library takes such a command longer than all else it does."""

from bcd.controlplane.adapters.files.directory import JOIN_SIGNING, STORE, Directory
from bcd.controlplane.adapters.pki.join_keys import SigningKey
from bcd.controlplane.adapters.sqlite.store import SqliteStore
from bcd.controlplane.adapters.system import SystemClock, SystemRandom
from bcd.controlplane.app.admin import Admin
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.news import NoSessions
from bcd.controlplane.ports.signing import Statements
from bcd.controlplane.ports.store import Store


def clock() -> WallClock:
    return SystemClock()


def store(directory: Directory) -> Store:
    return SqliteStore(directory.inside(STORE))


def statements(directory: Directory) -> Statements:
    return SigningKey(directory.key(JOIN_SIGNING))


def admin(directory: Directory, opened: Store) -> Admin:
    return Admin(
        directory.settings(), opened, SystemClock(), SystemRandom(), NoSessions(), lambda: statements(directory)
    )
