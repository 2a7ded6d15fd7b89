"""What every step of the demo can do: the machines, the control plane, and spoiling things on demand."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.demo.stage import Ran, Stage
from tools.demo.tpms import Tpms


@dataclass
class Story:
    stage: Stage
    tpms: Tpms
    sabotage: str
    leaf_lifetime: str
    token: str = ""
    node: str = ""

    @property
    def plane(self) -> Path:
        return self.stage.home / "control-plane"

    @property
    def config(self) -> Path:
        return self.stage.home / "etc" / "config.toml"

    def data(self, name: str) -> Path:
        return self.stage.home / name

    def machine(self, name: str) -> dict[str, str]:
        """A machine of its own for bcd-fakehw: two nodes on one machine would be one node to the control plane."""
        path = self.stage.home / f"{name}.machine.json"
        digest = hashlib.sha256(name.encode()).hexdigest()
        uuid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
        claims = {"productUuid": uuid, "boardSerial": f"BRD-{digest[:10]}", "hostname": name}
        path.write_text(json.dumps(claims))
        return {"BCD_FAKEHW_MACHINE": str(path), **self.tpms.environment(name)}

    def spoil(self, step: str, how: Callable[[], object]) -> None:
        if self.sabotage == step:
            self.stage.say(f"  (sabotage: {step})", "33")
            how()

    def bcd(self, command: str, name: str, *words: str, stdin: str = "", shown: str = "") -> Ran:
        where = ("--config", str(self.config), "--data-dir", str(self.data(name)))
        typed = " ".join(("bcd-fakehw", command, "--config etc/config.toml --data-dir", name, *words))
        shown = shown and f"{shown} | {typed}"
        return self.stage.run("bcd-fakehw", command, *where, *words, stdin=stdin, env=self.machine(name), shown=shown)

    def identify(self, name: str) -> Ran:
        typed = "bcd-fakehw tpm identify --config etc/config.toml"
        words = ("bcd-fakehw", "tpm", "identify", "--config", str(self.config))
        return self.stage.run(*words, env=self.machine(name), shown=typed)

    def plane_run(self, *words: str, shown: str = "", only: str = "") -> Ran:
        return self.stage.run("bcd-controlplane", *words, "--dir", str(self.plane), shown=shown, only=only)
