"""An identity that is damaged, and `--reset`, with real processes (decisions 5-7)."""

import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fakes.outside import tree
from tests.fakes.plane import Machine, Plane

WAY_BACK = "join again: bcd join --reset --yes, then bcd join"
MISMATCH = f"the node key does not match the node certificate; {WAY_BACK}"


def _unreadable(why: str) -> str:
    return f"identity does not load: {{data}}/identity.json ({{size}} bytes) {why}; nothing was changed; {WAY_BACK}"


def _empty_chain(data: Path) -> None:
    value = json.loads((data / "identity.json").read_text())
    (data / "identity.json").write_text(json.dumps(value | {"chain": []}))


def _torn(data: Path) -> None:
    whole = (data / "identity.json").read_bytes()
    (data / "identity.json").write_bytes(whole[: len(whole) // 2])


def _next_key_too(data: Path) -> None:
    shutil.copy(data / "node.key", data / "node.key.next")
    (data / "node.key").write_bytes(b"")
    (data / "node.key.next").write_bytes(b"")


# What happens to the directory of a machine that has joined, and what is said of it ever after.
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty identity": (lambda data: (data / "identity.json").write_bytes(b""), _unreadable("is empty")),
    "{}": (lambda data: (data / "identity.json").write_bytes(b"{}"), _unreadable("has no chain")),
    "empty chain": (_empty_chain, _unreadable("has an empty chain")),
    "torn identity": (_torn, _unreadable("is not JSON (torn?)")),
    "NULs": (lambda data: (data / "identity.json").write_bytes(b"\0" * 1976), _unreadable("holds only zero bytes")),
    "empty key": (lambda data: (data / "node.key").write_bytes(b""), MISMATCH),
    "no key": (lambda data: (data / "node.key").unlink(), MISMATCH),
    "torn key": (lambda data: (data / "node.key").write_bytes((data / "node.key").read_bytes()[:60]), MISMATCH),
    "two empty keys": (_next_key_too, MISMATCH),
}


def copy_of(joined: Machine, machine: Machine) -> Machine:
    """`machine` with the data directory of one that has joined."""
    shutil.copytree(joined.data, machine.data)
    machine.data.chmod(0o700)
    return machine


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_told_with_the_way_back_and_nothing_is_changed(case: str, joined: Machine, machine: Machine) -> None:
    """B04 (empty, `{}`, empty chain, torn) and B06 (0-byte key): join, status and doctor say the same."""
    spoil, said = DAMAGE[case]
    spoil(copy_of(joined, machine).data)
    before = tree(machine.data)
    line = said.format(data=machine.data, size=(machine.data / "identity.json").stat().st_size) + "\n"
    done = machine.join("never read")
    assert (done.status, done.out, done.err) == (76, "", line)
    done = machine.run("status")
    assert (done.status, done.out, done.err) == (76, "", line)
    done = machine.run("doctor")
    message, _, way_back = line.strip().partition("; join again: ")
    assert f"fail  identity             {message} ({way_back})\n" in done.out
    assert (done.status, done.err) == (1, "")
    assert tree(machine.data) == before


def test_an_identity_that_is_whole_is_none_of_that(joined: Machine, machine: Machine) -> None:
    """The negative twin of the test above."""
    copy_of(joined, machine)
    before = tree(machine.data)
    assert [machine.run(command).status for command in ("join", "status", "doctor")] == [0, 0, 0]
    assert tree(machine.data) == before


def test_doctor_looks_at_the_rest_when_a_name_is_no_file(joined: Machine, machine: Machine) -> None:
    """Decision 20: a directory in place of node.key is one failed check, and says nothing of the others."""
    (copy_of(joined, machine).data / "node.key").unlink()
    (machine.data / "node.key").mkdir(mode=0o700)
    said = f"{machine.data}/node.key is not a regular file"
    status = machine.run("status")
    assert (status.status, status.out, status.err) == (78, "", f"{said}: move it out of the way, then run it again\n")
    doctor = machine.run("doctor")
    assert (doctor.status, f"fail  identity             {said} (move it" in doctor.out) == (1, True)
    assert "none yet" not in doctor.out.split("journal")[0]
    assert "n/a   journal              there is none yet" in doctor.out


@pytest.mark.parametrize("case", ["torn identity", "empty key"])
def test_reset_moves_all_aside_in_order_and_joins_again(
    case: str, plane: Plane, joined: Machine, machine: Machine
) -> None:
    """B04, B06; specification, "--reset": nothing is deleted; identity.json last (decision 7)."""
    DAMAGE[case][0](copy_of(joined, machine).data)
    for name in ("node.key.next", "journal.db"):
        (machine.data / name).write_bytes(b"anything")
        (machine.data / name).chmod(0o600)
    before = tree(machine.data)

    shown = machine.run("join", "--reset", env={"BCD_JOIN_TOKEN": "not looked at"})
    assert shown.status == 2
    names = ("node.key.next", "node.key", "journal.db", "identity.json")
    assert [re.sub(r"-\d{8}T\d{6}Z$", "", line) for line in shown.out.splitlines()[1:-1]] == [
        f"  {name} -> {name}.reset" for name in names
    ]
    assert shown.out.splitlines()[0] == f"would move, in {machine.data}:"
    assert "a new key" in shown.out.splitlines()[-1]
    assert shown.err == "bcd join --reset: nothing was moved; to do it: bcd join --reset --yes\n"
    assert tree(machine.data) == before

    done = machine.join(plane.token(), "--reset", "--yes")
    assert done.status == 0, done.err
    moved = [line.removeprefix("moved ").split(" -> ") for line in done.out.splitlines()[:-1]]
    assert [name for name, _ in moved] == list(names)
    assert done.out.splitlines()[-1].startswith("joined as n-")
    after = tree(machine.data)
    for name, aside in moved:
        assert re.fullmatch(rf"{re.escape(name)}\.reset-\d{{8}}T\d{{6}}Z", aside)
        assert after.pop(aside) == before[name]
    assert sorted(after) == ["identity.json", "node.key"]
    assert machine.run("status").status == 0


def test_reset_moves_nothing_before_it_has_what_a_join_needs(
    plane: Plane, joined: Machine, machine: Machine, tmp_path: Path
) -> None:
    """Decision 7: a typing error must not cost the identity that still works."""
    copy_of(joined, machine)
    before = tree(machine.data)
    without_key = tmp_path / "config.toml"
    shutil.copy(plane.config, without_key)
    token_file = tmp_path / "token"
    token_file.write_text("x" * 40)
    token_file.chmod(0o644)
    for words, stdin, status in (
        ((), b"", 2),
        ((), b"bad token\n", 2),
        (("--token-file", str(token_file)), b"", 2),
        (("--token-file", str(tmp_path / "none")), b"", 2),
        (("--config", str(without_key)), b"x" * 40, 78),
        (("--config", str(tmp_path / "none")), b"x" * 40, 78),
    ):
        done = machine.run("join", "--reset", "--yes", *words, stdin=stdin)
        assert (done.status, done.out, len(done.err.splitlines())) == (status, "", 1)
        assert tree(machine.data) == before
    assert machine.run("status").status == 0


def test_a_refused_join_after_a_reset_leaves_the_identity_aside(
    joined: Machine, machine: Machine, plane: Plane
) -> None:
    """Specification, "--reset": "if it fails, the identity stays moved aside and a later `bcd join` joins"."""
    copy_of(joined, machine)
    done = machine.join("x" * 40, "--reset", "--yes")
    assert (done.status, len(done.out.splitlines())) == (77, 2)
    assert sorted(re.sub(r"-\d.*", "", name) for name in machine.files()) == [
        "identity.json.reset",
        "join.pending.refused",
        "node.key.reset",
    ]
    assert machine.run("status").status == 75
    assert machine.join(plane.token()).status == 0


def test_a_name_that_is_taken_is_never_replaced(joined: Machine, machine: Machine, plane: Plane) -> None:
    """Decision 7: names taken: `...Z.1` - twice in the same second, or a clock set back."""
    copy_of(joined, machine)
    now = datetime.now(UTC)
    taken = {}
    for seconds in range(60):
        stamp = (now + timedelta(seconds=seconds)).strftime("%Y%m%dT%H%M%SZ")
        for name in ("identity.json", "node.key"):
            (machine.data / f"{name}.reset-{stamp}").write_text(f"of an earlier reset {stamp} {name}")
    taken = {name: data for name, data in machine.files().items() if ".reset-" in name}
    done = machine.join(plane.token(), "--reset", "--yes")
    assert done.status == 0, done.err
    moved = [line.split(" -> ")[1] for line in done.out.splitlines()[:-1]]
    assert all(name.endswith("Z.1") for name in moved)
    after = machine.files()
    assert {name: after[name] for name in taken} == taken
    assert {after[name] for name in moved} == set(joined.files().values())


def test_a_reset_of_nothing_says_so(machine: Machine, plane: Plane) -> None:
    """Specification, "--reset": "whichever exist"."""
    done = machine.run("join", "--reset")
    assert (done.status, done.out) == (2, f"{machine.data} holds no identity; bcd join joins\n")
    assert not machine.data.exists()
    done = machine.join(plane.token(), "--reset", "--yes")
    assert (done.status, done.out[:12], len(done.out.splitlines())) == (0, "joined as n-", 1)


def test_a_key_without_an_identity_is_kept(machine: Machine, plane: Plane, joined: Machine) -> None:
    """Decision 6: moved to `node.key.orphan-<UTC>` by a join, never overwritten."""
    key = (copy_of(joined, machine).data / "node.key").read_bytes()
    (machine.data / "identity.json").unlink()
    assert machine.join(plane.token()).status == 0
    (orphan,) = [name for name in machine.files() if "orphan" in name]
    assert re.fullmatch(r"node\.key\.orphan-\d{8}T\d{6}Z", orphan)
    assert machine.files()[orphan] == key != machine.files()["node.key"]


def test_a_pending_join_that_is_garbage_is_told_and_given_up_by_reset(machine: Machine, plane: Plane) -> None:
    """Decision 8: "moved by reset"."""
    machine.data.mkdir(mode=0o700)
    pending = machine.data / "join.pending"
    pending.write_text("{torn")
    pending.chmod(0o600)
    line = f"{pending}: is not JSON (torn?); to give that join up: bcd join --reset --yes, then bcd join\n"
    done = machine.join(plane.token())
    assert (done.status, done.out, done.err) == (76, "", line)
    done = machine.join(plane.token(), "--reset", "--yes")
    assert (done.status, "moved join.pending -> join.pending.reset-" in done.out) == (0, True)
