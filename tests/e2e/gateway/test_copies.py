"""Lost answers, killed servers, copied disks and backups, with real processes."""

from __future__ import annotations

import json
import shutil
import signal
import threading

from tests.crash.losing_proxy import LosingProxy
from tests.e2e.gateway.conftest import Join
from tests.e2e.gateway.test_life import REVOKED, shown
from tests.fakes.node_process import NodeProcess, until
from tests.fakes.plane import Plane


def gateway(plane: Plane) -> tuple[str, int]:
    host, _, port = json.loads((plane.directory / "endpoints.json").read_text())["gateway"].rpartition(":")
    return host, int(port)


def test_a_server_killed_between_its_commit_and_its_answer_gives_the_same_answer(own_plane: Plane, join: Join) -> None:
    """B02: the answer is lost with the server; the node asks the same again, and nobody is taken for a copy."""
    plane, asked = own_plane, threading.Event()

    def kill() -> None:
        # First the command that asks for the renewal is to have its own answer.
        asked.wait(30)
        plane.stop(signal.SIGKILL)

    proxy = LosingProxy(gateway(plane), on_lost=kill, armed=False)
    config = plane.config.read_text()
    plane.config.write_text(config.replace(f":{gateway(plane)[1]}", f":{proxy.port}"))
    node = join(plane).up()
    proxy.armed.set()
    leaf = node.identity["chain"][0]
    plane.admin("nodes", "renew-now", node.id)
    asked.set()
    assert proxy.lost.wait(30), node.text
    until(lambda: plane.server is None, "the server is still there")
    assert node.identity["chain"][0] == leaf
    proxy.close()
    plane.serve_words = ("--join", "127.0.0.1:0", "--gateway", f"127.0.0.1:{proxy.port}")
    plane.serve()
    until(lambda: "renewal answered again" in plane.log.read_text(), lambda: node.text)
    node.up(times=2)
    view = shown(plane, node)
    assert view["node"]["generation"] == 1
    assert len(view["certificates"]) == 2, view
    assert node.runs()


def both_end(*nodes: NodeProcess) -> list[int]:
    """Their exit statuses. One whose renewal came right after the other's new certificate was used is told, within the
    grace, that its own was replaced, and would ask again in eleven minutes: started again it asks at once."""
    told = [0] * len(nodes)

    def over() -> bool:
        for number, node in enumerate(nodes):
            count = node.text.count("this certificate was replaced by another")
            if count > told[number] and node.runs():
                told[number] = count
                node.stop()
                node.start()
        return not any(node.runs() for node in nodes)

    until(over, lambda: "\n---\n".join(node.text for node in nodes), 60)
    return [node.ended() for node in nodes]


def test_node_and_thief_with_one_disk_both_end(short: Plane, join: Join) -> None:
    """B48: both renew with one key; the second use gives both away."""
    node = join(short, start=False)
    thief = NodeProcess(short.machine("thief"))
    shutil.copytree(node.machine.data, thief.machine.data)
    try:
        node.start()
        thief.start()
        assert both_end(node, thief) == [1, 1], f"{node.text}\n---\n{thief.text}"
    finally:
        thief.stop()
    for one in (node, thief):
        assert one.text.endswith(f"{REVOKED}\n")
        # Neither dialled again after it was told.
        assert one.text.count("certificate revoked") == 1
    view = shown(short, node)
    assert view["node"]["generation"] == 2
    assert {row["state"] for row in view["certificates"]} == {"revoked"}
    (event,) = [e for e in short.json("audit", "tail", "-n", "500") if e["kind"] == "node.cloned"]  # type: ignore[attr-defined]
    assert event["detail"]["serial"] != event["detail"]["otherSerial"] != ""


def test_a_backup_that_is_put_back_adopts_what_it_does_not_know(own_plane: Plane, join: Join) -> None:
    plane = own_plane
    old = join(plane).up()
    plane.stop()
    backup = plane.home / "backup"
    shutil.copytree(plane.directory, backup)
    plane.serve()
    new = join(plane).up()
    old.up(times=2)
    plane.stop()
    shutil.rmtree(plane.directory)
    shutil.move(backup, plane.directory)
    plane.serve()
    until(lambda: "ALARM" in plane.log.read_text(), plane.log.read_text)
    assert old.runs() and new.runs()
    assert "node.cloned" not in plane.log.read_text()
    plane.admin("restored")
    new.up(times=2)
    until(lambda: new.identity["trustVersion"] == 1001, "no bundle above the others")
    assert shown(plane, new)["node"]["generation"] == 1
    until(lambda: len(old.identity["chain"]) and shown(plane, old)["node"]["session"], lambda: old.text)
    kinds = [e["kind"] for e in plane.json("audit", "tail", "-n", "500")]  # type: ignore[attr-defined]
    assert kinds.count("certificate.adopted") >= 1
    assert "node.cloned" not in kinds
