"""docs/protocol.md says what the code does: numbers, fields and bounds are compared."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor

from bcd.cli import fakehw_tpm
from bcd.cli.options import Parser
from bcd.controlplane.adapters.grpc import gateway_service, sessions, status
from bcd.controlplane.app import admin_nodes, admin_trust, issue, join_by_tpm, renew, use
from bcd.controlplane.domain import attestation, challenges, ek_chain, gateway, quota, settings
from bcd.controlplane.domain.certificates import CertificateState
from bcd.domain.model import backoff, joining, tokens
from bcd.domain.model.attestation import MAX_ROUNDS
from bcd.domain.model.claims import MAX_CLAIM, MAX_CLAIMS_OF_A_KIND
from bcd.protocol.files import identity_json, join_pending
from bcd.protocol.pb.bc.identity.v1 import attestation_pb2, gateway_pb2, join_pb2, statements_pb2
from bcd.protocol.pki import (
    certificates,
    csr,
    ek_certificate,
    issued,
    join_response,
    renew_response,
    seal,
    statements,
    trust_bundle,
)
from bcd.protocol.pki.ecdsa import SIGNATURE_BYTES
from bcd.protocol.tpm2 import attest
from bcd.protocol.tpm2.structures import MAX_ATTEST_BYTES, MAX_DIGEST_BYTES
from bcd.wiring import fakehw

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")


def section(title: str, level: int = 2) -> str:
    """What stands under one heading, up to the next of its level or above."""
    found = re.search(
        rf"^{'#' * level} {re.escape(title)}$(.*?)(?=^#{{1,{level}}} |\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
    assert found, title
    return found[1]


def numbered(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]


def minutes(time: timedelta) -> int:
    return int(time.total_seconds()) // 60


def code(module: object) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")  # type: ignore[attr-defined]


CHECKS = [("Checking a join response", join_response, 11), ("Checking a renew response", renew_response, 12)]


@pytest.mark.parametrize(("title", "module", "last"), CHECKS, ids=["join", "renew"])
def test_the_checks_of_a_response_have_the_numbers_of_the_code(title: str, module: object, last: int) -> None:
    # Comments name them in order; "2. …; 3. …; 4. …" stand in one.
    both = code(issued) + code(module)
    comments = [line for line in both.splitlines() if line.strip().startswith("# ")]
    named = [int(n) for line in comments for n in re.findall(r"(?:# |; )(\d+)\. ", line)]
    assert numbered(section(title)) == named == list(range(1, last + 1))


@pytest.mark.parametrize(("title", "module", "last"), CHECKS, ids=["join", "renew"])
def test_each_number_the_code_refuses_with_is_on_the_page(title: str, module: object, last: int) -> None:
    refusals = r"(?:DoesNotVerify|open_bundle|OtherKey|OtherIdentity)\((\d+),"
    raised = {int(n) for n in re.findall(refusals, code(issued) + code(module))}
    # 2 to 4 are the statement's own, told as 1 + its number.
    assert raised | {2, 3, 4} == set(numbered(section(title)))


def test_the_gateways_checks_have_the_numbers_of_the_code() -> None:
    comments = [line for line in code(renew).splitlines() if line.strip().startswith("# ")]
    named = [int(n) for line in comments for n in re.findall(r"# (\d+)\. ", line)]
    assert numbered(section("Renew")) == named == list(range(1, 10))


def test_the_bounds_of_an_endorsement_keys_certificate_are_the_codes() -> None:
    told = section("Endorsement keys", 3)
    assert f"up to {ek_certificate.MAX_HEADER_BYTES} bytes before it" in told
    assert f"over at most {ek_chain.MAX_DEPTH} certificates" in told
    assert ek_chain.EK_PURPOSE in told
    evidence = section("TPM attestation")
    assert f"at most {ek_certificate.MAX_BYTES} bytes" in evidence
    assert f"at most {attestation.MAX_CHAIN_PARTS} parts, {ek_certificate.MAX_CHAIN_BYTES} bytes" in evidence


def test_the_checks_of_a_tpm_have_the_numbers_of_the_code() -> None:
    lines = [line.strip() for module in (attestation, join_by_tpm) for line in code(module).splitlines()]
    comments = [line for line in lines if line.startswith(("# ", '"""1. There'))]
    named = {int(n) for line in comments for n in re.findall(r'(?:# |; |""")(\d)\. ', line)}
    numbers = [*sorted(named), *(int(check) for check, _ in attestation.ANSWER)]
    assert numbered(section("Checking a machine's TPM", 3)) == numbers == list(range(1, 25))
    assert {*attest.Check} == {*range(3, 25)} - {5}


def test_the_states_of_a_certificate_are_on_the_page_and_no_other() -> None:
    told = re.findall(r"^\| `(\w+)` \|", section("States of a certificate"), re.MULTILINE)
    assert told == [state.value for state in CertificateState]


