"""A leaf that names an attestation key, as OpenSSL takes it."""

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from bcd.controlplane.adapters.pki.leaves import IssuingCa
from bcd.controlplane.domain.certificates import LeafToIssue
from bcd.domain.model.names import NodeId, Role, SiteId, SpiffeId, TrustDomain
from bcd.protocol.pki import certificates, ecdsa
from tests.fakes.controlplane.control_plane import MemoryControlPlane, SetClock
from tests.fakes.controlplane.machine import new_key

AK_NAME = b"\x00\x0b" + bytes(range(32))


def openssl(where: Path, *words: str) -> str:
    done = subprocess.run(["openssl", *words], cwd=where, check=True, timeout=20, capture_output=True, text=True)
    return done.stdout


def test_openssl_verifies_it_and_finds_the_name(tmp_path: Path) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    plane = MemoryControlPlane(clock=SetClock(now))
    spiffe_id = SpiffeId(TrustDomain("example.test"), SiteId("lab"), NodeId("n-1"))
    spki = ecdsa.spki_of(new_key().public_key())
    asked = LeafToIssue(spiffe_id, Role.NODE, spki, 77, now, now + timedelta(hours=1), AK_NAME)
    chain = IssuingCa(plane.issuing).issue(asked)
    assert certificates.parse_leaf(chain[0]).ak_name == AK_NAME
    for name, der in (("leaf", chain[0]), ("issuing", chain[1]), ("root", plane.root.der)):
        (tmp_path / f"{name}.pem").write_bytes(certificates.load(der).public_bytes(Encoding.PEM))
    strict = ("-x509_strict", "-purpose", "sslclient", "-CAfile", "root.pem", "-untrusted", "issuing.pem")
    assert openssl(tmp_path, "verify", *strict, "leaf.pem") == "leaf.pem: OK\n"
    listed = openssl(tmp_path, "asn1parse", "-in", "leaf.pem")
    [value] = re.findall(r"X509v3 Subject Alternative Name\n.*\[HEX DUMP\]:([0-9A-F]+)\n", listed)
    (tmp_path / "names").write_bytes(bytes.fromhex(value))
    names = openssl(tmp_path, "asn1parse", "-inform", "DER", "-in", "names")
    assert f"UTF8STRING        :urn:bc:tpm-ak:{AK_NAME.hex()}\n" in names
    assert re.search(r"OBJECT +:Permanent Identifier\n", names)
