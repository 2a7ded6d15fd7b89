"""Makes docs/messages.md from the catalogues of messages and the tests that saw each of them printed.

`python -m tests.e2e.messages.page` from the repository's root writes it; test_page.py fails when it is not what this
makes.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Protocol

from bcd.app.findings import Level
from bcd.controlplane.domain.refusals import WAY_BACK
from bcd.domain.model.failures import Exit
from tests.e2e.controlplane import test_controlplane_messages as plane
from tests.e2e.messages import test_doctor_findings as doctor
from tests.e2e.messages import test_node_messages as node

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "messages.md"
NODE = "tests/e2e/messages/test_node_messages.py"

_HEAD = """# Messages and exit codes

Made by `python -m tests.e2e.messages.page` from the catalogues in the code; not edited by hand.

A failure is one line on standard error, after whatever was logged: what, where, and the way back. Results are on
standard output. Times are RFC 3339 UTC. `{…}` is filled in. A message with no exit status is in the log of a node that
goes on, and in `bcd status`. Every message below was printed by a real process from a real state in the test that its
row names, and a message without such a test fails the build.

## Exit codes

| Exit | Means | systemd |
|---|---|---|
| 0 | done | |
| 1 | this identity is dead: revoked; `doctor`: a check failed | never restarted (`RestartPreventExitStatus=1`) |
| 2 | the command line is wrong, or `--reset` waits for `--yes` | |
| 70 | a defect of bcd | restarted |
| 75 | try again later: network, lock, space, TPM, not joined yet; also Ctrl-C and SIGTERM in a join | restarted |
| 76 | the identity does not load, or does not match its key | |
| 77 | refused: by the control plane, or because it must be run as root | |
| 78 | configuration, pins, modes and owners, another node's journal | |

"""

_DOCTOR = """## bcd doctor

`[{"check", "level", "message", "wayBack"}]` with `--json`; exit 1 when one check is `fail`, else 0.

| Level | Means |
|---|---|
"""

_FAILURES = """A failure that a command would end with stands in the report as its own message (above), cut where its
way back begins: `config`, `join encryption key`, `data directory`, `identity`, `tpm`, `journal`, `join port` and
`gateway` can show one.

"""

_REFUSALS = """### Why a join was refused

`bcd-controlplane refusals show ID` tells the operator; the node is told the id alone. Kept for 30 days, at most 60 an
hour from one address and 600 an hour in all.

"""

_LEVELS = {
    Level.OK: "as it should be",
    Level.WARN: "works, or may soon not: not joined yet, a join under way, unreachable, a renewal overdue",
    Level.FAIL: "does not work, or is not safe; the way back stands beside it",
    Level.NOT_APPLICABLE: "nothing to look at yet",
}


# Name, message, exit status, and the test that saw it.
Row = tuple[str, str, str, str]


class Provoked(Protocol):
    @property
    def exit(self) -> int: ...


def page() -> str:
    """The whole page."""
    node_rows = [*rows(node.PROVOKED, NODE), *logged(node.LOGGED, NODE)]
    plane_rows = rows(plane.PROVOKED, "tests/e2e/controlplane/test_controlplane_messages.py")
    levels = "".join(f"| `{level.value}` | {_LEVELS[level]} |\n" for level in Level)
    findings = "| Check | Level | Message | Way back | Seen by |\n|---|---|---|---|---|\n"
    for told in doctor.PROVOKED:
        row = told.value
        test = f"tests/e2e/messages/test_doctor_findings.py::test_finding[{told.name}]"
        findings += f"| {row.check} | {row.level} | `{row.message}` | {_code(row.way_back)} | `{test}` |\n"
    refusals = "| Reason | What to do |\n|---|---|\n"
    refusals += "".join(f"| `{reason.value}` | {text} |\n" for reason, text in WAY_BACK.items())
    return (
        f"{_HEAD}## bcd\n\n{table(node_rows)}\n"
        f"{_DOCTOR}{levels}\n{_FAILURES}{findings}\n## bcd-controlplane\n\n{table(plane_rows)}\n"
        f"{_REFUSALS}{refusals}"
    )


def rows(provoked: Mapping[Enum, Provoked], test: str) -> Iterable[Row]:
    for message, how in provoked.items():
        yield message.name, str(message.value), str(how.exit), f"{test}::test_message[{message.name}]"


def logged(messages: Iterable[Enum], test: str) -> Iterable[Row]:
    for message in messages:
        yield message.name, str(message.value), "", f"{test}::test_logged_message[{message.name}]"


def table(lines: Iterable[Row]) -> str:
    head = "| Name | Message | Exit | Seen by |\n|---|---|---|---|\n"
    return head + "".join(
        f"| {name} | `{re.sub('[|]', chr(92) + '|', text)}` | {exit_} | `{test}` |\n"
        for name, text, exit_, test in lines
    )


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def known_exits() -> set[int]:
    return {int(code) for code in Exit}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
