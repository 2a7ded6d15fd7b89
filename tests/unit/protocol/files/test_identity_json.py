"""`identity.json`: what is read is what was written, and what was torn is told (B04)."""

import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model.identity import Identity, Trust
from bcd.domain.model.names import Role
from bcd.protocol.files import identity_json
from bcd.protocol.files.encoding import MalformedFile
from bcd.protocol.files.identity_json import decode, encode
from bcd.protocol.pki.certificates import parse_leaf
from tests.fakes import pki
from tests.fakes.properties import few

CHAIN = pki.chain()
SIGNED = pki.trust_bundle()
TRUST = Trust(3, (pki.COMMAND_ROOT,), SIGNED.payload, SIGNED.SerializeToString())
IDENTITY = Identity(parse_leaf(CHAIN[0]), CHAIN, TRUST, pki.NOW)
FILE = encode(IDENTITY)
VALUE: dict[str, Any] = json.loads(FILE)

BYTES = st.binary(min_size=1, max_size=60)
TRUSTS = st.none() | st.builds(
    Trust, st.integers(0, 2**64 - 1), st.lists(BYTES, max_size=3).map(tuple), BYTES, st.none() | BYTES
)
UNKNOWN = st.dictionaries(
    st.text("abcxyz", min_size=1).filter(lambda name: name not in identity_json.__dict__["_FIELDS"]),
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3),
    max_size=3,
)


def file(**changes: object) -> bytes:
    """The file with fields changed; ... leaves one out."""
    return json.dumps({k: v for k, v in (VALUE | changes).items() if v is not ...}).encode()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@few
@given(TRUSTS, st.none() | st.datetimes().map(lambda t: t.replace(tzinfo=pki.NOW.tzinfo)), UNKNOWN)
def test_an_identity_reads_back_as_itself(trust: Trust | None, server_time: Any, unknown: dict[str, object]) -> None:
    identity = Identity(IDENTITY.leaf, CHAIN, trust, server_time, unknown)
    assert decode(encode(identity)) == identity


@pytest.mark.parametrize("role", Role)
def test_each_role_reads_back(role: Role) -> None:
    chain = pki.chain(role=role, not_after=pki.NOW + timedelta(hours=1))
    identity = Identity(parse_leaf(chain[0]), chain)
    assert decode(encode(identity)) == identity


def test_the_file_holds_the_specifications_fields() -> None:
    assert {
        "nodeId": "n-7",
        "siteId": "hall-2",
        "trustDomain": "example.org",
        "role": "node",
        "chain": [b64(der) for der in CHAIN],
        "notAfter": "2026-09-27T11:55:00Z",
        "trustVersion": 3,
        "trustRoots": [b64(pki.COMMAND_ROOT)],
        "trustBundle": b64(SIGNED.payload),
        "signedTrustBundle": b64(SIGNED.SerializeToString()),
        "serverTime": "2026-09-26T12:00:00Z",
    } == VALUE


def test_absent_values_are_left_out() -> None:
    bare = json.loads(encode(replace(IDENTITY, trust=None, server_time=None)))
    assert set(bare) == {"nodeId", "siteId", "trustDomain", "role", "chain", "notAfter"}
    assert "signedTrustBundle" not in json.loads(encode(replace(IDENTITY, trust=replace(TRUST, signed=None))))
    assert decode(file(serverTime=...)).server_time is None


def test_a_later_versions_fields_are_kept_and_never_replace_ours() -> None:
    read = decode(file(later={"a": [1, None]}))
    assert read.unknown == {"later": {"a": [1, None]}}
    assert json.loads(encode(read)) == VALUE | {"later": {"a": [1, None]}}
    assert json.loads(encode(replace(IDENTITY, unknown={"nodeId": "n-8"})))["nodeId"] == "n-7"


def test_without_a_bundle_no_trust_is_held() -> None:
    assert decode(file(trustVersion=..., trustRoots=..., trustBundle=..., signedTrustBundle=...)).trust is None


