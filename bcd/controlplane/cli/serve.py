"""`bcd-controlplane serve`."""

import asyncio
import time
from argparse import Namespace
from collections.abc import Mapping

from bcd.controlplane.adapters.admin.client import PATIENCE_S, PAUSE_S
from bcd.controlplane.adapters.admin.server import AdminServer
from bcd.controlplane.adapters.files import lock
from bcd.controlplane.adapters.files.directory import ROOT_CA, Directory
from bcd.controlplane.adapters.files.endpoints import Endpoints
from bcd.controlplane.adapters.files.serving import ServingCertificate
from bcd.controlplane.adapters.grpc.gateway_service import GatewayService
from bcd.controlplane.adapters.grpc.join_service import JoinService
from bcd.controlplane.adapters.grpc.server import GrpcPort
from bcd.controlplane.adapters.http.well_known import WellKnownPort
from bcd.controlplane.adapters.sqlite.store import NotAStore
from bcd.controlplane.adapters.systemd import notify
from bcd.controlplane.app.serve import GATEWAY, HTTP, JOIN, Serve
from bcd.controlplane.cli.unusable import unusable
from bcd.controlplane.cli.well_known import document
from bcd.controlplane.domain.certificates import DEMONSTRATION_BELOW
from bcd.controlplane.domain.durations import show_duration
from bcd.controlplane.domain.failures import NotPermitted, TryLater
from bcd.controlplane.domain.hosts import Endpoint
from bcd.controlplane.domain.messages import Message
from bcd.controlplane.domain.settings import RETIRED_GRACE
from bcd.controlplane.ports.store import Store, StoreUnavailable
from bcd.controlplane.wiring.container import Container


def serve(arguments: Namespace) -> int:
    directory = Directory(arguments.dir)
    directory.check_private()
    settings = directory.settings()
    _lock(directory)
    container = Container(directory=directory, log_as_json=arguments.log_format == "json")
    store = _store(container, arguments.dir)
    try:
        log, clock = container.log(), container.clock()
        if settings.leaf_lifetime < DEMONSTRATION_BELOW:
            log.warning("demonstration only: leaves this short", leaf_lifetime=show_duration(settings.leaf_lifetime))
        certificate = ServingCertificate(directory, settings.hosts, clock, log)
        if settings.retired_grace < RETIRED_GRACE:
            log.warning("demonstration only: a grace this short", retired_grace=show_duration(settings.retired_grace))
        asyncio.run(_serve(container, directory, certificate, arguments))
    finally:
        store.close()
    return 0


def _lock(directory: Directory) -> None:
    """A command at work is waited for, another server is not."""
    deadline = time.monotonic() + PATIENCE_S
    while not directory.try_lock():
        holder = directory.holder()
        if lock.serves(holder):
            raise NotPermitted(Message.SERVED_ALREADY, path=directory.path, holder=holder)
        if time.monotonic() >= deadline:
            raise TryLater(Message.LOCKED, path=directory.path, holder=holder)
        time.sleep(PAUSE_S)


def _store(container: Container, path: str) -> Store:
    try:
        return container.store()
    except NotAStore as error:
        raise unusable(error, path) from None
    except StoreUnavailable as error:
        raise TryLater(Message.STORE_UNAVAILABLE, why=error) from None


async def _serve(
    container: Container, directory: Directory, certificate: ServingCertificate, arguments: Namespace
) -> None:
    log, clock, sessions = container.log(), container.clock(), container.sessions()
    sessions.begin()
    joins = JoinService(container.joins(), clock, log)
    calls = GatewayService(container.gateways(), sessions, container.settings().trust_domain, clock, log)

    def stopping() -> None:
        notify("STOPPING=1")
        sessions.stop()

    run = Serve(
        join=GrpcPort(JOIN, (joins.handler(),), certificate),
        gateway=GrpcPort(GATEWAY, (calls.handler(),), certificate, directory.authority(ROOT_CA).pem),
        http=WellKnownPort(HTTP, lambda: document(directory), certificate, log),
        admin=AdminServer(directory, container.admin(), log),
        endpoints=Endpoints(directory),
        ready=_ready,
        stopping=stopping,
    )
    try:
        await run(arguments.join, arguments.gateway, arguments.http)
    finally:
        joins.close()


def _ready(bound: Mapping[str, Endpoint]) -> None:
    print("ready", *(f"{name}={endpoint}" for name, endpoint in bound.items()), flush=True)
    notify("READY=1")
