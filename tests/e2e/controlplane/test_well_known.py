"""`serve --http`: the well-known document, as somebody with the serving CA's pin alone sees it."""

import hashlib
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.ending import seconds_to_end
from tests.fakes.plane import Plane

PATH = "/.well-known/bc-identity"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    served = Plane(
        tmp_path_factory.mktemp("well-known"), serve_words=("--join", "127.0.0.1:0", "--http", "127.0.0.1:0")
    )
    served.init("--leaf-lifetime", "12h")
    served.serve()
    served.node_config()
    yield served
    served.stop()


def port(plane: Plane) -> int:
    return int(json.loads((plane.directory / "endpoints.json").read_text())["http"].rpartition(":")[2])


def ask(plane: Plane, method: str = "GET", path: str = PATH) -> tuple[int, bytes, "http.client.HTTPMessage"]:
    context = ssl.create_default_context(cafile=str(plane.config.parent / "serving-ca.pem"))
    connection = http.client.HTTPSConnection("127.0.0.1", port(plane), timeout=10, context=context)
    connection.request(method, path)
    answer = connection.getresponse()
    found = (answer.status, answer.read(), answer.headers)
    connection.close()
    return found


def openssl(*words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *words], input=stdin, capture_output=True, check=True).stdout


def test_it_says_what_node_config_writes(plane: Plane) -> None:
    status, body, headers = ask(plane)
    assert status == 200
    assert headers["Content-Type"] == "application/json"
    told = json.loads(body)
    config = plane.config.read_text()
    assert told["version"] == 1
    assert told["trustDomain"] == "example.test"
    assert f'join = "{told["join"]}"' in config
    assert f'gateway = "{told["gateway"]}"' in config
    assert told["joinEncryptionKey"] == json.loads((plane.config.parent / "join-encryption.jwk").read_text())
    assert told["servingCa"] == (plane.config.parent / "serving-ca.pem").read_text()
    # A ramdisk's certificate lives two hours whatever the others' do.
    assert told["leafLifetimeSeconds"] == {"node": 43200, "site": 43200, "ramdisk": 7200}


def test_its_signing_key_is_the_pinned_one(plane: Plane) -> None:
    """The pin as openssl computes it of the key in the control plane's directory, and the JWK of the same point."""
    told = json.loads(ask(plane)[1])["joinSigningKey"]
    key = (plane.directory / "join-signing.key").read_bytes()
    spki = openssl("pkey", "-pubout", "-outform", "DER", stdin=key)
    assert f'join_signing_key_pin = "sha256:{hashlib.sha256(spki).hexdigest()}"' in plane.config.read_text()
    assert spki[-64:].hex() == b"".join(_decoded(told[name]) for name in ("x", "y")).hex()
    assert "d" not in told


def _decoded(text: str) -> bytes:
    import base64

    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_head_says_how_long_it_is_and_another_path_or_method_is_none(plane: Plane) -> None:
    status, body, headers = ask(plane, "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) == len(ask(plane)[1])
    assert ask(plane, path="/")[0] == 404
    assert ask(plane, path=f"{PATH}/../../etc/passwd")[0] == 404
    assert ask(plane, "POST")[0] == 501


@pytest.mark.parametrize(("newest", "spoken"), [(ssl.TLSVersion.TLSv1_3, True), (ssl.TLSVersion.TLSv1_2, False)])
def test_tls_1_3_alone(plane: Plane, newest: ssl.TLSVersion, spoken: bool) -> None:
    context = ssl.create_default_context(cafile=str(plane.config.parent / "serving-ca.pem"))
    context.maximum_version = newest
    with socket.create_connection(("127.0.0.1", port(plane)), timeout=10) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
                assert secure.version() == "TLSv1.3"
                assert spoken
        except ssl.SSLError:
            assert not spoken


def test_whoever_says_nothing_or_nonsense_holds_up_nobody(plane: Plane) -> None:
    with (
        socket.create_connection(("127.0.0.1", port(plane)), timeout=10),
        socket.create_connection(("127.0.0.1", port(plane)), timeout=10) as nonsense,
    ):
        nonsense.sendall(b"GET / HTTP/1.1\r\n\r\n")
        began = time.monotonic()
        assert ask(plane)[0] == 200
        assert time.monotonic() - began < 5
    assert "Traceback" not in plane.log.read_text()


def test_the_port_is_kept_without_being_asked_for_again_and_the_end_comes_within_a_second(plane: Plane) -> None:
    before = port(plane)
    assert plane.server is not None
    with socket.create_connection(("127.0.0.1", before), timeout=10):
        assert seconds_to_end(plane.server, signal.SIGTERM) < 1.0, "with a connection that says nothing"
    plane.stop()
    plane.serve_words = ()
    plane.serve()
    assert port(plane) == before
    assert ask(plane)[0] == 200


def test_nobody_asked_and_nothing_listens(tmp_path: Path) -> None:
    quiet = Plane(tmp_path)
    quiet.init()
    quiet.serve()
    try:
        assert set(json.loads((quiet.directory / "endpoints.json").read_text())) == {"join", "gateway"}
    finally:
        quiet.stop()
    assert not re.search(r"http", (quiet.directory / "endpoints.json").read_text())
