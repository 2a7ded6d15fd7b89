"""A machine that joins, in a few lines: its key, its request, and what it checks of the answer."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.controlplane.adapters.grpc.messages import encode_request
from bcd.controlplane.domain.joining import JoinRequest
from bcd.domain.model.claims import Claims
from bcd.domain.model.names import Role, node_id
from bcd.domain.model.pending import SealedToken
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pb.bc.identity.v1 import join_pb2 as pb
from bcd.protocol.pki import csr, ecdsa, join_response, seal

METHOD = "/bc.identity.v1.JoinService/Join"


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass(frozen=True)
class Machine:
    """One key and its CSR; `claims` are what the machine says of itself."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    claims: Claims = field(default_factory=lambda: Claims(hostname="metal"))
    csr: bytes = b""

    def __post_init__(self) -> None:
        if not self.csr:
            object.__setattr__(self, "csr", csr.make_csr(self.key))

    @property
    def spki(self) -> bytes:
        return ecdsa.spki_of(self.key.public_key())

    @property
    def pin(self) -> str:
        return str(Pin.of(self.spki))

    def request(self, recipient: seal.Recipient, token: str, **changes: Any) -> JoinRequest:
        """What `bcd join` would send with `token`; `changes` replace fields."""
        sealed = seal.seal(recipient, token.encode(), self.csr)
        wanted = changes.get("wanted_node_id", "")
        asked = JoinRequest(
            attestor="provisioned" if wanted else "join-token",
            csr=self.csr,
            sealed=SealedToken(sealed.kid, sealed.sealed),
            wanted_node_id=wanted,
            role="node",
            claims=self.claims,
            daemon_version="0.1.0",
        )
        return replace(asked, **changes)

    def check(self, signed: bytes, signing_pin: str, role: Role = Role.NODE, node: str = "") -> Any:
        """The verified answer, by the node's own numbered checks."""
        expected = join_response.Expected(
            self.csr, self.spki, role, node_id(node) if node else None, Pins((Pin(signing_pin),))
        )
        return join_response.open_join_response(signed, expected)


@dataclass(frozen=True)
class Site:
    """A `node-config` directory, and how to reach the control plane it speaks of."""

    path: Path

    @property
    def config(self) -> dict[str, Any]:
        return tomllib.loads((self.path / "config.toml").read_text())

    @property
    def recipient(self) -> seal.Recipient:
        return seal.decode_recipient((self.path / "join-encryption.jwk").read_bytes())

    @property
    def signing_pin(self) -> str:
        pin: str = self.config["join_signing_key_pin"]
        return pin

    def channel(self) -> grpc.Channel:
        ca = (self.path / "serving-ca.pem").read_bytes()
        options = [("grpc.enable_http_proxy", 0), ("grpc.enable_retries", 0)]
        return grpc.secure_channel(self.config["join"], grpc.ssl_channel_credentials(ca), options)

    def send(self, data: bytes, channel: grpc.Channel | None = None, timeout_s: float = 10.0) -> pb.JoinReply:
        """One raw call; grpc.RpcError when it is not answered."""
        own = channel or self.channel()
        try:
            call: Any = own.unary_unary(METHOD)
            answer: bytes = call(data, timeout=timeout_s)
        finally:
            if channel is None:
                own.close()
        return pb.JoinReply.FromString(answer)

    def join(self, machine: Machine, token: str, channel: grpc.Channel | None = None, **changes: Any) -> pb.JoinReply:
        return self.send(encode_request(machine.request(self.recipient, token, **changes)), channel)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
