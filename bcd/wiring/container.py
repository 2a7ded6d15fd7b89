"""The production node: which adapter stands at which port."""

from typing import TYPE_CHECKING, Any

from dependency_injector import containers, providers

import bcd
from bcd.adapters.beside_config import files
from bcd.adapters.beside_config.encryption_key import read_encryption_key
from bcd.adapters.fs.local import LocalFs
from bcd.adapters.grpc.join import GrpcJoinTransport
from bcd.adapters.hardware.sysfs import SysfsHardware
from bcd.adapters.host.clock import SystemClock
from bcd.adapters.host.entropy import SystemEntropy
from bcd.adapters.journal.sqlite import SqliteJournal
from bcd.adapters.keys.file import FileKeys
from bcd.adapters.keys.tpm import HostKeys
from bcd.adapters.tpm.attestor import LinkedAttestor
from bcd.adapters.tpm.client import Client
from bcd.adapters.tpm.device import DeviceLink
from bcd.adapters.tpm.identify import LinkedTpm
from bcd.adapters.tpm.keys import LinkedKeys
from bcd.domain.lifecycle.ask_to_join import AskToJoin
from bcd.domain.lifecycle.attest import Attest
from bcd.domain.lifecycle.await_tpm import AwaitTpm
from bcd.domain.lifecycle.begin_join import BeginJoin
from bcd.domain.lifecycle.hand_over import HandOver
from bcd.domain.lifecycle.join import Join
from bcd.domain.lifecycle.load import Load
from bcd.domain.lifecycle.reset import Reset
from bcd.domain.lifecycle.store_join import StoreJoin
from bcd.domain.model.failures import FixConfiguration, Message
from bcd.domain.model.keys import KeyUnavailable
from bcd.domain.model.pins import Pins
from bcd.ports.attestor import Attestor
from bcd.ports.clock import Clock
from bcd.ports.credential import CredentialSource
from bcd.ports.entropy import Entropy
from bcd.ports.events import Events
from bcd.ports.fs import Fs
from bcd.ports.hardware import Hardware
from bcd.ports.join_transport import JoinTransport
from bcd.ports.journal import Journal
from bcd.ports.keys import KeyStore
from bcd.ports.tpm import Tpm
from bcd.protocol.files.config import ENCRYPTION_KEY_FILE, SERVING_CA_FILE, Address, Config
from bcd.protocol.pki import seal
from bcd.wiring import node

if TYPE_CHECKING:
    from bcd.app.node import Node as RunningNode


def _needed(config: Config, key: str) -> FixConfiguration:
    return FixConfiguration(
        Message.CONFIG_KEY, path=config.path, key=key, why="missing: bcd-controlplane node-config writes it"
    )


def _pins(config: Config, key: str) -> Pins:
    found: Pins | None = getattr(config, key)
    if found is None:
        raise _needed(config, key)
    return found


def _join_address(config: Config) -> Address:
    if config.join is None:
        raise _needed(config, "join")
    return config.join


def _gateway_address(config: Config) -> Address:
    if config.gateway is None:
        raise _needed(config, "gateway")
    return config.gateway


def _recipient(config: Config) -> seal.Recipient:
    pins = _pins(config, "join_encryption_key_pin")
    return read_encryption_key(config.beside(ENCRYPTION_KEY_FILE), pins)


def _transport(config: Config, clock: Clock) -> GrpcJoinTransport:
    ca_path = config.beside(SERVING_CA_FILE)
    return GrpcJoinTransport(
        _join_address(config),
        _pins(config, "serving_ca_spki_pin"),
        config.path,
        clock,
        lambda: files.read_serving_ca(ca_path),
    )


def _client(config: Config) -> Client:
    return Client(DeviceLink(config.tpm_device), config.tpm_device)


def _keys(config: Config, events: Events, client: Client, *, makes: bool, named: bool) -> KeyStore:
    if config.helper is not None:
        return FileKeys(KeyUnavailable("under [helper] this version of bcd opens no TPM"))
    return HostKeys(LinkedKeys(client), events, makes=makes, named=named)


