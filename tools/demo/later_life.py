"""What a node does for years: steps 8 to 12, in a minute."""

import json

from tools.demo.first_day import FirstDay
from tools.demo.outside import chain_of, hashes, openssl, public_of_certificate, public_of_key
from tools.demo.stage import Log, StepFailed


class LaterLife(FirstDay):
    log: Log

    def session(self) -> None:
        check = self.stage.check
        token = self.plane_run("token", "create", "--site", "lab").out.strip()
        done = self.bcd("join", "node-d", stdin=token + "\n", shown="echo $TOKEN")
        check(done.status == 0, "a machine joins")
        self.node = done.out.split()[2]
        self._start_node()
        self.spoil("session", self.log.process.kill)
        self.log.wait("session up")
        said = json.loads(self.bcd("status", "node-d", "--json").out)
        check(said["running"] is True and said["session"]["state"] == "up", "status: a node runs, its session is up")
        shown = self.plane_run("nodes", "show", self.node)
        check("current" in shown.out, "the control plane: its certificate is in use")

    def _start_node(self) -> None:
        where = ("--config", str(self.config), "--data-dir", str(self.data("node-d")))
        shown = "bcd-fakehw node --config etc/config.toml --data-dir node-d"
        process = self.stage.start("bcd-fakehw", "node", *where, env=self.machine("node-d"), shown=shown)
        self.log = self.stage.follow(process)

    def renewal(self) -> None:
        check = self.stage.check
        data = self.data("node-d")
        self.stage.say(f"  certificates of {self.leaf_lifetime} here, of 24 h in a fleet; now wait, twice", "2")
        ends = [self._end()]
        keys = [hashes(data)["node.key"]]
        for _ in range(2):
            self.log.wait("renewed", patience_s=60)
            self.log.wait("session up")
            ends.append(self._end())
            keys.append(hashes(data)["node.key"])
        self.spoil("renewal", lambda: (data / "node.key").write_text("not a key"))
        check(self.log.process.poll() is None, "the node never stopped")
        check(ends == sorted(set(ends)), f"openssl: three certificates, each ends later: {', '.join(ends)}")
        check(len(set(keys)) == 3, "and three keys")
        check(self._matches(), "openssl: the last certificate certifies node.key")

    def _end(self) -> str:
        leaf = chain_of(self.data("node-d") / "identity.json")[0]
        return openssl("x509", "-noout", "-enddate", "-dateopt", "iso_8601", stdin=leaf).decode().strip()[9:]

    def _matches(self) -> bool:
        data = self.data("node-d")
        key = (data / "node.key").read_bytes()
        return b"PRIVATE KEY" in key and public_of_key(key) == public_of_certificate(
            chain_of(data / "identity.json")[0]
        )

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
        check(self._matches(), "openssl: the new certificate certifies the new node.key")
        self._start_node()
        self.log.wait("session up")
        check(self.log.process.poll() is None, "and the node lives")
