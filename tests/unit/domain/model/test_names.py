"""Names of nodes, sites, trust domains and roles, and the SPIFFE ID they make up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.domain.model import names
from tests.fakes.properties import few

SEGMENT = st.from_regex(r"\A[a-zA-Z0-9._-]{1,63}\Z").filter(lambda text: text not in {".", ".."})
DOMAIN = st.from_regex(r"\A[a-z0-9._-]{1,255}\Z")


@pytest.mark.parametrize("text", ["a", "n-0123456789", "A.b_c-d", "...", "x" * 63, "-", "0"])
def test_a_segment_is_a_node_id_and_a_site_id(text: str) -> None:
    assert names.node_id(text) == text
    assert names.site_id(text) == text


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "x" * 64, "a/b", "a b", "a\n", "\na", "ä", "a%20", "a:b", "a\x00", "n٣", "a\u200b", "a?b", "a#b"],
)
def test_anything_else_is_neither(text: str) -> None:
    with pytest.raises(names.MalformedName, match="not a node id"):
        names.node_id(text)
    with pytest.raises(names.MalformedName, match="not a site id"):
        names.site_id(text)


@pytest.mark.parametrize("text", ["example.org", "a", "a_b-c.d", "0", "x" * 255])
def test_a_trust_domain_is_lower_case(text: str) -> None:
    assert names.trust_domain(text) == text


@pytest.mark.parametrize("text", ["", "Example.org", "example.org\n", "x" * 256, "a b", "a/b", "a:443", "é.org", "a@b"])
def test_anything_else_is_no_trust_domain(text: str) -> None:
    with pytest.raises(names.MalformedName, match="not a trust domain"):
        names.trust_domain(text)


def test_there_are_three_roles() -> None:
    assert [names.role(text) for text in ("node", "site", "ramdisk")] == list(names.Role)


@pytest.mark.parametrize("text", ["", "Node", "node ", "root", "bc-role:node"])
def test_there_is_no_other_role(text: str) -> None:
    with pytest.raises(names.MalformedName, match="not a role"):
        names.role(text)


@few
@given(DOMAIN, SEGMENT, SEGMENT)
def test_a_spiffe_id_reads_back_as_itself(domain: str, site: str, node: str) -> None:
    spiffe_id = names.SpiffeId(names.trust_domain(domain), names.site_id(site), names.node_id(node))
    assert str(spiffe_id) == f"spiffe://{domain}/site/{site}/node/{node}"
    assert names.SpiffeId.parse(str(spiffe_id)) == spiffe_id


@pytest.mark.parametrize(
    "uri",
    [
        "spiffe://example.org/site/s/node/n/",
        "spiffe://example.org/site/s/node/",
        "spiffe://example.org/site//node/n",
        "spiffe:///site/s/node/n",
        "spiffe://example.org//site/s/node/n",
        "spiffe://example.org/site/s/node/n/more",
        "spiffe://example.org/site/s/nodes/n",
        "spiffe://example.org/sites/s/node/n",
        "spiffe://example.org/node/n/site/s",
        "spiffe://example.org/site/s/node/n?x=1",
        "spiffe://example.org/site/s/node/n#x",
        "spiffe://example.org/site/s/node/..",
        "spiffe://example.org/site/s/node/n%2e",
        "spiffe://example.org:443/site/s/node/n",
        "spiffe://user@example.org/site/s/node/n",
        "spiffe://EXAMPLE.org/site/s/node/n",
        "SPIFFE://example.org/site/s/node/n",
        "https://example.org/site/s/node/n",
        "spiffe:/example.org/site/s/node/n",
        " spiffe://example.org/site/s/node/n",
        "spiffe://example.org/site/s/node/n\n",
        "",
    ],
)
def test_one_id_has_one_spelling(uri: str) -> None:
    assert names.SpiffeId.parse("spiffe://example.org/site/s/node/n")
    with pytest.raises(names.MalformedName):
        names.SpiffeId.parse(uri)


@few
@given(st.text())
def test_any_text_is_an_id_or_malformed(text: str) -> None:
    try:
        assert str(names.SpiffeId.parse(text)) == text
    except names.MalformedName as error:
        assert len(str(error)) < 1000


def test_an_endless_name_does_not_fill_the_log() -> None:
    for read in (names.node_id, names.site_id, names.trust_domain, names.role, names.SpiffeId.parse):
        with pytest.raises(names.MalformedName) as refused:
            read("X" * 100_000)
        assert len(str(refused.value)) < 400
