"""Real nodes at a real gateway: sessions, renewals, and what the operator changes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization

from bcd.domain.model.pins import Pin
from bcd.protocol.pki import ecdsa
from tests.e2e.gateway.conftest import Join
from tests.fakes.controlplane.machine import new_key
from tests.fakes.node_process import NodeProcess, until
from tests.fakes.plane import Plane

REVOKED = "agent: this node's certificate was revoked"
# "Within a second or two", with room for a busy machine: by themselves these nodes call after half a day.
SOON_S = 30.0


def shown(plane: Plane, node: NodeProcess) -> Any:
    return plane.json("nodes", "show", node.id)


def dead(node: NodeProcess, reason: str, patience_s: float = SOON_S) -> None:
    """It ends with 1 and says why; its identity stays."""
    assert node.ended(patience_s) == 1
    assert node.text.endswith(f"{REVOKED}\n")
    assert f'certificate revoked reason="{reason}"' in node.text or f"certificate revoked reason={reason}" in node.text
    assert node.identity["nodeId"]


def known_up(plane: Plane, node: NodeProcess) -> None:
    """The gateway counts a session once its Welcome has left: the node may know of it a moment before."""
    until(lambda: shown(plane, node)["node"]["session"], "the gateway knows of no session")


def test_a_node_that_is_up_is_shown_as_up(short: Plane, veteran: NodeProcess) -> None:
    known_up(short, veteran)
    view = shown(short, veteran)
    assert view["node"]["certificate"] == "current"
    assert view["certificates"][0]["firstUsedFrom"] == "127.0.0.1"


def test_a_revoked_node_ends_at_once(plane: Plane, join: Join) -> None:
    node, other = join(plane).up(), join(plane).up()
    done = plane.admin("nodes", "revoke", node.id, "--reason", "stolen from the van")
    assert "(generation 2)" in done.out
    dead(node, "operator: stolen from the van")
    view = shown(plane, node)
    assert {row["reason"] for row in view["certificates"]} == {"operator: stolen from the van"}
    until(lambda: not shown(plane, node)["node"]["session"], "the session is still up")
    assert other.runs()
    # Started again it hears it at its Hello.
    node.start()
    assert node.ended() == 1
    assert node.text.count(REVOKED) == 2


def test_a_node_revoked_while_it_was_away_ends_when_it_is_back(plane: Plane, join: Join) -> None:
    node = join(plane).up()
    node.stop()
    plane.admin("nodes", "revoke", node.id, "--reason", "lost")
    node.start()
    dead(node, "operator: lost")


def test_a_deleted_node_ends_and_its_machine_may_join_anew(plane: Plane, join: Join) -> None:
    node = join(plane).up()
    old = node.id
    refused = node.machine.run("join", stdin=b"")
    assert refused.out.startswith("already joined")
    plane.admin("nodes", "delete", old)
    dead(node, "deleted")
    assert old not in plane.admin("nodes", "list").out
    assert node.machine.run("join", "--reset", "--yes", stdin=f"{plane.token()}\n".encode()).status == 0
    assert node.id != old
    node.start().up(times=2)


def test_a_new_root_reaches_every_node_that_is_up(plane: Plane, join: Join, tmp_path: Path) -> None:
    node, away = join(plane).up(), join(plane, start=False)
    root = ecdsa.spki_of(new_key().public_key())
    file = tmp_path / "root.pem"
    file.write_bytes(
        ecdsa.public_key(root).public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    before = node.identity["trustVersion"]
    view = json.loads(plane.admin("trust", "add-root", str(file), "--json").out)
    assert view["version"] == before + 1
    until(lambda: node.identity["trustVersion"] == view["version"], "no new bundle", SOON_S)
    assert base64.b64decode(node.identity["trustRoots"][-1]) == root
    away.start()
    until(lambda: away.identity["trustVersion"] == view["version"], "no bundle with Welcome")
    again = json.loads(plane.admin("trust", "remove-root", str(Pin.of(root)), "--json").out)
    assert again["version"] == view["version"] + 1
    until(lambda: node.identity["trustVersion"] == again["version"], "no bundle without the root", SOON_S)
    assert base64.b64encode(root).decode() not in node.identity.get("trustRoots", [])


def test_a_renewal_can_be_asked_for(plane: Plane, join: Join) -> None:
    node = join(plane).up()
    known_up(plane, node)
    leaf = node.identity["chain"][0]
    done = plane.admin("nodes", "renew-now", node.id, "--reason", "moved")
    assert done.out.startswith("1 asked to renew: 1 by their session now")
    until(lambda: node.identity["chain"][0] != leaf, "not renewed", SOON_S)
    until(lambda: shown(plane, node)["node"]["renewalAsked"] is None, "still asked")


def test_what_was_asked_while_the_server_was_down_is_done_when_it_is_back(own_plane: Plane, join: Join) -> None:
    node, gone = join(own_plane).up(), join(own_plane).up()
    own_plane.stop()
    leaf = node.identity["chain"][0]
    own_plane.admin("nodes", "renew-now", "--all", "--reason", "moved")
    own_plane.admin("nodes", "revoke", gone.id, "--reason", "sold")
    assert not shown(own_plane, node)["node"]["session"]
    own_plane.serve()
    dead(gone, "operator: sold")
    until(lambda: node.identity["chain"][0] != leaf, "not renewed")
    assert node.runs()


def test_a_session_lives_on_through_three_renewals(short: Plane, veteran: NodeProcess) -> None:
    """It began before all the others here, and what befell them was not its business."""
    veteran.up(times=4)

    def settled() -> Any:
        """Not between a renewal and the new certificate's first use."""
        view = shown(short, veteran)
        return view if view["certificates"][-1]["state"] == "current" else None

    view = until(settled, "the newest certificate is not used")
    states = [row["state"] for row in view["certificates"]]
    assert states == ["retired"] * (len(states) - 1) + ["current"]
    assert len(states) >= 4
    assert view["node"]["generation"] == 1
    assert view["node"]["session"] is True
    assert view["node"]["lastSeen"] > view["certificates"][0]["firstUsed"]
    assert "session ended" not in veteran.text
