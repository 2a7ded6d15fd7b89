"""What a node does for years: steps 9 to 15, in a minute."""

import json
import shutil

from tools.demo.first_day import FirstDay
from tools.demo.outside import (
    chain_of,
    edit,
    endorsement_key,
    hashes,
    names_attestation_key,
    openssl,
    serial_of,
    tpm_record,
)
from tools.demo.stage import Log, StepFailed


class LaterLife(FirstDay):
    log: Log
    first: tuple[str, bytes]

    def session(self) -> None:
        check = self.stage.check
        self._shorten_certificates()
        self.tpms.install("node-d")
        token = self.plane_run("token", "create", "--site", "lab").out.strip()
        done = self.bcd("join", "node-d", stdin=token + "\n", shown="echo $TOKEN")
        check(done.status == 0, "a machine joins")
        self.node = done.out.split()[2]
        # Before the node runs: on a slow machine it has renewed before the next step but one begins.
        self.first = self._pair()
        self._start_node()
        self.spoil("session", self.log.process.kill)
        self.log.wait("session up")
        said = json.loads(self.bcd("status", "node-d", "--json").out)
        check(said["running"] is True and said["session"]["state"] == "up", "status: a node runs, its session is up")
        check(self._in_use(), "the control plane: its certificate is in use, so the TPM signed the handshake")

    def _shorten_certificates(self) -> None:
        """Not earlier: on a slow machine what was joined above would be over before it was looked at."""
        self.stage.say(f"  certificates of {self.leaf_lifetime} from here on, of 24 h in a fleet", "2")
        edit(self.plane / "controlplane.toml", r"(?m)^leaf_lifetime = .*$", f'leaf_lifetime = "{self.leaf_lifetime}"')
        self.stage.say(f"$ kill {self.server.pid}", "1")
        self.server.terminate()
        self.stage.check(self.server.wait(10) == 0, "exit 0: the server was stopped, and is started again")
        self.serve()

    def copy(self) -> None:
        check = self.stage.check
        data, other = self.data("node-d"), self.data("node-e")
        self.tpms.install("node-e")
        self.stage.say("$ cp -a node-d node-e", "1")
        shutil.copytree(data, other)
        before = hashes(other)
        check(before["node.key"] == hashes(data)["node.key"], "all that is on the disk is there")
        self.spoil("copy", (other / "identity.json").unlink)
        done = self.bcd("node", "node-e")
        check(done.status == 76, "exit 76: another TPM derives another key, and no node runs there")
        check("the TPM derives another key from node.key" in done.err, "which is what it says")
        check("join again: bcd join --reset --yes" in done.err, "with the way back")
        check(hashes(other) == before, "not a byte was changed")
        check(self.log.process.poll() is None, "and the node itself heard nothing of it")

    def _start_node(self) -> None:
        where = ("--config", str(self.config), "--data-dir", str(self.data("node-d")))
        shown = "bcd-fakehw node --config etc/config.toml --data-dir node-d"
        process = self.stage.start("bcd-fakehw", "node", *where, env=self.machine("node-d"), shown=shown)
        self.log = self.stage.follow(process)

    def renewal(self) -> None:
        check = self.stage.check
        data = self.data("node-d")
        self.stage.say("  now wait, twice", "2")
        ends, records = [self.first[0]], [self.first[1]]
        while len(ends) < 3:
            self.log.wait("renewed", patience_s=60)
            self.log.wait("session up")
            end, record = self._pair()
            if end in ends:
                # On a slow machine two were over before the first was looked at.
                continue
            ends.append(end)
            records.append(record)
        self.spoil("renewal", lambda: (data / "node.key").write_text("not a key"))
        check(self.log.process.poll() is None, "the node never stopped")
        check(ends == sorted(set(ends)), f"openssl: three certificates, each ends later: {', '.join(ends)}")
        check(len(set(records)) == 3, "and three keys")
        kept = (data / "node.key").read_bytes()
        check(
            all(tpm_record(key) for key in (*records, kept)),
            "none of which left the TPM: node.key holds 32 bytes still",
        )
        check(self._in_use(), "the control plane: the last certificate is the one in use")

    def _pair(self) -> tuple[str, bytes]:
        """When the certificate ends, and its key."""
        while True:
            end, record = self._end(), (self.data("node-d") / "node.key").read_bytes()
            if end == self._end():
                return end, record

    def _end(self) -> str:
        leaf = chain_of(self.data("node-d") / "identity.json")[0]
        return openssl("x509", "-noout", "-enddate", "-dateopt", "iso_8601", stdin=leaf).decode().strip()[9:]

    def _in_use(self) -> bool:
        """Whether the gateway was called with the certificate on disk: TLS has then seen its key sign."""
        # One that was being replaced in that moment has a successor.
        return any(self._is_current() for _ in range(3))

    def _is_current(self) -> bool:
        serial = serial_of(chain_of(self.data("node-d") / "identity.json")[0])
        shown = self.plane_run("nodes", "show", self.node, only="current")
        return any(line.split()[:2] == [serial, "current"] for line in shown.out.splitlines())

    def revocation(self) -> None:
        check = self.stage.check
        kept = ("identity.json", "node.key")
        before = {name: hashes(self.data("node-d"))[name] for name in kept}
        if self.sabotage != "revocation":
            self.plane_run("nodes", "revoke", self.node, "--reason", "stolen")
        else:
            self.stage.say("  (sabotage: revocation)", "33")
            self.log.process.terminate()
        try:
            self.log.wait("this node's certificate was revoked")
        except StepFailed:
            check(False, "the node says that it was revoked")
        check(self.log.process.wait(10) == 1, "exit 1: this identity is dead, and systemd must not restart it")
        check(
            {name: hashes(self.data("node-d"))[name] for name in kept} == before, "not a byte of it is changed on disk"
        )
        self._start_node()
        self.log.wait("this node's certificate was revoked")
        check(self.log.process.wait(10) == 1, "started again it is told the same, and ends the same")

    def dry_run(self) -> None:
        check = self.stage.check
        before = hashes(self.data("node-d"))
        done = self.bcd("join", "node-d", "--reset")
        self.spoil("dry run", (self.data("node-d") / "journal.db").unlink)
        check(done.status == 2, "exit 2: it only shows what would move")
        check("identity.json -> identity.json.reset-" in done.out, "and to where")
        check(hashes(self.data("node-d")) == before, "nothing moved")

    def reset(self) -> None:
        check = self.stage.check
        data = self.data("node-d")
        before = hashes(data)
        words = () if self.sabotage == "reset" else ("--allow-reclaim",)
        token = self.plane_run("token", "create", "--site", "lab", *words).out.strip()
        done = self.bcd("join", "node-d", "--reset", "--yes", stdin=token + "\n", shown="echo $TOKEN")
        check(done.status == 0 and f"joined as {self.node} " in done.out, "back as the same node, with a new key")
        after = hashes(data)
        moved = {name.split(".reset-")[0]: after[name] for name in after if ".reset-" in name}
        check(all(moved.get(name) == before[name] for name in before), "the old identity lies beside it, whole")
        self._start_node()
        self.log.wait("session up")
        check(self._in_use(), "the control plane: the new certificate is in use")
        check(self.log.process.poll() is None, "and the node lives")

    def tokenless(self) -> None:
        check = self.stage.check
        self.stage.say(f"$ kill {self.log.process.pid}", "1")
        self.log.process.terminate()
        check(self.log.process.wait(10) == 0, "exit 0: the node was stopped")
        ek = endorsement_key(self.identify("node-d").out)
        if self.sabotage == "tokenless":
            self.stage.say("  (sabotage: tokenless)", "33")
            self.plane_run("ek", "deny", ek)
        else:
            self.plane_run("ek", "allow", ek, "--site", "lab", "--node-id", self.node)
        done = self.bcd("join", "node-d", "--reset", "--yes", "--attestor", "tpm")
        check(
            done.status == 0 and f"joined as {self.node} " in done.out, "back as the same node, and no token was made"
        )
        leaf = chain_of(self.data("node-d") / "identity.json")[0]
        check(names_attestation_key(leaf), "the certificate names the attestation key of the TPM that holds its key")
        self._start_node()
        self.log.wait("session up")
        check(self._in_use(), "the control plane: the new certificate is in use")
        check(self.log.process.poll() is None, "and the node lives")
