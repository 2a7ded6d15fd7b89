"""What a join makes, as openssl sees it (specification, "What the identity is"; protocol, "Names and encodings")."""

import base64
import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.fakes.outside import (
    chain_in,
    ended,
    instant,
    mode,
    open_folder,
    openssl,
    pin_of,
    public_of_certificate,
    public_of_key,
    text_of,
    tree,
    until,
)
from tests.fakes.plane import Machine, Plane, control_plane

HOUR_S = 3600


def verifies(chain: list[bytes], root: Path, folder: Path) -> bool:
    """Whether openssl gets from the leaf to `root`, as a TLS client's certificate."""
    for name, certificates in (("leaf", chain[:1]), ("issuers", chain[1:])):
        (folder / name).write_bytes(b"".join(openssl("x509", "-inform", "DER", stdin=der) for der in certificates))
    words = ("-x509_strict", "-purpose", "sslclient", "-no-CApath", "-CAfile", str(root))
    try:
        openssl("verify", *words, "-untrusted", str(folder / "issuers"), str(folder / "leaf"))
    except AssertionError:
        return False
    return True


def profile(machine: Machine, node: str, role: str) -> str:
    """The leaf in openssl's words, checked against what every leaf is."""
    leaf, *issuers = chain_in(machine.data)
    text = text_of(leaf)
    assert re.search(rf"^ *Subject: CN *= *{node}, OU *= *bc-role:{role}$", text, re.MULTILINE), text
    assert re.search(r"X509v3 Key Usage: critical\n +Digital Signature\n", text)
    assert re.search(r"X509v3 Basic Constraints: critical\n +CA:FALSE\n", text)
    usage = re.search(r"X509v3 Extended Key Usage: *\n +(.*)\n", text)
    assert usage is not None
    assert set(usage[1].split(", ")) == {"TLS Web Client Authentication", "TLS Web Server Authentication"}
    name = f"URI:spiffe://example.test/site/lab/node/{node}"
    assert re.search(rf"X509v3 Subject Alternative Name: *\n +{re.escape(name)}\n", text), "one URI, not critical"
    assert "Signature Algorithm: ecdsa-with-SHA256" in text
    assert "ASN1 OID: prime256v1" in text
    assert len(issuers) >= 1
    for issuer in issuers:
        assert "CA:TRUE" in text_of(issuer)
    return text


