"""`join.pending`: all of a request under way, whole or told (decision 8)."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.names import NodeId, Role
from bcd.domain.model.pending import PendingJoin, SealedToken
from bcd.protocol.files.encoding import MalformedFile
from bcd.protocol.files.join_pending import decode, encode
from bcd.protocol.files.node_key import encode_file_key
from tests.fakes import pki
from tests.fakes.properties import few

KEY = encode_file_key(pki.NODE_KEY)
SEALED = SealedToken("kid-1", b"\x04sealed")
PENDING = PendingJoin("join-token", Role.NODE, NodeId("n-7"), KEY, pki.CSR, SEALED, "p-1", pki.NOW)
FILE = encode(PENDING)
VALUE: dict[str, Any] = json.loads(FILE)
TEXT = st.text("abcé-", min_size=1, max_size=9)


def file(**changes: object) -> bytes:
    """The file with fields changed; ... leaves one out."""
    return json.dumps({k: v for k, v in (VALUE | changes).items() if v is not ...}).encode()


@few
@given(
    st.builds(
        PendingJoin,
        TEXT,
        st.sampled_from(Role),
        st.none() | st.just(NodeId("n-7")),
        TEXT.map(str.encode),
        st.binary(min_size=1, max_size=40),
        st.none() | st.builds(SealedToken, TEXT, st.binary(min_size=1, max_size=40)),
        st.just("") | TEXT,
        st.datetimes(timezones=st.just(pki.NOW.tzinfo)),  # type: ignore[arg-type]
    )
)
def test_a_request_reads_back_as_itself(pending: PendingJoin) -> None:
    assert decode(encode(pending)) == pending


def test_the_file_holds_the_documented_fields() -> None:
    assert {
        "version": 1,
        "begun": "2026-09-26T12:00:00Z",
        "attestor": "join-token",
        "role": "node",
        "nodeId": "n-7",
        "key": KEY.decode(),
        "csr": base64.b64encode(pki.CSR).decode(),
        "sealedTokenKid": "kid-1",
        "sealedToken": base64.b64encode(b"\x04sealed").decode(),
        "pendingId": "p-1",
    } == VALUE


def test_absent_values_are_left_out() -> None:
    bare = PendingJoin("tpm", Role.SITE, None, KEY, pki.CSR, None, "", pki.NOW)
    assert set(json.loads(encode(bare))) == {"version", "begun", "attestor", "role", "key", "csr"}
    assert decode(encode(bare)) == bare


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b"\x00" * 600, "holds only zero bytes"),
        (b"{}", "is of another version of bcd"),
        (b"[]", "is not a JSON object"),
        (file(version=2), "is of another version of bcd"),
        (file(version="1"), "is of another version of bcd"),
        (file(version=True), "is of another version of bcd"),
        (file(version=...), "is of another version of bcd"),
        (file(role="root"), "has a name that is not a role"),
        (file(role=...), "has no role"),
        (file(nodeId="n 7"), "has a name that is not a node id"),
        (file(nodeId=None), "has no nodeId"),
        (file(nodeId=""), "has no nodeId"),
        (file(attestor=""), "has no attestor"),
        (file(attestor=...), "has no attestor"),
        (file(key=...), "has no key"),
        (file(key=""), "has no key"),
        (file(key="\ud800"), "is not JSON"),
        (file(csr=...), "has a csr that is not base64"),
        (file(csr=""), "has a csr that is not base64"),
        (file(csr=VALUE["csr"].rstrip("=") + "!"), "has a csr that is not base64"),
        (file(sealedToken=...), "has a sealedToken that is not base64"),
        (file(sealedToken=""), "has a sealedToken that is not base64"),
        (file(sealedToken=VALUE["sealedToken"].rstrip("=")), "has a sealedToken that is not base64"),
        (file(sealedTokenKid=...), "has no sealedTokenKid"),
        (file(sealedTokenKid=""), "has no sealedTokenKid"),
        (file(pendingId=None), "has no pendingId"),
        (file(pendingId=""), "has no pendingId"),
        (file(begun=...), "has a begun that is not an RFC 3339 UTC time"),
        (file(begun="2026-09-26T12:00:00"), "has a begun that is not an RFC 3339 UTC time"),
    ],
)
def test_any_other_file_is_malformed_and_told(data: bytes, why: str) -> None:
    assert decode(FILE) == PENDING
    with pytest.raises(MalformedFile, match=why):
        decode(data)


def test_a_file_torn_anywhere_is_malformed() -> None:
    """Only the last line end can go, and with it goes nothing."""
    for length in range(len(FILE) - 1):
        with pytest.raises(MalformedFile):
            decode(FILE[:length])
        with pytest.raises(MalformedFile):
            decode(FILE[:length] + b"\x00" * (len(FILE) - length))
    assert decode(FILE[:-1]) == PENDING


@pytest.mark.parametrize("change", [0x01, 0x80])
def test_any_byte_changed_is_a_request_or_malformed(change: int) -> None:
    for at in range(len(FILE)):
        changed = bytearray(FILE)
        changed[at] ^= change
        try:
            found = decode(bytes(changed))
        except MalformedFile:
            continue
        assert decode(encode(found)) == found


@few
@given(st.binary(max_size=80))
def test_any_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedFile):
        decode(data)


def test_no_message_holds_the_key() -> None:
    for name in VALUE:
        try:
            decode(file(**{name: "é!"}))
        except MalformedFile as refused:
            assert "BEGIN" not in str(refused)
            assert VALUE["key"].splitlines()[1] not in str(refused)
