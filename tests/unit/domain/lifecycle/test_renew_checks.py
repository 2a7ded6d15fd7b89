"""An answer to a renewal that does not verify leaves the old pair."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bcd.domain.model.names import NodeId, Role, SiteId, TrustDomain
from bcd.ports.gateway import Renewed
from bcd.protocol.pki import statements
from tests.fakes import pki
from tests.fakes.gateway import renewed
from tests.fakes.memory_renewal import Case

OTHER_PARTS = {
    "another key": ({"key": pki.OTHER_KEY.public_key()}, "renewal: the certificate does not certify the new key"),
    "another node": (
        {"spiffe_id": replace(pki.SPIFFE_ID, node=NodeId("n-8"))},
        "renewal: the certificate is for hall-2/n-8 (node), not hall-2/n-7 (node)",
    ),
    "another site": (
        {"spiffe_id": replace(pki.SPIFFE_ID, site=SiteId("hall-3"))},
        "renewal: the certificate is for hall-3/n-7 (node), not hall-2/n-7 (node)",
    ),
    "another trust domain": (
        {"spiffe_id": replace(pki.SPIFFE_ID, trust_domain=TrustDomain("elsewhere.org"))},
        "renewal: the certificate is for hall-2/n-7 (node) of elsewhere.org, not hall-2/n-7 (node) of example.org",
    ),
    "another role": (
        {"role": Role.SITE},
        "renewal: the certificate is for hall-2/n-7 (site), not hall-2/n-7 (node)",
    ),
    "another signing key": ({"by": pki.OTHER_KEY}, "renewal: the answer is signed by sha256:"),
    "another request": ({"answers": pki.CSR}, "renewal: the answer does not verify (check 6: "),
    "a join response": (
        {"purpose": statements.Purpose.JOIN_RESPONSE},
        "renewal: the answer does not verify (check 4: ",
    ),
    "a leaf that ends no later": (
        {"not_after": pki.NOT_AFTER},
        "renewal: the answer does not verify (check 10: ",
    ),
    "a bundle by another key": (
        {"bundle": pki.trust_bundle(by=pki.OTHER_KEY)},
        "renewal: the answer does not verify (check 12: ",
    ),
    "not in date": (
        {"not_before": pki.NOW + timedelta(seconds=1)},
        "renewal: the answer does not verify (check 7: ",
    ),
}


@pytest.mark.parametrize(("departures", "why"), OTHER_PARTS.values(), ids=OTHER_PARTS)
def test_an_answer_that_does_not_verify_leaves_the_pair_and_the_next_asks_with_another_key(
    departures: dict[str, object], why: str
) -> None:
    case = Case().answers(lambda _, question: renewed(question.csr, **departures))  # type: ignore[arg-type]
    outcome = case.refuses()
    assert outcome.ended.why.startswith(why)
    assert outcome.next_key is None
    assert (outcome.ended.refused, outcome.ended.never, outcome.ended.pushback_s) == (False, False, None)


@pytest.mark.parametrize("signed", [b"", b"\xff", b"\x0a\x00" * 3])
def test_an_answer_that_is_no_statement_leaves_the_pair(signed: bytes) -> None:
    assert Case().answers_with(Renewed(signed, pki.NOW)).refuses().next_key is None