def test_a_node_as_openssl_sees_it(plane: Plane, machine: Machine, tmp_path: Path) -> None:
    """Specification, "What the identity is"; issue 2: leaf, CSR, chain and pins read by `openssl` as documented."""
    before_s = int(time.time())
    done = machine.join(plane.token())
    said = re.fullmatch(
        r"joined as (n-[a-z2-7]{10}) \(site lab, role node\); certificate valid until (\S+Z)\n", done.out
    )
    assert said is not None
    assert mode(machine.data) == "0700"
    assert {name: found[:2] for name, found in tree(machine.data).items()} == {
        "identity.json": ("0600", 0),
        "node.key": ("0600", 0),
    }
    key = (machine.data / "node.key").read_bytes()
    assert key.startswith(b"-----BEGIN PRIVATE KEY-----\n"), "PKCS#8"
    assert b"P-256" in openssl("pkey", "-noout", "-text", stdin=key)
    leaf, *_ = chain = chain_in(machine.data)
    assert public_of_key(key) == public_of_certificate(leaf)
    profile(machine, said[1], "node")
    start_s, end_s = instant(leaf, "-startdate"), instant(leaf, "-enddate")
    assert end_s - start_s == 24 * HOUR_S, "notAfter - notBefore, at most 24 h in all"
    assert before_s - 1 <= start_s + 300 <= time.time() + 1, "backdated by 5 minutes"
    assert datetime.fromtimestamp(end_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") == said[2]
    root = plane.directory / "node-root-ca.pem"
    assert verifies(chain, root, tmp_path)
    assert not verifies(chain, plane.directory / "serving-ca.pem", tmp_path), "the two CAs are unrelated"
    assert root.read_bytes() not in (openssl("x509", "-inform", "DER", stdin=der) for der in chain), "without the root"
    value = json.loads((machine.data / "identity.json").read_text())
    told = {name: value[name] for name in ("nodeId", "siteId", "trustDomain", "role", "notAfter")}
    assert told == {
        "nodeId": said[1],
        "siteId": "lab",
        "trustDomain": "example.test",
        "role": "node",
        "notAfter": said[2],
    }


def test_the_request_as_openssl_sees_it(plane: Plane, machine: Machine) -> None:
    """Protocol: PKCS#10, the key's own signature, fixed subject, no attributes. It is what is certified afterwards."""
    token = plane.token()
    with plane.held():
        process = machine.start_join(token)
        until((machine.data / "join.pending").exists, "the request to be on disk", process)
        value = json.loads((machine.data / "join.pending").read_text())
    csr = base64.b64decode(value["csr"])
    text = openssl("req", "-inform", "DER", "-noout", "-verify", "-text", stdin=csr).decode()
    assert "ASN1 OID: prime256v1" in text
    assert "Signature Algorithm: ecdsa-with-SHA256" in text
    assert "(none)" in text.split("Attributes:")[1] or "Requested Extensions" not in text
    public = openssl("req", "-inform", "DER", "-noout", "-pubkey", stdin=csr)
    assert public == public_of_key(value["key"].encode())
    assert ended(process)[0] == 0
    assert public == public_of_certificate(chain_in(machine.data)[0])


def test_the_pins_are_what_openssl_computes(plane: Plane) -> None:
    """Specification, "The pins"; protocol: `openssl pkey -pubin -outform DER | openssl dgst -sha256`."""
    config = plane.config.read_text()
    keys = {
        "serving_ca_spki_pin": public_of_certificate((plane.config.parent / "serving-ca.pem").read_bytes(), "PEM"),
        "join_encryption_key_pin": public_of_key((plane.directory / "join-encryption.key").read_bytes()),
        "join_signing_key_pin": public_of_key((plane.directory / "join-signing.key").read_bytes()),
    }
    for name, public in keys.items():
        assert f'{name} = "{pin_of(public)}"' in config
    jwk = json.loads((plane.config.parent / "join-encryption.jwk").read_text())
    point = b"".join(base64.urlsafe_b64decode(jwk[name] + "=") for name in ("x", "y"))
    der = openssl("pkey", "-pubin", "-outform", "DER", stdin=keys["join_encryption_key_pin"])
    assert der.endswith(b"\x04" + point), "the JWK is that key"


def test_a_site_agent_a_ramdisk_and_a_provisioned_node(plane: Plane, tmp_path: Path) -> None:
    """Specification, "Joining": `--role site` with a site token; `--node-id`; a ramdisk's certificate at most 2 h."""
    for role, hours in (("site", 24), ("ramdisk", 2)):
        machine = plane.machine()
        done = machine.join(plane.token("--role", role), "--role", role)
        node = re.match(rf"joined as (n-[a-z2-7]{{10}}) \(site lab, role {role}\); ", done.out)
        assert node is not None, done.err
        profile(machine, node[1], role)
        leaf, *_ = chain = chain_in(machine.data)
        assert instant(leaf, "-enddate") - instant(leaf, "-startdate") == hours * HOUR_S
        assert verifies(chain, plane.directory / "node-root-ca.pem", tmp_path)
    machine = plane.machine()
    token = plane.token("--node-id", "rack-7.slot_3")
    assert machine.join(token, "--node-id", "rack-7.slot_4").status == 77, "the token decides"
    done = machine.join(token, "--node-id", "rack-7.slot_3")
    assert done.out.startswith("joined as rack-7.slot_3 (site lab, role node); "), done.err
    profile(machine, "rack-7.slot_3", "node")


@pytest.mark.parametrize(("given", "seconds", "backdated"), [("20s", 20, 2), ("50m", 3000, 300), ("24h", 86400, 300)])
def test_leaves_live_as_long_as_init_was_told(given: str, seconds: int, backdated: int) -> None:
    """Decision 26, protocol "Lifetime": notBefore = issue - min(5 min, 10 % of it). A ramdisk's never over 2 h."""
    with open_folder() as home, control_plane(home, "--leaf-lifetime", given) as plane:
        for role, want in (("node", seconds), ("ramdisk", min(seconds, 2 * HOUR_S))):
            machine = plane.machine()
            now_s = time.time()
            assert machine.join(plane.token("--role", role), "--role", role).status == 0
            leaf = chain_in(machine.data)[0]
            assert instant(leaf, "-enddate") - instant(leaf, "-startdate") == want
            issued_s = instant(leaf, "-startdate") + min(backdated, want // 10)
            assert now_s - 1 <= issued_s <= time.time() + 1
        assert ("demonstration only" in plane.log.read_text()) == (seconds < HOUR_S)
