"""What the commands about endorsement keys print."""

from bcd.controlplane.cli.render import table, time
from bcd.controlplane.domain.admin_eks import (
    EkRemovedView,
    EkRootRemovedView,
    EkRootsImportView,
    EkRootView,
    EksImported,
    EkView,
)


def imported_roots(view: EkRootsImportView) -> None:
    print(f"{view.added + view.known} manufacturer CAs: {view.added} added, {view.known} known")
    for one in view.skipped:
        print(f"skipped {one.file}: {one.why}")


def roots(rows: tuple[EkRootView, ...]) -> None:
    table(
        ("FINGERPRINT", "ADMITS TO", "AS", "UNTIL", "SUBJECT"),
        [(r.fingerprint, r.admits_site or "", r.admits_role or "", time(r.not_after), r.subject) for r in rows],
        "no manufacturer CAs",
    )


def admitting(root: EkRootView) -> None:
    print(f"every machine whose TPM {root.subject} vouches for may join site {root.admits_site} as {root.admits_role}")
    print(f"nobody is asked; bcd-controlplane ek-roots withdraw {root.fingerprint} ends it")


def withdrawn(root: EkRootView) -> None:
    print(f"nobody joins any more because {root.subject} vouches for the TPM; nodes that joined so stay")


def removed_root(view: EkRootRemovedView) -> None:
    print(f"{view.subject} removed; nodes it vouched for stay")


def keys(rows: tuple[EkView, ...]) -> None:
    table(
        ("PUBLIC KEY", "STATE", "SITE", "ROLE", "NODE", "JOINED AS", "NOTE"),
        [
            (r.public_key_sha256, _state(r), r.site or "", r.role, r.node_id or "", r.joined_as or "", r.note)
            for r in rows
        ],
        "no endorsement keys",
    )


def _keep_out(row: EkView) -> list[str]:
    """Denied keys of the same TPM: it joins by none of its keys."""
    return [one.public_key_sha256 for one in row.others if one.state == "denied" and one.tie != "showed"]


def _state(row: EkView) -> str:
    return "kept out" if row.state == "allowed" and _keep_out(row) else row.state


def allowed(row: EkView) -> None:
    node = f" as {row.node_id}" if row.node_id else ""
    print(f"{row.public_key_sha256} may join site {row.site}{node}, role {row.role}")
    for ek in _keep_out(row):
        print(f"not yet: {ek} of the same TPM is denied; bcd-controlplane ek allow that one too")


def denied(row: EkView) -> None:
    print(f"{row.public_key_sha256} is denied")
    _ends(row.joined_as)
    for other in row.others:
        ek = other.public_key_sha256
        if other.tie != "shown":
            print(f"{ek} is of the same TPM, and kept out with it")
            _ends(other.joined_as)
        elif other.state != "denied":
            print(
                f"its TPM showed {ek} too, which proves nothing; bcd-controlplane ek deny {ek} keeps that out as well"
            )


def _ends(node: str | None) -> None:
    if node:
        print(f"it is node {node}, which renews no more; bcd-controlplane nodes revoke {node} ends it")


def removed(view: EkRemovedView) -> None:
    print(f"{view.public_key_sha256} removed from the list")


def imported(view: EksImported) -> None:
    print(f"{view.added} added, {view.changed} changed, {view.unchanged} as they were")
