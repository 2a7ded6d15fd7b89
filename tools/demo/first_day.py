"""A machine joins: steps 1 to 8."""

import hashlib
import json
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from tools.demo.outside import (
    chain_of,
    edit,
    endorsement_key,
    hashes,
    mode,
    openssl,
    public_if_private,
    public_of_certificate,
    public_of_key,
    tpm_record,
)
from tools.demo.stage import Process, wait
from tools.demo.story import Story
from tools.demo.tpms import WORDS


class FirstDay(Story):
    server: Process

    def control_plane(self) -> None:
        check = self.stage.check
        self.stage.run(
            "bcd-controlplane",
            "init",
            "--dir",
            str(self.plane),
            "--trust-domain",
            "demo.example",
            "--host",
            "127.0.0.1",
        )
        self.serve()
        self.plane_run("node-config", "--out", str(self.config.parent), "--data-dir", "/var/lib/bcd")
        self.spoil("control plane", lambda: edit(self.config, r"sha256:[0-9a-f]{64}", "sha256:" + "0" * 64))
        secrets = [path for path in self.plane.iterdir() if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]
        check(bool(secrets) and {mode(path) for path in secrets} == {"0600"}, "every private key is 0600")
        check(mode(self.plane) == "0700", "and their directory 0700")
        ca = (self.config.parent / "serving-ca.pem").read_bytes()
        pin = "sha256:" + hashlib.sha256(public_of_certificate(ca)).hexdigest()
        check(f'serving_ca_spki_pin = "{pin}"' in self.config.read_text(), "the pin is what openssl computes of the CA")

    def serve(self) -> None:
        self.server = self.stage.start("bcd-controlplane", "serve", "--dir", str(self.plane))
        assert self.server.stdout is not None
        ready = self.server.stdout.readline()
        self.stage.say(f"  {ready.rstrip()}")
        self.stage.check(ready.startswith("ready"), "the server says ready")

    def join_token(self) -> None:
        check = self.stage.check
        made = self.plane_run("token", "create", "--site", "lab")
        self.token = made.out.strip()
        self.spoil("token", lambda: (self.plane / "notes").write_text(self.token))
        check(made.status == 0 and made.out == self.token + "\n", "nothing but the token is printed")
        check(bool(re.fullmatch(r"bcjt_[a-z2-7]{10}_[A-Za-z0-9_-]{43}", self.token)), "it looks like a token")
        secret = self.token.split("_", 2)[2]
        kept = [path for path in self.plane.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
        check(not kept, "its secret is in no file of the control plane: only a hash is kept")

    def tpm(self) -> None:
        check = self.stage.check
        self.stage.say(f"  {WORDS[self.tpms.kind]}; a TPM of the machine that runs this is not touched", "2")
        self.tpms.install("node-a")
        if self.sabotage == "tpm":
            self.stage.say("  (sabotage: tpm)", "33")
            self.tpms.remove("node-a")
        done = self.identify("node-a")
        check(done.status == 0 and "can live here" in done.out, "exit 0: node keys can live in it")
        check(bool(endorsement_key(done.out)), "and it has an endorsement key, by whose hash an operator calls it")

    def join(self) -> None:
        check = self.stage.check
        done = self.bcd("join", "node-a", stdin=self.token + "\n", shown="echo $TOKEN")
        data = self.data("node-a")
        self.spoil(
            "join",
            lambda: (data / "node.key").write_bytes(
                openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
            ),
        )
        said = re.fullmatch(
            r"joined as (n-[a-z2-7]{10}) \(site lab, role node\); certificate valid until (\S+)\n", done.out
        )
        check(done.status == 0 and said is not None, "exit 0, and one line says as whom")
        assert said is not None
        self.node = said[1]
        check(mode(data) == "0700", "the data directory is 0700")
        check(
            {p.name: mode(p) for p in data.iterdir()} == {"identity.json": "0600", "node.key": "0600"},
            "two files, 0600",
        )
        leaf, *issuers = chain_of(data / "identity.json")
        self.stage.run("cat", str(data / "node.key"))
        record = tpm_record((data / "node.key").read_bytes())
        check(
            record is not None and len(record) == 32,
            "node.key is no key, but 32 bytes: the TPM derives the key from them",
        )
        assert record is not None
        check(
            public_if_private(record) != public_of_certificate(leaf),
            "openssl: nor are they the private key itself, whose public half would be another",
        )
        names = openssl("x509", "-noout", "-subject", "-ext", "subjectAltName,extendedKeyUsage", stdin=leaf).decode()
        check(f"URI:spiffe://demo.example/site/lab/node/{self.node}" in names, "openssl: its SPIFFE ID")
        check(f"CN = {self.node}, OU = bc-role:node" in names, "openssl: its node and its role")
        self._verify(leaf, issuers)

    def _verify(self, leaf: bytes, issuers: list[bytes]) -> None:
        root = next(iter(sorted(self.plane.glob("*root*.pem"))), None)
        self.stage.check(root is not None, "the node root is there")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "leaf").write_bytes(leaf)
            (Path(folder) / "issuers").write_bytes(b"".join(issuers))
            words = ["verify", "-CAfile", str(root), "-untrusted", f"{folder}/issuers", f"{folder}/leaf"]
            done = subprocess.run(["openssl", *words], capture_output=True, check=False)
        self.stage.check(done.returncode == 0, "openssl: the chain leads to the node root")

    def already_joined(self) -> None:
        check = self.stage.check
        data = self.data("node-a")
        before = hashes(data)
        done = self.bcd("join", "node-a")
        self.spoil("already joined", lambda: (data / "identity.json").open("a").write("\n"))
        check(
            done.status == 0 and done.out == f"already joined as {self.node} (site lab, role node)\n",
            "exit 0: a join unit may run at every boot",
        )
        check(hashes(data) == before, "no byte on disk changed, and no token was asked for")

    def status(self) -> None:
        check = self.stage.check
        self.bcd("status", "node-a")
        identity = self.data("node-a") / "identity.json"
        self.spoil("status", lambda: identity.write_bytes(identity.read_bytes()[:100]))
        done = self.bcd("status", "node-a", "--json")
        check(done.status == 0, "exit 0: a node would start")
        said = json.loads(done.out)
        ends = openssl("x509", "-noout", "-enddate", "-dateopt", "iso_8601", stdin=chain_of(identity)[0]).decode()
        check(said["notAfter"] == ends.strip().removeprefix("notAfter=").replace(" ", "T"), "openssl: the same end")
        check(said["nodeKey"] == "tpm" and said["nodeId"] == self.node, "the key's place and the node's name")
        done = self.bcd("doctor", "node-a")
        check(done.status == 0 and not re.search(r"^fail ", done.out, re.MULTILINE), "doctor finds nothing wrong")
        check("holds node keys" in done.out, "and asked the TPM")

    def second_use(self) -> None:
        check = self.stage.check
        token = self.token
        if self.sabotage == "second use":
            self.stage.say("  (sabotage: second use)", "33")
            token = self.plane_run("token", "create", "--site", "lab").out.strip()
        done = self.bcd("join", "node-b", stdin=token + "\n", shown="echo $TOKEN")
        check(done.status == 77, "exit 77: refused for good")
        found = re.search(r"refusal id ([0-9a-f]{32})", done.err)
        check(found is not None and done.err.startswith("Join refused"), "the node is told an id, and nothing else")
        assert found is not None
        check(not (self.data("node-b") / "identity.json").exists(), "and has no identity")
        done = self.plane_run("refusals", "show", found[1])
        check("token-used-up" in done.out, "the control plane's operator is told why")

    def crash(self) -> None:
        check = self.stage.check
        token = self.plane_run(
            "token", "create", "--site", "lab", shown="TOKEN=$(bcd-controlplane token create --site lab)"
        ).out.strip()
        server, data = self.server, self.data("node-c")
        self.stage.say("  a machine without a TPM: its key is a file", "2")
        self.stage.say("  the control plane stops answering; the power goes when the request is on disk", "2")
        server.send_signal(signal.SIGSTOP)
        node = self.stage.start(
            "bcd-fakehw", "join", "--config", str(self.config), "--data-dir", str(data),
            stdin=token + "\n", env=self.machine("node-c"),
            shown="echo $TOKEN | bcd-fakehw join --config etc/config.toml --data-dir node-c",
        )  # fmt: skip
        pending = data / "join.pending"
        wait(pending.exists, "the request to be on disk")
        node.kill()
        node.wait()
        self.stage.say(f"  kill -9 {node.pid}", "2")
        server.send_signal(signal.SIGCONT)
        key = json.loads(pending.read_text())["key"].encode()
        check(mode(pending) == "0600", "the request is kept, 0600")
        check(token.encode() not in pending.read_bytes(), "and holds the token only sealed")
        self.spoil("crash", pending.unlink)
        done = self.bcd("join", "node-c")
        check(done.status == 0 and done.out.startswith("joined as "), "the next join needs no token")
        check((data / "node.key").read_bytes() == key, "and has the key that was asked for before the crash")
        check(sorted(p.name for p in data.iterdir()) == ["identity.json", "node.key"], "nothing else is left")
        leaf = chain_of(data / "identity.json")[0]
        check(public_of_key(key) == public_of_certificate(leaf), "openssl: the certificate certifies node.key")
