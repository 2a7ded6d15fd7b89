"""Which adapter stands for which port."""

from dependency_injector import containers, providers

from bcd.controlplane.adapters.files import directory as d
from bcd.controlplane.adapters.files.directory import Directory
from bcd.controlplane.adapters.grpc.sessions import Sessions
from bcd.controlplane.adapters.log.stderr import StderrLog
from bcd.controlplane.adapters.pki.join_keys import SealKey, SigningKey
from bcd.controlplane.adapters.pki.leaves import IssuingCa
from bcd.controlplane.adapters.sqlite.store import SqliteStore
from bcd.controlplane.adapters.system import SystemClock, SystemRandom
from bcd.controlplane.app.admin import Admin
from bcd.controlplane.app.alarms import Alarms
from bcd.controlplane.app.gateway import Gateway
from bcd.controlplane.app.join import Join
from bcd.controlplane.app.refuse import Refuse
from bcd.controlplane.app.renew import RenewCertificate
from bcd.controlplane.app.use import UseCertificate
from bcd.controlplane.domain.settings import Settings
from bcd.controlplane.ports.clock import WallClock
from bcd.controlplane.ports.gateways import Gateways
from bcd.controlplane.ports.joins import Joins
from bcd.controlplane.ports.log import Log
from bcd.controlplane.ports.random import Random
from bcd.controlplane.ports.signing import Issuer, Statements, Unsealer
from bcd.controlplane.ports.store import Store


class Container(containers.DeclarativeContainer):
    """`directory` is open and locked, `log_as_json` a choice of the command line."""

    directory: providers.Dependency[Directory] = providers.Dependency(instance_of=Directory)
    log_as_json: providers.Dependency[bool] = providers.Dependency(instance_of=bool)

    clock: providers.Provider[WallClock] = providers.Singleton(SystemClock)
    random: providers.Provider[Random] = providers.Singleton(SystemRandom)
    log: providers.Provider[Log] = providers.Singleton(StderrLog, log_as_json)
    settings: providers.Provider[Settings] = providers.Singleton(Directory.settings, directory)
    store: providers.Provider[Store] = providers.Singleton(SqliteStore, directory.provided.inside.call(d.STORE))
    issuer: providers.Provider[Issuer] = providers.Singleton(IssuingCa, directory.provided.authority.call(d.ISSUING_CA))
    statements: providers.Provider[Statements] = providers.Singleton(
        SigningKey, directory.provided.key.call(d.JOIN_SIGNING)
    )
    unsealer: providers.Provider[Unsealer] = providers.Singleton(
        SealKey, directory.provided.key.call(d.JOIN_ENCRYPTION)
    )
    refuse: providers.Provider[Refuse] = providers.Singleton(Refuse, store, clock, random, log)
    sessions: providers.Provider[Sessions] = providers.Singleton(Sessions)
    joins: providers.Provider[Joins] = providers.Singleton(
        Join,
        settings=settings,
        store=store,
        clock=clock,
        random=random,
        issuer=issuer,
        statements=statements,
        unsealer=unsealer,
        refuse=refuse,
        news=sessions,
        log=log,
    )
    use: providers.Provider[UseCertificate] = providers.Singleton(
        UseCertificate, settings, sessions, log, providers.Singleton(Alarms, log)
    )
    gateways: providers.Provider[Gateways] = providers.Singleton(
        Gateway,
        store=store,
        clock=clock,
        use=use,
        renewal=providers.Singleton(RenewCertificate, settings, random, issuer, statements, use, log),
    )
    admin: providers.Provider[Admin] = providers.Singleton(
        Admin, settings, store, clock, random, sessions, statements.provider
    )
