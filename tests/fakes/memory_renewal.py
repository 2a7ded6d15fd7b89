"""One renewal on a disk in memory: with a key in a file, and with a leaf that names an attestation key."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from bcd.adapters.keys.file import FileKey, FileKeys
from bcd.adapters.keys.tpm import HostKeys
from bcd.domain.lifecycle.change_identity import ChangeIdentity
from bcd.domain.lifecycle.renew import NextKey, NotRenewed, Renew, RenewOutcome
from bcd.domain.model.datadir import NEXT_KEY
from bcd.domain.model.failures import Failure
from bcd.domain.model.loading import LoadedAsIs, RemoveNext
from bcd.ports.gateway import Ended, Pair, RenewAnswer, RenewQuestion
from bcd.protocol.files import identity_json
from bcd.protocol.pki import certificates, ecdsa
from tests.fakes import pki
from tests.fakes.attestor import MemoryAttestor
from tests.fakes.gateway import MemoryConnection, MemoryGateway, renewed
from tests.fakes.joining import Recorded
from tests.fakes.memory_node import MemoryNode, identity, record
from tests.fakes.memory_tpm import MemoryTpmKeys

HELD = replace(identity(), unknown={"laterField": "kept"})


ASKED = pki.NOW + timedelta(hours=15)
PAIR = Pair(HELD.leaf, HELD.chain, FileKey(pki.NODE_KEY))
NO = Ended("RESOURCE_EXHAUSTED", pushback_s=7.0)


@dataclass
class Case:
    """A node with an identity, and a gateway that marks on the disk when a Renew leaves."""

    node: MemoryNode = field(
        default_factory=lambda: MemoryNode().plant(identity_json=identity_json.encode(HELD), node_key=record())
    )
    gateway: MemoryGateway = field(default_factory=lambda: MemoryGateway(lambda: ASKED))

    def __post_init__(self) -> None:
        self.before = self.node.files
        self.connection = MemoryConnection(self.gateway, PAIR)
        self.answers(self.gateway.certify)

    def answers(self, answer: Callable[[MemoryConnection, RenewQuestion], RenewAnswer]) -> "Case":
        def asked(connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
            self.node.disk.mark("renew")
            return answer(connection, question)

        self.gateway.on_renew = asked
        return self

    def answers_with(self, answer: RenewAnswer) -> "Case":
        return self.answers(lambda connection, question: answer)

    def renew(self, next_key: NextKey | None = None) -> RenewOutcome:
        fs = self.node.fs
        return Renew(fs, FileKeys(), MemoryAttestor(), ChangeIdentity(fs), pki.PINS)(
            PAIR, self.connection, ASKED, next_key
        )

    def refuses(self) -> NotRenewed:
        """Renews, which does not work, and finds the old pair untouched, now and after a restart."""
        outcome = self.renew()
        assert isinstance(outcome, NotRenewed)
        self.pair_is_untouched()
        return outcome

    def pair_is_untouched(self) -> None:
        assert {name: data for name, data in self.node.files.items() if name != NEXT_KEY} == self.before
        with self.node.fs.lock(0):
            assert isinstance(self.node.load(), RemoveNext | LoadedAsIs)
        assert self.node.files == self.before

    @property
    def question(self) -> RenewQuestion:
        (only,) = self.connection.asked
        return only


@dataclass
class Certified:
    """A node whose leaf names the attestation key of its TPM."""

    def __post_init__(self) -> None:
        self.held, self.attestor = MemoryTpmKeys(), MemoryAttestor()
        keys = HostKeys(self.held, Recorded())
        key = keys.create()
        self.names = [certificates.permanent_identifier(self.attestor.ak_name())]
        held = identity(key=ecdsa.public_key(key.spki), names=self.names)
        self.node = MemoryNode(keys=keys).plant(identity_json=identity_json.encode(held), node_key=key.record)
        self.pair = Pair(held.leaf, held.chain, key)
        self.before = self.node.files
        self.gateway = MemoryGateway(lambda: ASKED)
        self.gateway.on_renew = self.certify
        self.asked: list[RenewQuestion] = []
        self.answers: list[RenewAnswer] = []
        self.attestor.calls.clear()

    def certify(self, connection: MemoryConnection, question: RenewQuestion) -> RenewAnswer:
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else renewed(question.csr, server_time=ASKED, names=self.names)

    def renew(self, next_key: NextKey | None = None) -> RenewOutcome:
        fs = self.node.fs
        renew = Renew(fs, self.node.keys, self.attestor, ChangeIdentity(fs), pki.PINS)
        return renew(self.pair, MemoryConnection(self.gateway, self.pair), ASKED, next_key)

    def fails(self, kind: type[Failure]) -> str:
        """Nothing of the old pair is touched, and nothing is sent."""
        with pytest.raises(kind) as caught:
            self.renew()
        assert {name: self.node.files[name] for name in self.before} == self.before
        assert self.asked == []
        return caught.value.text
