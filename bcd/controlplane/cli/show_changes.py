"""What the commands that change nodes or trust print."""

from bcd.controlplane.cli.render import facts, table, time
from bcd.controlplane.domain.admin import DeletedView, RenewalsView, RestoredView, RevokedView, TrustView


def revoked_node(view: RevokedView) -> None:
    print(f"node {view.id} revoked (generation {view.generation}); the machine must join again")
    _by_tpm(view.ek)


def deleted_node(view: DeletedView) -> None:
    print(f"node {view.id} deleted; the machine may join anew with any token")
    _by_tpm(view.ek)


def _by_tpm(ek: str) -> None:
    if ek:
        print(f"its TPM may join again; bcd-controlplane ek deny {ek} keeps it out")


def renewals(view: RenewalsView) -> None:
    rest = view.nodes - view.sessions
    print(f"{view.nodes} asked to renew: {view.sessions} by their session now, {rest} when they call next")


def trust(view: TrustView) -> None:
    facts([("version", str(view.version)), ("quorum", str(view.quorum))])
    print()
    table(("COMMAND ROOT",), [(pin,) for pin in view.command_roots], "no command roots: signed intent is not enforced")
    print()
    table(("APPROVER", "KEY PIN"), [(one.name, one.key_pin) for one in view.approvers], "no approvers")


def restored(view: RestoredView) -> None:
    print(f"certificates issued until {time(view.at)} that the backup does not know are adopted when they are used")
    print(f"trust bundle version {view.bundle_version}")
    print("what was revoked or deleted after the backup was made is not any more: revoke it again")
