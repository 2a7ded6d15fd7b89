"""Rows for a store: each a complete value; arguments change what a test is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from bcd.controlplane.domain.approvals import Approval
from bcd.controlplane.domain.audit import Event, Kind
from bcd.controlplane.domain.certificates import Certificate, CertificateState, GivenAnswer
from bcd.controlplane.domain.challenges import Challenge
from bcd.controlplane.domain.eks import EkRoot, ListedEk
from bcd.controlplane.domain.ids import ApprovalId, RefusalId, TokenId
from bcd.controlplane.domain.nodes import Node
from bcd.controlplane.domain.refusals import Reason, Refusal
from bcd.controlplane.domain.tokens import Token
from bcd.domain.model.claims import Claims
from bcd.domain.model.names import NodeId, Role, SiteId

# With microseconds, which a store must keep.
AT = datetime(2026, 9, 26, 11, 42, 0, 123456, tzinfo=UTC)
HOUR = timedelta(hours=1)
CLAIMS = Claims(
    product_uuid="4c4c4544-0042-3510-8052-b4c04f4d3532",
    product_serial="7Q2XY",
    board_serial="Bôard 1",
    macs=("00:1b:21:aa:bb:cc", "00:1b:21:aa:bb:cd"),
    gpu_uuids=(),
    hostname="metal-1",
)


def token(id_: str = "aaaaaaaaaa", **changes: Any) -> Token:
    given: dict[str, Any] = {
        "id": TokenId(id_),
        "secret_sha256": sha256(id_.encode()).digest(),
        "site": SiteId("lab"),
        "role": Role.NODE,
        "node_id": None,
        "allow_reclaim": False,
        "require_approval": True,
        "created": AT,
        "expires": AT + HOUR,
        "uses": 3,
    }
    return Token(**(given | changes))


def node(id_: str = "n-aaaaaaaaaa", **changes: Any) -> Node:
    given: dict[str, Any] = {
        "id": NodeId(id_),
        "site": SiteId("lab"),
        "role": Role.SITE,
        "generation": 1,
        "machine": "",
        "claims": CLAIMS,
        "daemon_version": "0.1.0",
        "token_id": TokenId("aaaaaaaaaa"),
        "created": AT,
        "joined": AT,
    }
    return Node(**(given | changes))


def certificate(serial: str = "0a" * 16, **changes: Any) -> Certificate:
    given: dict[str, Any] = {
        "serial": serial,
        "node_id": NodeId("n-aaaaaaaaaa"),
        "generation": 1,
        "state": CertificateState.ISSUED,
        "state_since": AT,
        "credential": "token:aaaaaaaaaa",
        "parent": "",
        "spki_sha256": sha256(serial.encode()).digest(),
        "leaf_sha256": sha256(b"leaf" + serial.encode()).digest(),
        "issued": AT,
        "not_before": AT.replace(microsecond=0),
        "not_after": AT.replace(microsecond=0) + HOUR,
    }
    return Certificate(**(given | changes))


def answer(credential: str = "token:aaaaaaaaaa", key: bytes = b"k" * 32, **changes: Any) -> GivenAnswer:
    given: dict[str, Any] = {
        "credential": credential,
        "spki_sha256": key,
        "csr_sha256": b"c" * 32,
        "serial": "0a" * 16,
        "chain": (b"leaf\x00", b"\xffca"),
        "signed": b"\x00signed\xff",
        "not_after": AT + HOUR,
    }
    return GivenAnswer(**(given | changes))


def approval(id_: str = "a-aaaaaaaaaa", **changes: Any) -> Approval:
    given: dict[str, Any] = {
        "id": ApprovalId(id_),
        "credential": "token:aaaaaaaaaa",
        "spki_sha256": sha256(id_.encode()).digest(),
        "token_id": TokenId("aaaaaaaaaa"),
        "site": SiteId("lab"),
        "role": Role.NODE,
        "node_id": None,
        "reclaims": False,
        "claims": CLAIMS,
        "daemon_version": "0.1.0",
        "source": "192.0.2.1",
        "asked": AT,
    }
    return Approval(**(given | changes))


def refusal(number: int = 1, **changes: Any) -> Refusal:
    given: dict[str, Any] = {
        "id": RefusalId(f"{number:032x}"),
        "at": AT + timedelta(seconds=number),
        "reason": Reason.TOKEN_USED_UP,
        "source": "192.0.2.1",
        "attestor": "join-token",
        "token_id": "aaaaaaaaaa",
        "claims": CLAIMS,
        "detail": "1 of 1 uses",
    }
    return Refusal(**(given | changes))


def ek_root(number: int = 1, **changes: Any) -> EkRoot:
    der = b"0\x82" + bytes([number])
    given: dict[str, Any] = {"fingerprint": f"sha256:{sha256(der).hexdigest()}", "der": der, "added": AT}
    return EkRoot(**(given | changes))


def listed_ek(number: int = 1, **changes: Any) -> ListedEk:
    given: dict[str, Any] = {
        "ek": f"sha256:{number:064x}",
        "site": SiteId("lab"),
        "role": Role.NODE,
        "node_id": None,
        "denied": False,
        "note": "räck 7",
        "listed": AT,
    }
    return ListedEk(**(given | changes))


def event(**changes: Any) -> Event:
    given: dict[str, Any] = {
        "at": AT,
        "actor": "operator",
        "kind": Kind.TOKEN_CREATED,
        "detail": {"token": "aaaaaaaaaa", "uses": 3, "allowReclaim": True, "name": "é\n"},
    }
    return Event(**(given | changes))


def challenge(number: int = 1, **changes: Any) -> Challenge:
    given: dict[str, Any] = {
        "id": f"{number:032x}",
        "ek": f"sha256:{number:064x}",
        "ek_name": b"\x00\x0b" + bytes(32),
        "ak_name": b"\x00\x0b" + number.to_bytes(32),
        "csr_sha256": b"c" * 32,
        "secret_sha256": b"s" * 32,
        "credential": b"\x00credential",
        "encrypted_secret": b"encrypted\xff",
        "nonce": b"n" * 32,
        "pcr_bank": 11,
        "pcr_selection": b"\xff\x00\x00",
        "source": "192.0.2.1",
        "issued": AT,
        "not_after": AT + HOUR,
    }
    return Challenge(**(given | changes))
