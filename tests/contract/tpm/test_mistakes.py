"""Two hundred mistakes, each answered by libtpms and by bcd-fakehw's software TPM with the same code."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.adapters.tpm.link import Link
from bcd.protocol.tpm2 import templates
from bcd.protocol.tpm2.commands import CommandCode
from bcd.protocol.tpm2.structures import Handle
from tests.contract.tpm import sent
from tests.contract.tpm.mistakes import CREATIONS, MISTAKES, Mistake
from tests.fakes.software_tpm import Ours, SoftwareTpm, Theirs

STORED = {
    sent.READABLE: "ownerwrite|authwrite|ownerread|authread|no_da",
    sent.WITH_PASSWORD: "ownerwrite|authread|no_da",
    sent.UNWRITTEN: "ownerwrite|authread|no_da",
    sent.OWNERS: "ownerwrite|ownerread|no_da",
    sent.COUNTED: "ownerwrite|authread",
}


@pytest.fixture(scope="module", params=[Ours, Theirs], ids=["tpmsim", "swtpm"])
def link(request: pytest.FixtureRequest) -> Iterator[Link]:
    with tempfile.TemporaryDirectory() as home:
        tpm: SoftwareTpm = request.param(Path(home))
        tpm.persist_ek()
        for index, attributes in STORED.items():
            auth = sent.PASSWORD if index in (sent.WITH_PASSWORD, sent.COUNTED) else b""
            data = None if index == sent.UNWRITTEN else bytes(range(sent.NV_BYTES))
            tpm.store(index, data, attributes, auth)
        made = tpm.link()
        yield made
        made.close()
        tpm.close()


def code(answer: bytes) -> int:
    return int.from_bytes(answer[6:10])


def prepare(link: Link, mistake: Mistake) -> None:
    """A node key, an AK, an endorsement key and a policy session; room for one more where a key is to be made."""
    for start in (0x80000000, sent.SESSION, 0x02000000):
        for handle in range(start, start + 3):
            link.transmit(sent.flush(handle))
    for hierarchy, template in (
        (Handle.OWNER, sent.TEMPLATE),
        (Handle.ENDORSEMENT, templates.AK),
        (Handle.ENDORSEMENT, templates.EK_ECC_P256),
    ):
        assert code(link.transmit(sent.create(template, hierarchy))) == 0
    assert code(link.transmit(sent.start())) == 0
    if mistake in CREATIONS and mistake.name != "a fourth object":
        assert code(link.transmit(sent.flush(sent.EK))) == 0


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.name)
def test_a_mistake_has_the_same_code(mistake: Mistake, link: Link) -> None:
    prepare(link, mistake)
    answer = link.transmit(mistake.command)
    assert answer == bytes.fromhex("80010000000a") + mistake.code.to_bytes(4)


def test_there_are_many_and_several_for_each_command() -> None:
    assert len({one.name for one in MISTAKES}) == len(MISTAKES) >= 190
    each = Counter(int.from_bytes(one.command[6:10]) for one in MISTAKES)
    assert min(each[code] for code in CommandCode) >= 3
