"""A node that has joined, in a few lines: the leaf it holds, its key, and its calls to a MemoryControlPlane."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from bcd.controlplane.domain.gateway import HelloAnswer, RenewAnswer, Renewed
from bcd.controlplane.domain.joining import Granted
from bcd.domain.model.identity import Leaf
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pki import certificates, csr, ecdsa, renew_response
from bcd.protocol.pki.renew_pop import make_renew_pop
from tests.fakes.controlplane.control_plane import MemoryControlPlane, present
from tests.fakes.controlplane.machine import Machine, new_key


@dataclass(frozen=True)
class Asked:
    """A renewal under way: the next key and everything that is sent for it."""

    key: ec.EllipticCurvePrivateKey
    csr: bytes
    pop: bytes


@dataclass
class Member:
    """One pair, in use. A copy of it (`thief`) is a thief: the same key, elsewhere."""

    plane: MemoryControlPlane
    leaf: bytes
    key: ec.EllipticCurvePrivateKey
    source: str = "192.0.2.1"
    checked: list[renew_response.RenewResponse] = field(default_factory=list)

    @staticmethod
    def joined(plane: MemoryControlPlane, token: str = "", machine: Machine | None = None) -> Member:
        machine = machine or Machine()
        answer = plane.join(machine.request(plane.recipient, token or plane.token()))
        assert isinstance(answer, Granted)
        return Member(plane, machine.check(answer.signed, plane.signing_pin).leaf.der, machine.key)

    def thief(self) -> Member:
        return Member(self.plane, self.leaf, self.key, source="198.51.100.9")

    @property
    def parsed(self) -> Leaf:
        return certificates.parse_leaf(self.leaf)

    @property
    def node(self) -> str:
        return self.parsed.spiffe_id.node

    @property
    def serial(self) -> str:
        return present(self.leaf).serial

    @property
    def state(self) -> str:
        return self.plane.certificates(self.node)[self.serial]

    def hello(self) -> HelloAnswer:
        return self.plane.hello(self.leaf, self.source)

    def ask(self, key: ec.EllipticCurvePrivateKey | None = None, **changes: Any) -> Asked:
        """`changes`: `csr` and `leaf` that the proof is about, `signer` that signs it."""
        key = key or new_key()
        request = csr.make_csr(key)
        signer = changes.get("signer", self.key)
        proof = make_renew_pop(
            changes.get("csr", request),
            changes.get("leaf", self.leaf),
            self.plane.clock.now(),
            ecdsa.spki_of(signer.public_key()),
            lambda message: ecdsa.sign(signer, message),
        )
        return Asked(key, request, proof.SerializeToString(deterministic=True))

    def send(self, asked: Asked) -> RenewAnswer:
        return self.plane.renew(self.leaf, asked.csr, asked.pop, self.source)

    def take(self, asked: Asked, answer: RenewAnswer) -> Member:
        """The member with the new pair, after the node's own numbered checks."""
        assert isinstance(answer, Renewed), answer
        pins = Pins((Pin(self.plane.signing_pin),))
        spki = ecdsa.spki_of(asked.key.public_key())
        expected = renew_response.Expected(asked.csr, spki, self.parsed, pins)
        opened = renew_response.open_renew_response(answer.signed, expected)
        return Member(self.plane, opened.leaf.der, asked.key, self.source, [*self.checked, opened])

    def renewed(self) -> Member:
        asked = self.ask()
        return self.take(asked, self.send(asked))
