"""Results for people, on standard output. Times are RFC 3339 UTC."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bcd.domain.lifecycle.join import Joined
    from bcd.domain.model.datadir import Moved


def time(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def error(text: str) -> None:
    """One line on standard error. A path may hold anything, line ends and a terminal's commands included."""
    try:
        print("".join(c if c.isprintable() else "?" for c in text), file=sys.stderr)
    except OSError:
        # Nobody reads it; the exit status still tells.
        return


def joined(result: "Joined") -> None:
    identity = result.identity
    who = f"{identity.node_id} (site {identity.site_id}, role {identity.role.value})"
    if result.already:
        print(f"already joined as {who}")
    else:
        print(f"joined as {who}; certificate valid until {time(identity.leaf.not_after)}")


def reset_plan(path: str, plan: "Sequence[Moved]") -> None:
    if not plan:
        print(f"{path} holds no identity; bcd join joins")
        return
    print(f"would move, in {path}:")
    for moved in plan:
        print(f"  {moved.name} -> {moved.new_name}")
    print(
        "and then join again with a new key: as a new node, unless the credential proves this machine and reclaims it"
    )


def was_reset(moved: "Sequence[Moved]") -> None:
    for one in moved:
        print(f"moved {one.name} -> {one.new_name}")
