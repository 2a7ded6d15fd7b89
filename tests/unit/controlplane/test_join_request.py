"""A join whose request is not in order is refused; one at every bound is taken."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.controlplane.domain.joining import Refused
from bcd.domain.model.claims import MAX_CLAIM, MAX_CLAIMS_OF_A_KIND, Claims
from bcd.domain.model.pending import SealedToken
from bcd.protocol.pki import csr
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.joins import ask, granted, reason
from tests.fakes.controlplane.machine import Machine


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"attestor": "x509pop"}, "attestor-unknown"),
        ({"attestor": "tpm"}, "request-malformed"),
        ({"attestor": ""}, "attestor-unknown"),
        ({"attestor": "x" * 65}, "request-malformed"),
        ({"attestor": "join-token\n"}, "request-malformed"),
        ({"attestor": "provisioned"}, "node-id-missing"),
        ({"role": "admin"}, "role-unknown"),
        ({"role": "site"}, "role-mismatch"),
        ({"wanted_node_id": "a/b"}, "node-id-malformed"),
        ({"wanted_node_id": ".."}, "node-id-malformed"),
        ({"csr": b""}, "csr-malformed"),
        ({"csr": b"x" * 5000}, "csr-malformed"),
        ({"sealed": None}, "token-missing"),
        ({"sealed": SealedToken("", b"")}, "token-missing"),
        ({"sealed": SealedToken("other", b"x" * 200)}, "seal-key-unknown"),
        ({"sealed": SealedToken("other", b"x" * 5000)}, "request-malformed"),
        ({"sealed": SealedToken("k" * 65, b"x" * 200)}, "request-malformed"),
        ({"daemon_version": "v" * 257}, "request-malformed"),
        ({"pending_id": "\x1b[2J"}, "request-malformed"),
        ({"claims": Claims(hostname="h" * (MAX_CLAIM + 1))}, "claims-malformed"),
        ({"claims": Claims(product_serial="\x1b[2J")}, "claims-malformed"),
        ({"claims": Claims(product_uuid="\u202e")}, "claims-malformed"),
        ({"claims": Claims(macs=("00:1b:21:aa:bb:cc",) * (MAX_CLAIMS_OF_A_KIND + 1))}, "claims-malformed"),
        ({"claims": Claims(gpu_uuids=("g" * (MAX_CLAIM + 1),))}, "claims-malformed"),
        ({"claims": Claims(gpu_uuids=("4c4c4544-0042-3510-8052-b4c04f4d3532",))}, "claims-malformed"),
        ({"claims": Claims(macs=("00:1B:21:aa:bb:cc",))}, "claims-malformed"),
        ({"claims": Claims(macs=("00:1b:21:aa:bb:cc", "00:1b:21:aa:bb:cb"))}, "claims-malformed"),
        ({"claims": Claims(macs=("00:1b:21:aa:bb:cc",) * 2)}, "claims-malformed"),
    ],
    ids=str,
)
def test_a_request_that_is_not_in_order_is_refused(
    plane: MemoryControlPlane, changes: dict[str, Any], want: str
) -> None:
    token = plane.token()
    assert reason(plane, ask(plane, Machine(), token, **changes)) == want
    assert [row.used for row in plane.store.read(lambda r: r.tokens.all())] == [0]


def test_the_largest_claims_are_taken(plane: MemoryControlPlane) -> None:
    macs = tuple(f"00:1b:21:aa:bb:{last:02x}" for last in range(MAX_CLAIMS_OF_A_KIND))
    claims = Claims(hostname="h" * MAX_CLAIM, macs=macs)
    granted(plane, Machine(claims=claims), plane.token())


def test_a_token_sealed_beside_another_request_does_not_open(plane: MemoryControlPlane) -> None:
    stolen = Machine().request(plane.recipient, plane.token()).sealed
    assert reason(plane, ask(plane, Machine(), "unused", sealed=stolen)) == "seal-does-not-open"


def test_what_was_sealed_is_a_token(plane: MemoryControlPlane) -> None:
    assert reason(plane, ask(plane, Machine(), plane.token()[:-1])) == "token-malformed"
    assert reason(plane, ask(plane, Machine(), plane.token() + "\n")) == "token-malformed"


def test_a_request_on_another_curve_is_refused(plane: MemoryControlPlane) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.x509.oid import NameOID

    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, csr.SUBJECT)])
    key = ec.generate_private_key(ec.SECP384R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    other = Machine(csr=request.public_bytes(serialization.Encoding.DER))
    assert reason(plane, ask(plane, other, plane.token())) == "csr-malformed"


def test_what_is_no_request_at_all_is_refused_too(plane: MemoryControlPlane) -> None:
    answer = plane.exchange(b"\xff\xff\xff")
    assert isinstance(answer, Refused)
    assert plane.refusals()[0].reason == "request-malformed"
