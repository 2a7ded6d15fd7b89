"""What a join by TPM and a certified renewal say: printed by `bcd join`, logged by a node that goes on."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.e2e.lifecycle.lives import Running
from tests.fakes.commands import Ran
from tests.fakes.fitted_machine import FittedMachine, SimFile, manufactured
from tests.fakes.plane import Plane

# Places for objects that others hold, of three: what is left holds one key at a time.
HELD = 2


def fitted(plane: Plane) -> tuple[FittedMachine, SimFile]:
    machine = plane.machine()
    tpm = manufactured(plane.home / f"{machine.name}.tpm", plane.home / "tpm-maker")
    return FittedMachine(machine, tpm.env), tpm


def refused(plane: Plane) -> Ran:
    """A TPM that nobody has heard of."""
    return fitted(plane)[0].join()


@dataclass(frozen=True)
class Logged:
    """What a running node said of one renewal: `why` in its log, `told` in `bcd status --json`, the lines of `bcd
    status`, and whether it still ran then."""

    why: str
    told: str
    shown: tuple[str, ...]
    lived: bool


def _renewal(befalls: Callable[[SimFile], None], plane: Plane) -> Logged:
    """A node that joined by its TPM is asked to renew, after something befell that."""
    one, tpm = fitted(plane)
    one.allowed().joined()
    running = Running(one.machine, env=one.env)
    running.wait("session up")
    befalls(tpm)
    plane.admin("nodes", "renew-now", one.id)
    [why] = re.findall(r' why=("(?:[^"\\]|\\.)*")', running.wait("renewal failed"))
    told, shown = one.status()["renewalFailed"]["error"], one.run("status").out
    lived = running.lives
    running.stop()
    return Logged(json.loads(why), told, tuple(shown.splitlines()), lived)


tpm_away = partial(_renewal, lambda tpm: tpm.change("profile", "--started", "no"))
another_ak = partial(_renewal, lambda tpm: tpm.change("endorsement-seed"))
no_next_key = partial(_renewal, lambda tpm: tpm.change("password", "--hierarchy", "owner", "--password", "secret"))
# B30: there is room for the attestation key, and for the next key, and not for both.
not_certified = partial(_renewal, lambda tpm: tpm.change("profile", "--held", str(HELD)))
