"""`bcd-controlplane init`."""

import contextlib
import socket
from argparse import Namespace
from datetime import datetime

from bcd.controlplane.adapters.files import initialize
from bcd.controlplane.adapters.files.directory import STORE, Directory, translated
from bcd.controlplane.adapters.sqlite.store import NotAStore, create
from bcd.controlplane.app.initialize import first_records
from bcd.controlplane.cli.render import print_json
from bcd.controlplane.cli.unusable import unusable
from bcd.controlplane.domain.admin import InitView
from bcd.controlplane.domain.durations import show_duration
from bcd.controlplane.domain.failures import TryLater
from bcd.controlplane.domain.hosts import MalformedHost, host
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.ports.store import StoreUnavailable
from bcd.controlplane.wiring import commands


def init(arguments: Namespace) -> int:
    hosts = tuple(dict.fromkeys(arguments.host)) or default_hosts()
    settings = Settings(arguments.trust_domain, hosts, arguments.leaf_lifetime)
    directory = initialize.open_new(arguments.dir)
    now = commands.clock().now()
    initialize.make_keys(directory, now)
    _make_store(directory, settings, now)
    initialize.complete(directory, settings)
    if arguments.json:
        print_json(
            InitView(arguments.dir, settings.trust_domain, settings.hosts, show_duration(settings.leaf_lifetime))
        )
    else:
        print(f"made a control plane for {settings.trust_domain} in {arguments.dir}")
        print(f"next: bcd-controlplane serve --dir {arguments.dir}")
    return 0


def _make_store(directory: Directory, settings: Settings, now: datetime) -> None:
    try:
        create(directory.inside(STORE))
        store = commands.store(directory)
        first_records(store, commands.statements(directory), settings, now)
        store.close()
    except NotAStore as error:
        raise unusable(error, directory.path) from None
    except StoreUnavailable as error:
        raise TryLater(Message.STORE_UNAVAILABLE, why=error) from None
    except OSError as error:
        raise translated(error, f"{directory.path}/{STORE}") from None


def default_hosts() -> tuple[str, ...]:
    names = ["localhost", "127.0.0.1", "::1"]
    with contextlib.suppress(MalformedHost):
        names.append(host(socket.gethostname()))
    return tuple(dict.fromkeys(names))
