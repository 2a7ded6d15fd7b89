"""Renewing a certificate that names an attestation key: certified by that key in its TPM, or not at all."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from bcd.controlplane.domain.gateway import Declined, RenewAnswer, Renewed, Welcomed
from bcd.domain.model.attestation import Attestation, KeyAttestation
from bcd.domain.model.identity import Leaf
from bcd.domain.model.pins import Pin, Pins
from bcd.protocol.pki import csr, renew_response
from bcd.protocol.pki.renew_pop import make_renew_pop
from bcd.protocol.tpm2.wire import encode
from tests.fakes import swtpm
from tests.fakes.controlplane.attested import Attested
from tests.fakes.controlplane.control_plane import MemoryControlPlane
from tests.fakes.controlplane.member import Member
from tests.fakes.swtpm import SwTpm
from tests.fakes.tpm_machine import AK, TpmMachine


class Node:
    """A machine that joined by its TPM and holds the leaf for its TPM's node key."""

    def __init__(self, plane: MemoryControlPlane, tpm: TpmMachine) -> None:
        self.plane, self.tpm = plane, tpm
        machine = Attested(tpm)
        machine.allow(plane)
        self.leaf: Leaf = machine.joined(plane).leaf

    def attested(self, tpm: TpmMachine, request: bytes) -> KeyAttestation:
        """By the TPM of `tpm`, of its node key, for `request`."""
        return KeyAttestation(
            encode(tpm.public(AK)), encode(tpm.public(tpm.node_key)), tpm.certify(sha256(request).digest())
        )

    def ask(self, request: bytes, key_attestation: KeyAttestation | None) -> RenewAnswer:
        proof = make_renew_pop(
            request,
            self.leaf.der,
            self.plane.clock.now(),
            self.leaf.spki,
            lambda message: self.tpm.sign(sha256(message).digest()),
        )
        pop = proof.SerializeToString(deterministic=True)
        return self.plane.renew(self.leaf.der, request, pop, key_attestation=key_attestation)

    def renewed(self, tpm: TpmMachine) -> Leaf:
        """By a key of `tpm`, with the node's own checks of the answer."""
        request = tpm.csr()
        answer = self.ask(request, self.attested(tpm, request))
        assert isinstance(answer, Renewed), answer
        pins = Pins((Pin(self.plane.signing_pin),))
        expected = renew_response.Expected(request, csr.key_of(request), self.leaf, pins)
        return renew_response.open_renew_response(answer.signed, expected).leaf


@pytest.fixture(scope="module")
def tpms() -> Iterator[tuple[SwTpm, SwTpm]]:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        one, two = (stack.enter_context(swtpm.running(Path(folder) / name)) for name in "ab")
        yield one, two


@pytest.fixture
def machines(tpms: tuple[SwTpm, SwTpm]) -> Iterator[tuple[TpmMachine, TpmMachine]]:
    clients = [tpm.client() for tpm in tpms]
    yield TpmMachine(clients[0]), TpmMachine(clients[1])
    for client in clients:
        client.close()


@pytest.fixture
def plane() -> MemoryControlPlane:
    return MemoryControlPlane()


@pytest.fixture
def node(plane: MemoryControlPlane, machines: tuple[TpmMachine, TpmMachine]) -> Node:
    return Node(plane, machines[0])


def test_a_key_that_the_named_attestation_key_certifies_gets_a_leaf_that_names_it_too(node: Node) -> None:
    leaf = node.renewed(node.tpm.again())
    assert leaf.ak_name == node.leaf.ak_name
    assert leaf.spki != node.leaf.spki
    assert node.plane.audit()[-1][1]["nodeKey"] == "tpm"
    # And so on: the new one is renewed in the same way.
    second = Node.__new__(Node)
    second.plane, second.tpm, second.leaf = node.plane, node.tpm.again(), leaf
    assert second.renewed(second.tpm.again()).ak_name == node.leaf.ak_name


def test_a_backup_that_knows_less_takes_the_leafs_word_and_asks_for_the_same_proof(
    plane: MemoryControlPlane, machines: tuple[TpmMachine, TpmMachine]
) -> None:
    backup = plane.snapshot()
    node = Node(plane, machines[0])
    plane.restore(backup)
    plane.clock.pass_(minutes=10)
    plane.restored()
    assert isinstance(plane.hello(node.leaf.der), Welcomed)
    assert [row.node_key for row in plane.nodes()] == ["tpm"]
    assert isinstance(node.ask(csr.make_csr(ec.generate_private_key(ec.SECP256R1())), None), Declined)
    assert node.renewed(node.tpm.again()).ak_name == node.leaf.ak_name


def test_a_node_that_was_adopted_without_its_endorsement_key_is_denied_by_it_all_the_same(
    plane: MemoryControlPlane, machines: tuple[TpmMachine, TpmMachine]
) -> None:
    """Its leaf names an attestation key, and an older join proved whose TPM that is in."""
    older = Node(plane, machines[0])
    plane.delete(older.leaf.spiffe_id.node)
    backup = plane.snapshot()
    node = Node(plane, machines[0].again())
    plane.restore(backup)
    plane.clock.pass_(minutes=10)
    plane.restored()
    assert isinstance(plane.hello(node.leaf.der), Welcomed)
    assert [row.ek for row in plane.nodes()] == [""]
    following = node.tpm.again()
    request = following.csr()
    proof = node.attested(following, request)
    Attested(machines[0]).deny(plane)
    assert node.ask(request, proof) == Declined("the endorsement key of this node's TPM is denied")
    Attested(machines[0]).allow(plane)
    assert isinstance(node.ask(request, proof), Renewed)


