"""A disk that refuses one change, or all of them, and two processes at one directory."""

import errno
from collections.abc import Iterator

import pytest

from bcd.adapters.fs.local import LocalFs, Owner
from bcd.domain.lifecycle.reset import Reset
from bcd.domain.model.datadir import IDENTITY, JOIN_RECORD, KEY, LOCK_WAIT_S, NEXT_KEY, PENDING, reset_name
from bcd.domain.model.failures import Message, TryLater
from tests.crash.directories import BEFORE, PATH, STALE_NEXT, previous
from tests.crash.judge import judge_end, judge_load, request_of, second_join
from tests.crash.memory import SENT, disk_with, judge, local, power_cuts, run
from tests.fakes import joining
from tests.fakes.clock import ManualClock
from tests.fakes.joining import ANY_NODE, ControlPlane, Credential, Recorded
from tests.fakes.memory_disk import File, Folder, MemoryDisk
from tests.fakes.pki import NOW

RECORDS = "/var/lib/bcd-hostconfig"
NO_SPACE, READ_ONLY, BROKEN = errno.ENOSPC, errno.EROFS, errno.EIO


@pytest.mark.parametrize("code", [NO_SPACE, READ_ONLY, BROKEN], ids=errno.errorcode.get)
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_whichever_change_is_refused_nothing_is_lost(before: dict[str, bytes] | None, code: int) -> None:
    """B08, B10: the error is told as what it is, and the next join succeeds."""
    whole = run(before)
    for n, change in enumerate(whole.disk.trace):
        if str(change) == SENT:
            continue
        disk = disk_with(before)
        plane = ControlPlane(lambda disk=disk: disk.mark(SENT))
        disk.fail(code, at=n)
        with pytest.raises(TryLater) as caught:
            joining.join(local(disk), PATH, plane, Credential())(ANY_NODE)
        assert (
            caught.value.message
            is {
                NO_SPACE: Message.NO_SPACE,
                READ_ONLY: Message.READ_ONLY,
                BROKEN: Message.FILE_SYSTEM,
            }[code]
        )
        assert PATH in caught.value.text
        assert not [name for name in disk.files(PATH) if name.startswith(".bcd-")], f"{change} leaves a temporary file"
        sent = request_of(plane)
        judge_load(local(disk), PATH, sent)
        second_join(local(disk), PATH, plane, sent, previous(before))


def test_a_disk_that_is_full_leaves_the_old_file_and_no_other() -> None:
    """B08: whichever byte is the last that fits."""
    data = b"the new content"
    for room in range(len(data)):
        disk = MemoryDisk()
        disk.plant(f"{PATH}/{IDENTITY}", File(b"the old content"))
        disk.free_bytes = room
        with pytest.raises(TryLater, match=f"^No space left on device: {PATH}/identity.json \\(0 bytes free\\)"):
            local(disk).write(IDENTITY, data)
        assert disk.files(PATH) == {IDENTITY: b"the old content"}


def test_a_write_over_an_old_file_is_the_old_or_the_new_one_after_any_cut() -> None:
    """B07, B08."""
    disk = MemoryDisk()
    disk.plant(f"{PATH}/{IDENTITY}", File(b"the old content"))
    local(disk).write(IDENTITY, b"the new content")
    met = {found.files(PATH)[IDENTITY] for n in range(len(disk.trace) + 1) for found in disk.states_at(n)}
    assert met == {b"the old content", b"the new content"}
    assert {found.files(PATH)[IDENTITY] for found in disk.states_at(len(disk.trace))} == {b"the new content"}


def test_every_file_is_its_owners_alone_and_handed_over_before_it_has_its_name() -> None:
    """B07, B13: whatever the cut, a file under its own name is 0600 and belongs to the node's user."""
    disk = disk_with(None)
    fs = LocalFs(PATH, ManualClock(), owner=Owner("bcd", 970, 971), syscalls=disk)
    joining.join(fs, PATH, ControlPlane(), Credential())(ANY_NODE)
    for n in range(len(disk.trace) + 1):
        for found in disk.states_at(n):
            for name, image in _names(found):
                assert image.mode == 0o600
                assert image.owner == (970, 971) or name.startswith(".bcd-")


def test_a_directory_whose_making_was_cut_off_belongs_to_the_nodes_user_in_the_end() -> None:
    """B13: the next join finishes what the killed one began."""
    whole = disk_with(None)
    owner = Owner("bcd", 970, 971)
    joining.join(LocalFs(PATH, ManualClock(), owner=owner, syscalls=whole), PATH, ControlPlane(), Credential())(
        ANY_NODE
    )
    for kill in range(8):
        disk = whole.at(kill)
        fs = LocalFs(PATH, ManualClock(), owner=owner, syscalls=disk)
        joining.join(fs, PATH, ControlPlane(), Credential())(ANY_NODE)
        found = fs.look()
        assert found is not None
        assert found.uid == 970, f"killed after {[str(change) for change in whole.trace[:kill]]}"


def test_there_is_no_identity_without_roots_record_of_it() -> None:
    """B03, B08: under [helper], whatever the cut, and whichever change is refused."""
    disk, plane = disk_with(None), ControlPlane()
    _join_with_record(disk, plane)
    (signed,) = plane.issued.values()
    for n in range(len(disk.trace) + 1):
        for found in disk.states_at(n):
            record = found.files(RECORDS).get(JOIN_RECORD)
            assert record == signed or IDENTITY not in found.files(PATH)
    for n, change in enumerate(disk.trace):
        refusing, asked = disk_with(None), ControlPlane()
        refusing.fail(BROKEN, at=n)
        with pytest.raises(TryLater):
            _join_with_record(refusing, asked)
        assert JOIN_RECORD in refusing.files(RECORDS) or IDENTITY not in refusing.files(PATH), change