def _daemon(*, config: Config, **parts: Any) -> "RunningNode":
    # A join needs none of what this imports.
    from bcd.wiring import running

    address, serving_pins = _gateway_address(config), _pins(config, "serving_ca_spki_pin")
    return running.build(config, address, serving_pins, _pins(config, "join_signing_key_pin"), **parts)


class Node(containers.DeclarativeContainer):
    """`config`, `events` and `credential` come from the command line; everything else follows."""

    config = providers.Dependency(instance_of=Config)
    events: providers.Provider[Events] = providers.Dependency()
    credential: providers.Provider[CredentialSource] = providers.Dependency()

    clock: providers.Provider[Clock] = providers.Singleton(SystemClock)
    entropy: providers.Provider[Entropy] = providers.Singleton(SystemEntropy)
    hardware: providers.Provider[Hardware] = providers.Singleton(SysfsHardware)
    # One for the process: its keys' handles are good together, and its lock keeps threads apart.
    client: providers.Provider[Client] = providers.Singleton(_client, config)
    attestor: providers.Provider[Attestor] = providers.Singleton(LinkedAttestor, client, events)
    # Asked of this one and not of `client()`: in a container made from this one, that is another.
    give_tpm_back: providers.Provider[None] = providers.Callable(Client.close, client)
    tpm_is_for_keys: providers.Provider[bool] = providers.Object(True)
    # Under [helper] the node that is to use the key has no privileges, and opens no TPM.
    keys_go_into_tpm: providers.Provider[bool] = providers.Callable(
        lambda config, is_for_keys: config.helper is None and is_for_keys, config, tpm_is_for_keys
    )
    # The usual device may well be absent; one that the configuration names is not there by mistake.
    tpm_is_named: providers.Provider[bool] = providers.Callable(
        lambda config: config.tpm_device != Config.tpm_device, config
    )
    tpm: providers.Provider[Tpm] = providers.Singleton(LinkedTpm, client.provider)
    keys: providers.Provider[KeyStore] = providers.Singleton(
        _keys, config, events, client, makes=keys_go_into_tpm, named=tpm_is_named
    )
    fs: providers.Provider[Fs] = providers.Singleton(node.data_directory, config)
    record: providers.Provider[LocalFs | None] = providers.Singleton(node.record_directory, config)
    journal: providers.Provider[Journal] = providers.Singleton(SqliteJournal, config.provided.data_dir)
    transport: providers.Provider[JoinTransport] = providers.Singleton(_transport, config, clock)
    # Called when a token is to be sealed, and not before: a join by TPM needs no key to seal to.
    recipient: providers.Provider[seal.Recipient] = providers.Callable(_recipient, config)

    load = providers.Singleton(Load, fs, keys, events, config.provided.data_dir)
    hand_over = providers.Singleton(HandOver, fs, events)
    reset = providers.Singleton(Reset, fs, clock, events)
    daemon = providers.Singleton(
        _daemon,
        config=config,
        attestor=attestor,
        fs=fs,
        load=load,
        keys=keys,
        clock=clock,
        entropy=entropy,
        events=events,
    )
    attest = providers.Singleton(Attest, attestor, clock, events)
    await_tpm = providers.Singleton(AwaitTpm, clock, events)
    begin_join = providers.Singleton(
        BeginJoin,
        fs=fs,
        path=config.provided.data_dir,
        keys=keys,
        attest=attest,
        await_tpm=await_tpm,
        credential=credential,
        recipient=recipient.provider,
        clock=clock,
        events=events,
        tpm_wait_s=config.provided.tpm_wait_s,
    )
    ask_to_join = providers.Singleton(
        AskToJoin,
        fs=fs,
        attest=attest,
        transport=transport,
        hardware=hardware,
        signing_pins=providers.Callable(_pins, config, "join_signing_key_pin"),
        clock=clock,
        entropy=entropy,
        events=events,
        version=bcd.__version__,
    )
    join = providers.Singleton(
        Join,
        fs=fs,
        check_directory=providers.Callable(node.check_directory, config).provider,
        load=load,
        await_tpm=await_tpm,
        begin=begin_join,
        ask=ask_to_join,
        store=providers.Singleton(StoreJoin, fs, record, journal, clock, events),
        hand_over=hand_over,
        credential=credential,
        events=events,
        tpm_wait_s=config.provided.tpm_wait_s,
    )
