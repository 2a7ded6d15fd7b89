"""Each answer as text."""

import json

from bcd.controlplane.cli.render import facts, table, time
from bcd.controlplane.domain.admin import (
    ApprovalView,
    ClaimsView,
    EventView,
    NewToken,
    NodeDetail,
    NodeView,
    RefusalView,
    TokenView,
)


def new_token(token: NewToken) -> None:
    print(token.token)


def tokens(rows: tuple[TokenView, ...]) -> None:
    table(
        ("ID", "STATE", "USED", "EXPIRES", "SITE", "ROLE", "NODE", "LETS"),
        [
            (t.id, t.state, f"{t.used}/{t.uses}", time(t.expires), t.site, t.role, t.node_id or "", _lets(t))
            for t in rows
        ],
        "no tokens",
    )


def _lets(token: TokenView) -> str:
    return ", ".join(
        word for word, holds in (("reclaim", token.allow_reclaim), ("after approval", token.require_approval)) if holds
    )


def revoked(token: TokenView) -> None:
    print(f"token {token.id} revoked")


def nodes(rows: tuple[NodeView, ...]) -> None:
    table(
        ("NODE", "SITE", "ROLE", "KEY", "GEN", "SESSION", "LAST SEEN", "CERTIFICATE", "UNTIL", "HOSTNAME"),
        [
            (
                n.id,
                n.site,
                n.role,
                n.node_key,
                str(n.generation),
                _session(n),
                time(n.last_seen),
                n.certificate,
                time(n.not_after),
                n.hostname,
            )
            for n in rows
        ],
        "no nodes",
    )


def _session(node: NodeView) -> str:
    return "up" if node.session else ""


def node(detail: NodeDetail) -> None:
    n = detail.node
    facts(
        [
            ("node", n.id),
            ("site", n.site),
            ("role", n.role),
            ("SPIFFE ID", n.spiffe_id),
            ("generation", str(n.generation)),
            ("first joined", time(n.created)),
            ("last joined", time(n.joined)),
            ("with token", n.token_id),
            ("node key", n.node_key),
            ("newest key pin", detail.certificates[-1].key_pin if detail.certificates else ""),
            ("endorsement key", n.ek),
            ("attestation key", n.ak_name),
            ("session", _session(n)),
            ("last seen", time(n.last_seen) if n.last_seen else ""),
            ("certificate until", time(n.not_after) if n.not_after else ""),
            ("renewal asked", time(n.renewal_asked) if n.renewal_asked else ""),
            ("bcd", n.daemon_version),
            *_claims(detail.claims),
        ]
    )
    print()
    table(
        ("SERIAL", "STATE", "SINCE", "GEN", "UNTIL", "FIRST USED", "BY", "REASON"),
        [
            (
                c.serial,
                c.state,
                time(c.state_since),
                str(c.generation),
                time(c.not_after),
                time(c.first_used),
                c.first_used_from,
                c.reason,
            )
            for c in detail.certificates
        ],
        "no certificates",
    )


def refusals(rows: tuple[RefusalView, ...]) -> None:
    table(
        ("ID", "AT", "REASON", "FROM", "TOKEN"),
        [(r.id, time(r.at), r.reason, r.source, r.token_id) for r in rows],
        "no refusals",
    )


def refusal(r: RefusalView) -> None:
    facts(
        [
            ("refusal", r.id),
            ("at", time(r.at)),
            ("reason", r.reason),
            ("detail", r.detail),
            ("way back", r.way_back),
            ("from", r.source),
            ("attestor", r.attestor),
            ("token", r.token_id),
            *_claims(r.claims),
        ]
    )


def approvals(rows: tuple[ApprovalView, ...]) -> None:
    """A block each: what a person has to compare does not fit a line."""
    if not rows:
        print("no approvals")
    for number, row in enumerate(rows):
        if number:
            print()
        approval(row)


def approval(a: ApprovalView) -> None:
    facts(
        [
            ("approval", a.id),
            ("state", a.state),
            ("asked", time(a.asked)),
            ("decided", time(a.decided) if a.decided else ""),
            ("token", a.token_id),
            ("site", a.site),
            ("role", a.role),
            ("node", f"{a.node_id} (it comes back)" if a.reclaims else a.node_id or "a new one"),
            ("key pin", a.key_pin),
            ("endorsement key", a.ek),
            ("shown beside", f"{a.beside_denied}, which is denied" if a.beside_denied else ""),
            ("from", a.source),
            ("bcd", a.daemon_version),
            *_claims(a.claims),
        ]
    )


def events(rows: tuple[EventView, ...]) -> None:
    for row in rows:
        event(row)


def event(e: EventView) -> None:
    words = " ".join(f"{name}={_word(value)}" for name, value in e.detail.items() if value != "")
    print(f"{e.seq:>6}  {time(e.at)}  {e.kind:<16} {e.actor}  {words}".rstrip(), flush=True)


def _word(value: str | int | bool) -> str:
    text = json.dumps(value)
    bare = text.strip('"')
    return bare if isinstance(value, str) and " " not in value and text == f'"{value}"' else text


def _claims(c: ClaimsView) -> list[tuple[str, str]]:
    """As the machine says: nothing of it is proof."""
    return [
        ("claims hostname", c.hostname),
        ("claims product UUID", c.product_uuid),
        ("claims product serial", c.product_serial),
        ("claims board serial", c.board_serial),
        ("claims chassis serial", c.chassis_serial),
        ("claims MACs", ", ".join(c.macs)),
        ("claims GPUs", ", ".join(c.gpu_uuids)),
        ("claims boot id", c.boot_id),
    ]