def test_a_bundle_without_roots_enforces_nothing_and_loads() -> None:
    trust = decode(file(trustRoots=...)).trust
    assert trust is not None
    assert trust.roots == ()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"trustVersion": ...}, "has a trustVersion that is not a number"),
        ({"trustBundle": ...}, "has a trustBundle that is not base64"),
        ({"trustVersion": ..., "trustBundle": ...}, "has a trustVersion that is not a number"),
        ({"trustVersion": ..., "trustBundle": ..., "trustRoots": ...}, "has a trustVersion"),
        ({"trustVersion": ..., "trustBundle": ..., "signedTrustBundle": ...}, "has a trustVersion"),
    ],
)
def test_part_of_a_bundle_is_no_bundle(changes: dict[str, object], why: str) -> None:
    """Read as none it would turn the enforcement of signed intent off, and the next store would drop the rest."""
    with pytest.raises(MalformedFile, match=why):
        decode(file(**changes))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b"\x00" * len(FILE), "holds only zero bytes"),
        (FILE[:100] + b"\x00" * (len(FILE) - 100), "is not JSON"),
        (b"{}", "has no chain"),
        (b"[]", "is not a JSON object"),
        (file(chain=[]), "has an empty chain"),
        (file(chain=...), "has no chain"),
        (file(chain=None), "has no chain"),
        (file(chain=b64(CHAIN[0])), "has no chain"),
        (file(chain={}), "has no chain"),
        (file(chain=[None]), "has a chain that is not base64"),
        (file(chain=[""]), "has a chain that is not base64"),
        (file(chain=[VALUE["chain"][0].rstrip("=") + "!"]), "has a chain that is not base64"),
        (file(chain=[b64(b"no certificate")]), "has a chain whose leaf does not parse: not a DER certificate"),
        (file(chain=[b64(CHAIN[1])]), "has a chain whose leaf does not parse"),
        (file(chain=[b64(CHAIN[0][:-1])]), "has a chain whose leaf does not parse"),
        (file(chain=[b64(CHAIN[0]), b64(CHAIN[1][:-1])]), "has a chain whose certificate 2 does not parse"),
        (file(chain=[b64(CHAIN[0]), b64(CHAIN[1]), b64(b"x")]), "has a chain whose certificate 3 does not parse"),
        (file(nodeId="n-8"), "has a nodeId that is not its certificate's"),
        (file(siteId="hall-3"), "has a siteId that is not its certificate's"),
        (file(trustDomain="example.net"), "has a trustDomain that is not its certificate's"),
        (file(role="site"), "has a role that is not its certificate's"),
        (file(notAfter="2026-09-27T11:55:01Z"), "has a notAfter that is not its certificate's"),
        (file(nodeId=...), "has no nodeId"),
        (file(nodeId=7), "has no nodeId"),
        (file(siteId=""), "has no siteId"),
        (file(trustDomain=None), "has no trustDomain"),
        (file(role=...), "has no role"),
        (file(notAfter=...), "has a notAfter that is not an RFC 3339 UTC time"),
        (file(notAfter="2026-09-27T11:55:00"), "has a notAfter that is not an RFC 3339 UTC time"),
        (file(notAfter=1790510100), "has a notAfter that is not an RFC 3339 UTC time"),
        (file(trustVersion="3"), "has a trustVersion that is not a number"),
        (file(trustVersion=3.0), "has a trustVersion that is not a number"),
        (file(trustVersion=True), "has a trustVersion that is not a number"),
        (file(trustVersion=-1), "has a trustVersion that is not a number"),
        (file(trustVersion=2**64), "has a trustVersion that is not a number"),
        (file(trustRoots="x"), "has no trustRoots"),
        (file(trustRoots=None), "has no trustRoots"),
        (file(trustRoots=["x"]), "has a trustRoots that is not base64"),
        (file(trustBundle=""), "has a trustBundle that is not base64"),
        (file(trustBundle=VALUE["trustBundle"].rstrip("=") + "!"), "has a trustBundle that is not base64"),
        (file(signedTrustBundle=None), "has a signedTrustBundle that is not base64"),
        (file(serverTime=None), "has a serverTime that is not an RFC 3339 UTC time"),
        (file(serverTime="now"), "has a serverTime that is not an RFC 3339 UTC time"),
    ],
)
def test_any_other_file_is_malformed_and_told(data: bytes, why: str) -> None:
    """B04: empty, `{}`, an empty chain; and each field alone."""
    assert decode(FILE) == IDENTITY
    with pytest.raises(MalformedFile, match=why):
        decode(data)


def test_unpadded_base64_is_malformed() -> None:
    padded = next(f"{b64(b'x' * n)}" for n in (1, 2))
    assert decode(file(signedTrustBundle=padded))
    with pytest.raises(MalformedFile, match="is not base64"):
        decode(file(signedTrustBundle=padded.rstrip("=")))


def test_a_file_torn_anywhere_is_malformed() -> None:
    """B04, B08: only the last line end can go, and with it goes nothing."""
    for length in range(len(FILE) - 1):
        with pytest.raises(MalformedFile):
            decode(FILE[:length])
    assert FILE.endswith(b"}\n")
    assert decode(FILE[:-1]) == IDENTITY


def test_a_file_that_ends_in_zero_bytes_anywhere_is_malformed() -> None:
    """What ext4 leaves after a power cut: the right length, and zeros where no data reached the disk."""
    for length in range(0, len(FILE), 7):
        with pytest.raises(MalformedFile):
            decode(FILE[:length] + b"\x00" * (len(FILE) - length))


@pytest.mark.parametrize("change", [0x01, 0x10, 0x80])
def test_any_byte_changed_is_an_identity_or_malformed(change: int) -> None:
    """And never another node's, another key's or one with other dates."""
    for at in range(0, len(FILE), 3):
        changed = bytearray(FILE)
        changed[at] ^= change
        try:
            found = decode(bytes(changed))
        except MalformedFile:
            continue
        assert found.leaf.spiffe_id == IDENTITY.leaf.spiffe_id
        assert decode(encode(found)) == found


@few
@given(st.binary(max_size=80))
def test_any_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedFile):
        decode(data)


@few
@given(
    st.sampled_from(sorted(VALUE)),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), lambda i: st.lists(i, max_size=2)),
)
def test_any_field_of_any_kind_is_an_identity_or_malformed(name: str, value: object) -> None:
    try:
        found = decode(file(**{name: value}))
    except MalformedFile:
        return
    assert decode(encode(found)) == found
