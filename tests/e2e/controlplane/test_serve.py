"""The server as a process: its ports, its certificate, its ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.fakes import commands
from tests.fakes.controlplane.machine import Machine, Site
from tests.fakes.ending import seconds_to_end
from tests.fakes.plane import Plane


def port_of(plane: Plane, name: str = "join") -> int:
    endpoints = json.loads((plane.directory / "endpoints.json").read_text())
    return int(endpoints[name].rpartition(":")[2])


def s_client(port: int, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        # What the server begins to say in HTTP/2 stands among the words.
        errors="replace",
        check=False,
        timeout=20,
    )


def test_it_says_ready_with_its_address_and_keeps_its_port(fresh: Plane) -> None:
    fresh.server = commands.start("bcd-controlplane", "serve", "--dir", str(fresh.directory), "--join", "127.0.0.1:0")
    assert fresh.server.stdout is not None
    ready = fresh.server.stdout.readline().decode()
    port, gateway = port_of(fresh), port_of(fresh, "gateway")
    assert ready == f"ready join=127.0.0.1:{port} gateway=127.0.0.1:{gateway}\n"
    assert 0 not in {port, gateway}
    fresh.stop()
    fresh.serve_words = ()
    fresh.serve()
    assert (port_of(fresh), port_of(fresh, "gateway")) == (port, gateway)
    for bound in (port, gateway):
        with socket.create_connection(("127.0.0.1", bound), timeout=5):
            pass


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_it_ends_within_a_second_and_quietly(fresh: Plane, how: signal.Signals) -> None:
    fresh.serve()
    assert fresh.server is not None
    with socket.create_connection(("127.0.0.1", port_of(fresh)), timeout=5):
        took_s = seconds_to_end(fresh.server, how)
    fresh.server.communicate(timeout=20)
    assert fresh.server.returncode == 0
    assert fresh.log.read_text() == ""
    assert took_s < 1.0
    assert not (fresh.directory / "admin.sock").exists()


def test_a_second_server_is_refused_and_told_by_whom(served: Plane) -> None:
    done = commands.run("bcd-controlplane", "serve", "--dir", str(served.directory))
    assert done.status == 77
    assert served.server is not None
    assert f"(pid {served.server.pid})" in done.err
    assert served.admin("token", "list").status == 0


def test_it_waits_for_a_command_that_is_at_work(fresh: Plane) -> None:
    holder = subprocess.Popen(["flock", str(fresh.directory), "sh", "-c", "echo held; cat"], stdin=-1, stdout=-1)
    assert holder.stdout is not None
    holder.stdout.readline()
    server = commands.start("bcd-controlplane", "serve", "--dir", str(fresh.directory), "--join", "127.0.0.1:0")
    fresh.server = server
    assert server.stdout is not None
    time.sleep(1.0)
    assert server.poll() is None
    holder.communicate(b"")
    assert server.stdout.readline().startswith(b"ready ")


def test_it_presents_its_ca_which_is_the_one_that_is_pinned(served: Plane, tmp_path: Path) -> None:
    shown = s_client(port_of(served), "-showcerts", "-CAfile", str(served.config.parent / "serving-ca.pem"))
    assert "Verify return code: 0 (ok)" in shown.stdout
    assert "Protocol version: TLSv1.3" in shown.stdout or "New, TLSv1.3" in shown.stdout
    presented = re.findall(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n", shown.stdout, re.DOTALL)
    assert len(presented) == 2
    (tmp_path / "ca.pem").write_text(presented[1])
    key = subprocess.run(
        f"openssl x509 -in {tmp_path}/ca.pem -noout -pubkey | openssl pkey -pubin -outform DER"
        " | openssl dgst -sha256 -r",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[0]
    assert f'serving_ca_spki_pin = "sha256:{key}"' in served.config.read_text()


def test_it_speaks_tls_1_3_alone(served: Plane) -> None:
    ca = str(served.config.parent / "serving-ca.pem")
    # ALPN as gRPC has it, without which the server ends the connection after the handshake.
    words = ("-brief", "-alpn", "h2", "-CAfile", ca)
    new = s_client(port_of(served), "-tls1_3", *words)
    assert "Protocol version: TLSv1.3" in new.stderr and "Verification: OK" in new.stderr, new.stderr
    old = s_client(port_of(served), "-tls1_2", "-cipher", "ALL:@SECLEVEL=0", *words)
    assert old.returncode != 0
    assert "Protocol version" not in old.stderr


def test_the_serving_certificate_is_kept_until_the_hosts_change(fresh: Plane) -> None:
    fresh.serve()
    first = (fresh.directory / "serving.pem").read_bytes()
    fresh.stop()
    fresh.serve()
    assert (fresh.directory / "serving.pem").read_bytes() == first
    fresh.stop()
    config = fresh.directory / "controlplane.toml"
    config.write_text(config.read_text().replace('["127.0.0.1"]', '["localhost", "plane.example", "::1"]'))
    fresh.serve()
    names = subprocess.run(
        ["openssl", "x509", "-in", str(fresh.directory / "serving.pem"), "-noout", "-ext", "subjectAltName"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "DNS:localhost, DNS:plane.example, IP Address:0:0:0:0:0:0:0:1" in names
    fresh.node_config()
    Site(fresh.config.parent).join(Machine(), fresh.token())
    assert Site(fresh.config.parent).config["join"].startswith("localhost:")


def test_a_torn_serving_certificate_is_made_anew(fresh: Plane) -> None:
    (fresh.directory / "serving.key").write_bytes(b"")
    (fresh.directory / "serving.pem").write_bytes(b"-----BEGIN")
    fresh.serve()
    fresh.node_config()
    Site(fresh.config.parent).join(Machine(), fresh.token())


def test_short_leaves_are_for_demonstration_only(fresh: Plane) -> None:
    config = fresh.directory / "controlplane.toml"
    config.write_text(config.read_text().replace('"24h"', '"40s"'))
    fresh.serve()
    fresh.node_config()
    assert fresh.server is not None
    machine = Machine()
    reply = Site(fresh.config.parent).join(machine, fresh.token())
    assert "demonstration only" in fresh.log.read_text()
    leaf = machine.check(reply.issued.SerializeToString(deterministic=True), Site(fresh.config.parent).signing_pin).leaf
    assert leaf.lifetime.total_seconds() == 40


@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
def test_the_service_manager_hears_of_it(fresh: Plane, tmp_path: Path, abstract: bool) -> None:
    name = f"@bcd-test-{tmp_path.name}-{time.monotonic_ns()}" if abstract else str(tmp_path / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0", 1) if abstract else name)
        manager.settimeout(20)
        fresh.server = commands.start(
            *("bcd-controlplane", "serve", "--dir", str(fresh.directory), "--join", "127.0.0.1:0"),
            env={"NOTIFY_SOCKET": name},
        )
        assert manager.recv(100) == b"READY=1"
        fresh.server.terminate()
        assert manager.recv(100) == b"STOPPING=1"
        fresh.server.communicate(timeout=20)


@pytest.mark.parametrize(
    "words",
    [
        ("toke",),
        ("token",),
        ("token", "create", "--site", "lab"),
        ("token", "create", "--dir", "D", "--site", "a/b"),
        ("token", "create", "--dir", "D", "--site", "lab", "--ttl", "soon"),
        ("token", "create", "--dir", "D", "--site", "lab", "--uses", "0"),
        ("nodes", "show", "--dir", "D"),
        ("audit", "tail", "--dir", "D", "-n", "many"),
        ("serve", "--dir", "D", "--join", "8443"),
        ("serve", "--dir", "D", "--http", "8443"),
        ("serve", "--dir", "D", "--joi", "127.0.0.1:0"),
        ("serve", "--dir", "D", "--gateway", "8443"),
        ("nodes", "revoke", "n-1", "--dir", "D"),
        ("trust", "add-root", "--dir", "D"),
        ("restored", "--dir", "D", "--bundle-above", "-1"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_one_line_and_status_2(words: tuple[str, ...]) -> None:
    done = commands.run("bcd-controlplane", *words)
    assert done.status == 2
    assert re.fullmatch(r"bcd-controlplane( [^:]+)?: .+ \(see bcd-controlplane .*--help\)\n", done.err), done.err
    assert done.out == ""


def test_no_command_at_all_shows_them_and_is_status_2() -> None:
    done = commands.run("bcd-controlplane")
    assert (done.status, done.err) == (2, "")
    assert done.out == commands.run("bcd-controlplane", "--help").out
