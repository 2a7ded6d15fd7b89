"""What `bcd node` has besides the parts every command has: the gateway, the journal it writes, its supervisor."""

import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime

import bcd
from bcd.adapters.beside_config import files
from bcd.adapters.fs.holder import holder
from bcd.adapters.grpc.gateway import GrpcGateway
from bcd.adapters.grpc.roots import Roots
from bcd.adapters.host.boot import boot_id
from bcd.adapters.host.systemd import Systemd
from bcd.adapters.journal.sqlite import SqliteJournal
from bcd.adapters.journal.writer import NoJournalHere, SecondNode, open_journal
from bcd.app.node import Node as RunningNode
from bcd.domain.lifecycle.change_identity import ChangeIdentity
from bcd.domain.lifecycle.load import Load
from bcd.domain.lifecycle.renew import Renew
from bcd.domain.lifecycle.set_aside import set_journal_aside
from bcd.domain.lifecycle.welcome import TakeIn
from bcd.domain.model import datadir
from bcd.domain.model.failures import FixConfiguration, Message, TryLater
from bcd.domain.model.loading import Loaded
from bcd.domain.model.pins import Pins
from bcd.ports.attestor import Attestor
from bcd.ports.clock import Clock
from bcd.ports.entropy import Entropy
from bcd.ports.events import Events
from bcd.ports.fs import Fs
from bcd.ports.gateway import Gateway
from bcd.ports.journal import CorruptJournal, JournalOf, NodeJournal
from bcd.ports.keys import KeyStore
from bcd.protocol.files.config import SERVING_CA_FILE, Address, Config
from bcd.wiring import node


def build(
    config: Config,
    address: Address,
    serving_pins: Pins,
    signing_pins: Pins,
    *,
    fs: Fs,
    load: Load,
    keys: KeyStore,
    attestor: Attestor,
    clock: Clock,
    entropy: Entropy,
    events: Events,
) -> RunningNode:
    # A directory of its own for the thread that writes: a lock belongs to one.
    writing = node.data_directory(config)
    change = ChangeIdentity(writing)
    return RunningNode(
        fs=fs,
        load=load,
        keys=keys,
        change=ChangeIdentity(fs),
        renew=Renew(writing, keys, attestor, change, signing_pins),
        take_in=TakeIn(writing, change, events, signing_pins),
        gateway=gateway(config, address, serving_pins, clock),
        open_journal=journal_maker(config, fs, events),
        check=node.checker(config),
        clock=clock,
        entropy=entropy,
        events=events,
        supervisor=Systemd(),
        boot_id=boot_id(),
        version=bcd.__version__,
        tpm_wait_s=config.tpm_wait_s,
    )


def gateway(config: Config, address: Address, pins: Pins, clock: Clock) -> Callable[[Callable[[bytes], None]], Gateway]:
    ca_path = config.beside(SERVING_CA_FILE)
    roots = Roots(
        address, pins=pins, config_path=config.path, clock=clock, ca_file=lambda: files.read_serving_ca(ca_path)
    )
    return lambda signed: GrpcGateway(address, roots, signed)


def journal_maker(config: Config, fs: Fs, events: Events) -> Callable[[Loaded], NodeJournal]:
    """Opens the journal of a loaded identity; a foreign one is refused, a corrupt one set aside (decision 10)."""
    path = os.path.join(config.data_dir, datadir.JOURNAL)

    def make(loaded: Loaded) -> NodeJournal:
        node = loaded.identity.node_id
        match SqliteJournal(config.data_dir).look():
            case JournalOf(owner) if owner is not None and owner != node:
                raise FixConfiguration(Message.FOREIGN_JOURNAL, owner=owner, node=node, path=path)
            case CorruptJournal(why):
                events.warning("the journal is corrupt and is set aside; a new one begins", why=why)
                set_journal_aside(fs, datadir.corrupt_name(datadir.JOURNAL, datetime.now(UTC)))
            case _:
                pass
        try:
            return open_journal(path, node, events)
        except SecondNode as second:
            raise TryLater(
                Message.SECOND_NODE, path=config.data_dir, holder=holder(second.file) or "another process"
            ) from None
        except (OSError, sqlite3.Error) as error:
            # A read-only or full disk: the session is worth more than its record.
            events.warning("the node runs without a journal", why=error)
            return NoJournalHere()

    return make