def test_every_final_reason_is_on_the_page_and_no_other() -> None:
    told = set(re.findall(r"reason `([A-Z_]+)`", PAGE))
    assert told == set(re.findall(r'"([A-Z]+_[A-Z]+)"\)', code(status)))


@pytest.mark.parametrize(
    ("title", "message"),
    [
        ("JoinRequest", join_pb2.JoinRequest.DESCRIPTOR),
        ("JoinReply", join_pb2.JoinReply.DESCRIPTOR),
        ("JoinRequest", join_pb2.Claims.DESCRIPTOR),
        ("JoinReply", join_pb2.JoinPending.DESCRIPTOR),
        ("JoinReply", statements_pb2.JoinResponse.DESCRIPTOR),
    ],
    ids=lambda x: getattr(x, "name", x),
)
def test_every_field_of_a_message_is_on_the_page(title: str, message: Descriptor) -> None:
    told = section(title, 3)
    assert [field.name for field in message.fields if not re.search(rf"\b{field.name}\b", told)] == []


@pytest.mark.parametrize(
    ("title", "message"),
    [
        ("Signed statement", statements_pb2.SignedStatement.DESCRIPTOR),
        ("Trust bundle", statements_pb2.TrustBundle.DESCRIPTOR),
        ("Trust bundle", statements_pb2.Approver.DESCRIPTOR),
        ("Checking a renew response", statements_pb2.RenewPop.DESCRIPTOR),
        ("Checking a renew response", statements_pb2.RenewResponse.DESCRIPTOR),
        ("TPM attestation", attestation_pb2.TpmEvidence.DESCRIPTOR),
        ("TPM attestation", attestation_pb2.EndorsementKey.DESCRIPTOR),
        ("TPM attestation", attestation_pb2.TpmChallenge.DESCRIPTOR),
        ("TPM attestation", attestation_pb2.Attestation.DESCRIPTOR),
        ("TPM attestation", join_pb2.JoinChallenge.DESCRIPTOR),
        ("TPM attestation", join_pb2.ChallengeAnswer.DESCRIPTOR),
        ("Renew", attestation_pb2.KeyAttestation.DESCRIPTOR),
        ("Renew", gateway_pb2.RenewRequest.DESCRIPTOR),
        ("Renew", gateway_pb2.RenewReply.DESCRIPTOR),
        ("Session", gateway_pb2.NodeMessage.DESCRIPTOR),
        ("Session", gateway_pb2.GatewayMessage.DESCRIPTOR),
        ("Session", gateway_pb2.Hello.DESCRIPTOR),
        ("Session", gateway_pb2.Welcome.DESCRIPTOR),
        ("Session", gateway_pb2.RevocationNotice.DESCRIPTOR),
        ("Session", gateway_pb2.RenewNow.DESCRIPTOR),
    ],
    ids=lambda x: getattr(x, "name", x),
)
def test_every_field_of_a_payload_is_on_the_page(title: str, message: Descriptor) -> None:
    told = section(title)
    assert [field.name for field in message.fields if not re.search(rf"\b{field.name}\b", told)] == []


@pytest.mark.parametrize(("title", "module"), [("identity.json", identity_json), ("join.pending", join_pending)])
def test_every_field_of_a_file_is_on_the_page_and_no_other(title: str, module: object) -> None:
    rows = re.findall(r"^\| (`.*?`) \|", section(title, 3), re.MULTILINE)
    told = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    written = set(re.findall(r'^\s+"(\w+)": ', code(module), re.MULTILINE))
    written |= set(re.findall(r'^\s+value\["(\w+)"\] = ', code(module), re.MULTILINE))
    assert told == written


