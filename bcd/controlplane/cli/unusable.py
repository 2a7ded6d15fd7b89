"""A store that cannot be opened, as the documented message."""

from bcd.controlplane.adapters.files.directory import STORE
from bcd.controlplane.adapters.sqlite.schema import VERSION
from bcd.controlplane.adapters.sqlite.store import NewerStore, NotAStore
from bcd.controlplane.domain.failures import FixDirectory
from bcd.controlplane.domain.messages import Message


def unusable(error: NotAStore, directory: str) -> FixDirectory:
    path = f"{directory}/{STORE}"
    if isinstance(error, NewerStore):
        return FixDirectory(Message.STORE_NEWER, path=path, have=error.version, known=VERSION)
    return FixDirectory(Message.STORE_BROKEN, path=path, why=error)