def _join_with_record(disk: MemoryDisk, plane: ControlPlane) -> None:
    record = LocalFs(RECORDS, ManualClock(), syscalls=disk)
    joining.join(local(disk), PATH, plane, Credential(), record=record)(ANY_NODE)


@pytest.mark.parametrize("files", [(KEY, IDENTITY), (NEXT_KEY, KEY, IDENTITY), (NEXT_KEY, IDENTITY), (KEY, PENDING)])
def test_a_reset_cut_anywhere_deletes_nothing_and_a_second_one_ends_it(files: tuple[str, ...]) -> None:
    """B10: and as long as identity.json stands, it points back to --reset."""
    whole = run(None)
    (image,) = whole.disk.images_at(len(whole.disk.trace))
    joined = MemoryDisk(image)  # type: ignore[arg-type]
    content = {name: joined.files(PATH).get(name, joined.files(PATH)[KEY]) for name in files}
    # Set aside in the same second, by a reset before this one.
    content |= {reset_name(name, NOW): b"an older one" for name in files}
    disk = MemoryDisk()
    disk.plant(PATH, Folder.of({name: File(data) for name, data in content.items()}))
    with local(disk).lock(LOCK_WAIT_S):
        Reset(local(disk), ManualClock(), Recorded())()
    for n in range(len(disk.trace) + 1):
        for found in disk.states_at(n):
            fs = local(found)
            if IDENTITY in files and IDENTITY not in found.files(PATH):
                # It went last: nothing of what it stood for is left under a name that a join would trip over.
                assert not [name for name in found.files(PATH) if ".reset-" not in name]
            with fs.lock(LOCK_WAIT_S):
                Reset(fs, ManualClock(), Recorded())()
            assert sorted(found.files(PATH).values()) == sorted(content.values())
            assert not {name for name in found.files(PATH) if ".reset-" not in name}


def test_a_join_waits_for_the_other_one_and_then_finds_the_identity() -> None:
    """Two processes: the lock is waited for, and what the other one made is taken."""
    disk = disk_with(None)
    first = local(disk)
    made = joining.join(first, PATH, ControlPlane(), Credential())(ANY_NODE)
    held = first.lock(0)
    held.__enter__()
    clock = ManualClock()
    clock.on_wait = lambda: held.__exit__(None, None, None) if len(clock.waits) == 7 else None
    credential = Credential()
    second = LocalFs(PATH, clock, syscalls=disk)
    joined = joining.join(second, PATH, ControlPlane(), credential, clock=clock)(ANY_NODE)
    assert joined.already
    assert joined.identity == made.identity
    assert credential.taken == 0
    assert len(clock.waits) == 7


def test_a_join_that_waits_for_45_seconds_says_who_holds_the_directory() -> None:
    """Two processes: exit 75, and nothing was read or written."""
    disk = disk_with({})
    clock, credential, plane = ManualClock(), Credential(), ControlPlane()
    with local(disk).lock(0):
        before = disk.image
        fs = LocalFs(PATH, clock, syscalls=disk)
        with pytest.raises(TryLater, match=f"^{PATH} is in use by another process") as caught:
            joining.join(fs, PATH, plane, credential, clock=clock)(ANY_NODE)
    assert caught.value.exit == 75
    assert sum(clock.waits) == pytest.approx(45, abs=0.1)
    assert (disk.image, credential.taken, plane.sent) == (before, 0, [])


def test_a_key_left_by_a_renewal_that_was_cut_off_goes_with_the_next_load() -> None:
    """B01: and only because node.key is the certificate's key."""
    whole = run({})
    (image,) = whole.disk.images_at(len(whole.disk.trace))
    disk = MemoryDisk(image)  # type: ignore[arg-type]
    disk.plant(f"{PATH}/{NEXT_KEY}", File(STALE_NEXT[NEXT_KEY]))
    joined = joining.join(local(disk), PATH, ControlPlane(), Credential(None))(ANY_NODE)
    assert joined.already
    judge_end(local(disk), PATH, joined, whole.request, previous({}))


def test_a_reader_takes_no_lock_and_changes_nothing_whatever_it_finds() -> None:
    """B11: status, doctor and a dry run look at every disk a cut can leave, locked and read-only."""
    whole = run(BEFORE["all of them"])
    for _, disk, sent in power_cuts(whole):
        with local(disk).lock(0):
            disk.read_only = True
            before, changes = disk.image, len(disk.trace)
            judge_load(local(disk), PATH, sent)
            Reset(local(disk), ManualClock(), Recorded()).plan()
            assert (disk.image, len(disk.trace)) == (before, changes)


def test_a_joined_machine_on_a_read_only_disk_is_joined_already() -> None:
    """B10: a join unit that runs on every boot does not fail; left-over names stay until they can go."""
    whole = run({})
    for cut, disk, sent in power_cuts(whole):
        if sent is None or IDENTITY not in disk.files(PATH):
            continue
        disk.read_only = True
        before = disk.image
        joined = joining.join(local(disk), PATH, ControlPlane(), Credential(None))(ANY_NODE)
        assert joined.already, cut
        assert disk.image == before
        disk.read_only = False
        judge(whole, disk, sent)
        judge_end(local(disk), PATH, joined, sent, previous({}))


def _names(disk: MemoryDisk) -> Iterator[tuple[str, File]]:
    folder: object = disk.image
    for part in PATH.strip("/").split("/"):
        folder = dict(folder.names).get(part) if isinstance(folder, Folder) else None
    if isinstance(folder, Folder):
        yield from ((name, image) for name, image in folder.names if isinstance(image, File))