def test_the_purposes_are_on_the_page_and_no_other() -> None:
    told = re.findall(r"^\| `([a-z-]+)` \|", section("Signed statement"), re.MULTILINE)
    assert set(told) == {purpose.value for purpose in statements.Purpose}


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Names and encodings", "64 in all"),
        ("TPM attestation", f"| at most {attestation.MAX_EKS}, no area twice | each"),
        ("TPM attestation", f"TPMT_PUBLIC, at most {attestation.MAX_AREA_BYTES} bytes"),
        (
            "TPM attestation",
            f"at most {attestation.MAX_PCRS}, at most {MAX_DIGEST_BYTES} bytes each",
        ),
        ("TPM attestation", f"at most {MAX_ATTEST_BYTES} and exactly {SIGNATURE_BYTES} bytes"),
        (
            "TPM attestation",
            f"however the node's clock stands. {minutes(challenges.LIFETIME)} min",
        ),
        ("TPM attestation", f"answer for {minutes(challenges.REPEATS_FOR)} min"),
        ("TPM attestation", "more than a minute left" if minutes(challenges.REPEATED_UNTIL) == 1 else "another"),
        ("TPM attestation", f"at most {challenges.MAX_ROWS_PER_REQUEST} for one CSR"),
        ("TPM attestation", f"({challenges.MAX_ROWS_PER_SOURCE} for one address)"),
        ("TPM attestation", f"follows at most {MAX_ROUNDS} challenges"),
        ("The leaf", f"1 to {certificates.MAX_CHAIN}"),
        ("The leaf", certificates.PERMANENT_IDENTIFIER.dotted_string),
        ("The leaf", f"OU={certificates.ROLE_PREFIX}<role>"),
        ("The join token and its seal", f"16 to {tokens.MAX_TOKEN_BYTES} characters"),
        ("The join token and its seal", f"at most {seal.MAX_JWK_BYTES} bytes"),
        ("The join token and its seal", f"`alg` is `{seal.ALGORITHM}`"),
        ("The join token and its seal", f"({seal.ENC_BYTES} bytes, uncompressed point)"),
        ("The join token and its seal", f"{seal.TAG_BYTES}-byte tag"),
        ("The join token and its seal", '`"bc-join-seal-v1" ‖ 00 ‖ SHA-256(CSR DER)`'),
        ("Join", f"| `csr` | at most {csr.MAX_CSR_BYTES} bytes |"),
        ("Join", f"subject `CN={csr.SUBJECT}`"),
        ("Join", f"at most {tokens.MAX_TOKEN_BYTES + seal.ENC_BYTES + seal.TAG_BYTES} bytes"),
        ("Join", f"at most {MAX_CLAIM} printable characters each"),
        ("Join", f"{MAX_CLAIMS_OF_A_KIND} each, sorted"),
        ("Join", f"not before {joining.MIN_PENDING_WAIT_S:.0f} s"),
        ("Join", f"not later than {joining.MAX_PENDING_WAIT_S / 3600:.0f} h"),
        ("Trust bundle", f"at most {trust_bundle.MAX_ROOTS} keys"),
        ("What is final and what is retried", f"{backoff.JOIN_ATTEMPTS} failed attempts in a row"),
        ("What is final and what is retried", f"c = min({backoff.JOIN_CEILING_S:.0f}, 2ⁿ) s"),
        ("Session", f"within {gateway_service.HELLO_WITHIN_S:.0f} s"),
        ("Session", f"{sessions.QUIET_AFTER_S:.0f} s after the new one's Welcome"),
        ("Session", " or ".join(f"`{kind}`" for kind in gateway.NODE_KEYS)),
        ("Renew", f"max({quota.RENEWALS}, {quota.RENEWALS} × {quota.WINDOW.total_seconds():.0f} s ÷ leaf lifetime)"),
        ("Renew", "with 1 to 10 s" if gateway_service.PUSHBACK_MS == (1000, 10_000) else "another"),
        ("States of a certificate", f"for less than {settings.RETIRED_GRACE.total_seconds() / 60:.0f} min"),
        ("States of a certificate", f"(at least {settings.MIN_RETIRED_GRACE.total_seconds():.0f} s)"),
        ("States of a certificate", f"text `{use.CLONE_SUSPECTED}`"),
        ("States of a certificate", f"version rises by {admin_trust.MISSED_VERSIONS}"),
        ("Session", f"`{admin_nodes.DELETED}`"),
        ("Session", f"`{issue.JOINED_AGAIN}`"),
        (
            "What is final and what is retried",
            f"c = min({backoff.RENEW_CEILING_S:.0f}, {backoff.RENEW_FIRST_S:.0f}·2ⁿ⁻¹) s",
        ),
        ("Signed statement", '"bc-statement-v1" ‖ 00 ‖ purpose ‖ 00 ‖ payload'),
        ("Signed statement", f"at most {statements.MAX_STATEMENT_BYTES >> 20} MiB"),
    ],
)
def test_a_bound_on_the_page_is_the_codes(title: str, words: str) -> None:
    assert words in section(title)


def test_links_within_the_page_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in headings}
    assert set(re.findall(r"\]\(#([^)]*)\)", PAGE)) <= anchors


def test_every_command_and_option_of_bcd_fakehw_tpm_is_on_the_page_and_no_other() -> None:
    told: dict[str, set[str]] = {}
    name = ""
    rows = r"^\| (`[a-z-]+`)? ?\| (.*?) ?\| [^|]*\|$"
    for first, options in re.findall(rows, section("bcd-fakehw").replace("\\|", "/"), re.MULTILINE):
        name = first.strip("`") or name
        told.setdefault(name, set()).update(re.findall(r"--[a-z-]+", options))
    known: dict[str, set[str]] = {}
    for command in fakehw_tpm.COMMANDS.values():
        parser = Parser("bcd-fakehw", command.name, "")
        command.add_options(parser)
        shown = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
        known[command.name] = shown - {"--help"}
    assert {one: told[one] for one in known} == known
    assert {one for one in told if re.fullmatch("[a-z-]+", one)} - set(known) == set()


def test_every_variable_of_bcd_fakehw_is_on_the_page_and_no_other() -> None:
    told = set(re.findall(r"`(BCD_FAKEHW_\w+)`", section("bcd-fakehw")))
    assert told == set(re.findall(r'"(BCD_FAKEHW_\w+)"', code(fakehw)))
