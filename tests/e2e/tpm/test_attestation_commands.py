"""How many commands a join by TPM and a certified renewal send: no more than they need."""

from collections import Counter
from pathlib import Path

import pytest

from bcd.protocol.tpm2.commands import CommandCode
from tests.e2e.tpm.by_tpm import joined_by_tpm, renewed, up
from tests.fakes import swtpm
from tests.fakes.fitted_machine import OnSwTpm, on_swtpm
from tests.fakes.plane import Plane

pytestmark = pytest.mark.usefixtures("ended")


@pytest.fixture
def one(one: OnSwTpm) -> OnSwTpm:
    """A node that joined by its TPM."""
    return joined_by_tpm(one)


# The request is signed once, the renewal's proof and the next handshake once each. Of a join the node key, the RSA
# key, the ECC key and the attestation key are derived once each, and flushed; NV is looked at where a certificate of
# each, and a chain, may be.
JOIN = Counter({
    "NV_READ_PUBLIC": 3, "PCR_READ": 2, "CREATE_PRIMARY": 4, "START_AUTH_SESSION": 1, "POLICY_SECRET": 1,
    "ACTIVATE_CREDENTIAL": 1, "QUOTE": 1, "CERTIFY": 1, "SIGN": 1, "FLUSH_CONTEXT": 4,
})  # fmt: skip
# With a persistent RSA key, and its certificate, of less than 1,024 bytes, at once.
MANUFACTURED = JOIN + Counter({"NV_READ": 1, "READ_PUBLIC": 1, "CREATE_PRIMARY": -1, "FLUSH_CONTEXT": -1})
RENEWAL = Counter({"CREATE_PRIMARY": 2, "CERTIFY": 1, "SIGN": 3, "FLUSH_CONTEXT": 1})


def show(capsys: pytest.CaptureFixture[str], what: str, one: OnSwTpm) -> "Counter[str]":
    known = {code.value: code.name for code in CommandCode}
    with capsys.disabled():
        print(f"\n{what}: {len(one.proxy.codes)} commands: {' '.join(known[code] for code in one.proxy.codes)}")
    return one.proxy.counts


def test_a_join_asks_the_tpm_for_no_more_than_it_needs(plane: Plane, capsys: pytest.CaptureFixture[str]) -> None:
    with on_swtpm(plane) as one:
        one.fitted.allowed()
        one.proxy.forget()
        one.fitted.joined()
        assert show(capsys, "a join by TPM without certificates", one) <= JOIN


def test_a_join_with_a_persistent_key_derives_one_less(
    plane: Plane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swtpm.manufacture(tmp_path / "made", "--create-ek-cert")
    with on_swtpm(plane, tmp_path / "made") as one:
        kept = one.tpm.kept()
        one.fitted.allowed()
        one.proxy.forget()
        one.fitted.joined()
        assert show(capsys, "a join by TPM with a persistent key and its certificate", one) <= MANUFACTURED
        assert one.tpm.kept() == kept


def test_a_renewal_asks_the_tpm_for_no_more_than_it_needs(one: OnSwTpm, capsys: pytest.CaptureFixture[str]) -> None:
    with up(one) as running:
        one.proxy.forget()
        renewed(one, running)
        assert show(capsys, "a certified renewal and the session after it", one) <= RENEWAL
