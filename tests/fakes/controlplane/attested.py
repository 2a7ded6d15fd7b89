"""A machine that joins a control plane in memory by its TPM, round by round."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from bcd.adapters.tpm.client import Key
from bcd.controlplane.domain.joining import Challenged, Granted, JoinAnswer, JoinRequest, Refused
from bcd.domain.model.attestation import ChallengeAnswer, JoinChallenge
from bcd.domain.model.claims import Claims
from bcd.domain.model.names import NodeId, Role, SiteId
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pki import csr, join_response
from bcd.protocol.tpm2 import names
from tests.fakes.controlplane import rows
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.tpm_machine import AK, RSA_EK, TpmMachine

METAL = Claims(product_uuid="4c4c4544-0042-3510-8052-b4c04f4d3532", board_serial="CN7016", hostname="metal")


@dataclass
class Attested:
    """`tpm` shows and proves, everything else is what `bcd join` would send."""

    tpm: TpmMachine
    claims: Claims = field(default_factory=lambda: Claims(hostname="metal"))
    role: Role = Role.NODE
    key_in_tpm: bool = True
    csr: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.csr = self.tpm.csr() if self.key_in_tpm else csr.make_csr(ec.generate_private_key(ec.SECP256R1()))
        self.evidence = self.tpm.evidence(node_key=self.key_in_tpm)

    @property
    def ak_name(self) -> bytes:
        return names.name(self.tpm.public(AK))

    def ek(self, key: Key = RSA_EK) -> str:
        return str(Pin.of(names.spki(self.tpm.public(key))))

    def ek_name(self, key: Key = RSA_EK) -> bytes:
        return names.name(self.tpm.public(key))

    def allow(
        self, plane: MemoryControlPlane, key: Key = RSA_EK, role: Role = Role.NODE, node_id: str | None = None
    ) -> None:
        row = rows.listed_ek(
            ek=self.ek(key), site=SiteId("lab"), role=role, node_id=NodeId(node_id) if node_id else None
        )
        plane.store.change(lambda r: r.eks.put(row)).result()

    def deny(self, plane: MemoryControlPlane, key: Key = RSA_EK) -> None:
        row = rows.listed_ek(ek=self.ek(key), denied=True)
        plane.store.change(lambda r: r.eks.put(row)).result()

    def request(self, answer: ChallengeAnswer | None = None, **changes: Any) -> JoinRequest:
        asked = JoinRequest(
            attestor="tpm",
            csr=self.csr,
            sealed=None,
            wanted_node_id="",
            role=self.role.value,
            claims=self.claims,
            daemon_version="0.1.0",
            evidence=self.evidence,
            answer=answer,
        )
        return replace(asked, **changes)

    def ask(self, plane: MemoryControlPlane, answer: ChallengeAnswer | None = None, **changes: Any) -> JoinAnswer:
        return plane.join(self.request(answer, **changes))

    def challenged(self, plane: MemoryControlPlane, **changes: Any) -> JoinChallenge:
        got = self.ask(plane, **changes)
        assert isinstance(got, Challenged), got
        return got.challenge

    def answer(self, challenge: JoinChallenge) -> ChallengeAnswer:
        return self.tpm.answer(challenge.id, challenge.tpm, sha256(self.csr).digest(), node_key=self.key_in_tpm)

    def joined(self, plane: MemoryControlPlane) -> Any:
        """The opened answer of both rounds, checked as a node checks it."""
        got = self.ask(plane, self.answer(self.challenged(plane)))
        assert isinstance(got, Granted), plane.refusals()[0]
        return self.checked(plane, got)

    def checked(self, plane: MemoryControlPlane, got: Granted) -> Any:
        expected = join_response.Expected(
            self.csr, csr.key_of(self.csr), self.role, None, Pins((Pin(plane.signing_pin),))
        )
        return join_response.open_join_response(got.signed, expected)

    def refused(self, plane: MemoryControlPlane, answer: ChallengeAnswer | None = None, **changes: Any) -> str:
        """Why, as the operator finds it."""
        got = self.ask(plane, answer, **changes)
        assert isinstance(got, Refused), got
        row = plane.refusals()[0]
        assert row.id == got.id
        return row.reason