def test_the_same_request_gets_the_same_answer(node: Node) -> None:
    following = node.tpm.again()
    request = following.csr()
    proof = node.attested(following, request)
    first = node.ask(request, proof)
    assert isinstance(first, Renewed)
    assert node.ask(request, proof) == first


def test_a_renewal_without_the_proof_is_declined_and_the_certificate_lives_on(node: Node) -> None:
    request = csr.make_csr(ec.generate_private_key(ec.SECP256R1()))
    answer = node.ask(request, None)
    assert isinstance(answer, Declined) and "no key_attestation" in answer.why
    assert node.renewed(node.tpm.again()).ak_name == node.leaf.ak_name


def changed(node: Node, other: TpmMachine, request: bytes) -> dict[str, tuple[KeyAttestation, str]]:
    """Proofs for `request` of which one thing is wrong, and the words that say so."""
    following = node.tpm.again()
    right = node.attested(following, request)
    certified = right.certification
    theirs = other.again()
    return {
        "another TPM": (
            KeyAttestation(encode(other.public(AK)), right.key_public, theirs.certify(sha256(request).digest())),
            "names the attestation key",
        ),
        "another TPM's word under the right name": (
            replace(right, certification=theirs.certify(sha256(request).digest())),
            "certification-signature",
        ),
        "a quote instead": (
            replace(right, certification=following.quote(sha256(request).digest(), ())),
            "certification-",
        ),
        "for another request": (replace(right, certification=following.certify(bytes(32))), "certification-data"),
        "of another key": (
            replace(right, certification=following.again().certify(sha256(request).digest())),
            "certified-name",
        ),
        "of the attestation key": (
            replace(
                right,
                key_public=encode(following.public(AK)),
                certification=following.certify(sha256(request).digest(), key=AK),
            ),
            "node-key-mismatch",
        ),
        "another key of the TPM, certified": (
            replace(
                right,
                key_public=encode(following.public(following.again().node_key)),
                certification=following.again().certify(sha256(request).digest()),
            ),
            "node-key-mismatch",
        ),
        "a changed attest": (
            replace(
                right,
                certification=Attestation(
                    certified.attest[:-1] + bytes([certified.attest[-1] ^ 1]), certified.signature
                ),
            ),
            "certification-signature",
        ),
        "a high signature byte": (
            replace(right, certification=Attestation(certified.attest, certified.signature + b"\0")),
            "certification-signature",
        ),
        "an area with a byte behind it": (replace(right, key_public=right.key_public + b"\0"), "left over"),
        "an attestation key's area with a byte behind it": (
            replace(right, ak_public=right.ak_public + b"\0"),
            "left over",
        ),
        "a key of another name algorithm": (
            # nameAlg SM3-256: no name that anybody here knows.
            replace(right, key_public=right.key_public[:2] + b"\x00\x12" + right.key_public[4:]),
            "an area",
        ),
        "no area": (replace(right, key_public=b""), "an area"),
        "a large area": (replace(right, key_public=bytes(1025)), "larger"),
        "a large attest": (replace(right, certification=Attestation(bytes(1025), certified.signature)), "larger"),
    }


CHANGES = (
    "another TPM",
    "another TPM's word under the right name",
    "a quote instead",
    "for another request",
    "of another key",
    "of the attestation key",
    "another key of the TPM, certified",
    "a changed attest",
    "a high signature byte",
    "an area with a byte behind it",
    "an attestation key's area with a byte behind it",
    "a key of another name algorithm",
    "no area",
    "a large area",
    "a large attest",
)


@pytest.mark.parametrize("name", CHANGES)
def test_a_proof_of_which_one_thing_is_wrong_is_declined(
    node: Node, machines: tuple[TpmMachine, TpmMachine], name: str
) -> None:
    request = node.tpm.again().csr()
    made = changed(node, machines[1], request)
    assert tuple(made) == CHANGES
    key_attestation, words = made[name]
    answer = node.ask(request, key_attestation)
    assert isinstance(answer, Declined)
    assert words in answer.why
    assert len(node.plane.certificates(node.leaf.spiffe_id.node)) == 1


def test_a_leaf_without_an_attestation_key_renews_as_ever_and_gets_none(
    plane: MemoryControlPlane, machines: tuple[TpmMachine, TpmMachine]
) -> None:
    member = Member.joined(plane)
    following = machines[0]
    asked = member.ask()
    proof = KeyAttestation(
        encode(following.public(AK)),
        encode(following.public(following.node_key)),
        following.certify(sha256(asked.csr).digest()),
    )
    answer = plane.renew(member.leaf, asked.csr, asked.pop, key_attestation=proof)
    assert member.take(asked, answer).parsed.ak_name is None
