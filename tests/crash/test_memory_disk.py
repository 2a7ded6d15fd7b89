"""The memory disk keeps no more than POSIX promises, and no less."""

import errno

import pytest

from tests.crash.directories import PATH
from tests.fakes.memory_disk import File, Folder, Link, MemoryDisk, PowerLost


@pytest.fixture
def disk() -> MemoryDisk:
    made = MemoryDisk()
    made.plant(PATH, Folder())
    return made


def _contents(disk: MemoryDisk, name: str) -> set[bytes | None]:
    return {found.files(PATH).get(name) for found in disk.states_at(len(disk.trace))}


def test_what_is_not_synced_may_be_absent_empty_half_or_whole(disk: MemoryDisk) -> None:
    """B03, B07."""
    directory = disk.open_directory(PATH)
    disk.write(disk.create(directory, "a"), b"content!")
    assert _contents(disk, "a") == {None, b"", b"cont", b"content!"}


def test_a_synced_file_has_a_name_only_when_its_directory_is_synced_too(disk: MemoryDisk) -> None:
    """B03."""
    directory = disk.open_directory(PATH)
    file = disk.create(directory, "a")
    disk.write(file, b"content!")
    disk.sync(file)
    assert _contents(disk, "a") == {None, b"content!"}
    disk.sync(directory)
    assert _contents(disk, "a") == {b"content!"}


def test_each_change_of_a_name_may_be_lost_on_its_own(disk: MemoryDisk) -> None:
    """B03: a later one may be kept where an earlier one is lost."""
    for name in "ab":
        disk.plant(f"{PATH}/{name}", File(name.encode()))
    directory = disk.open_directory(PATH)
    disk.rename(directory, "a", "c")
    disk.unlink(directory, "b")
    found = {frozenset(found.files(PATH)) for found in disk.states_at(2)}
    assert found == {frozenset("ab"), frozenset("bc"), frozenset("a"), frozenset("c")}
    assert disk.at(2).files(PATH).keys() == {"c"}


def test_a_directory_is_there_when_its_parent_was_synced_and_not_before() -> None:
    """B03."""
    disk = MemoryDisk()
    disk.make_directory("/data")
    directory = disk.open_directory("/data")
    disk.sync(disk.create(directory, "a"))
    disk.sync(directory)
    assert {len(found.image.names) for found in disk.states_at(len(disk.trace))} == {0, 1}
    disk.sync_parent("/data")
    (found,) = disk.states_at(len(disk.trace))
    assert found.files("/data") == {"a": b""}


def test_an_owner_is_safe_after_a_sync_of_the_file_or_of_its_directory(disk: MemoryDisk) -> None:
    """B13."""
    disk.plant(f"{PATH}/a", File(b""))
    directory = disk.open_directory(PATH)
    disk.chown_name(directory, "a", 970, 971)
    owners = [{found.stat(found.open_directory(PATH), "a").st_uid for found in disk.states_at(n)} for n in (0, 1)]
    disk.sync(directory)
    owners.append({found.stat(found.open_directory(PATH), "a").st_uid for found in disk.states_at(2)})
    assert owners == [{0}, {0, 970}, {970}]


def test_the_power_goes_before_the_change_that_was_named(disk: MemoryDisk) -> None:
    directory = disk.open_directory(PATH)
    disk.power_lost_before = 1
    disk.create(directory, "a")
    with pytest.raises(PowerLost):
        disk.create(directory, "b")
    with pytest.raises(PowerLost):
        disk.unlink(directory, "a")
    assert disk.files(PATH) == {"a": b""}


def test_a_lock_is_one_open_files_until_that_is_closed(disk: MemoryDisk) -> None:
    first, second = disk.open_directory(PATH), disk.open_directory(PATH)
    assert [disk.try_lock(first), disk.try_lock(first), disk.try_lock(second)] == [True, True, False]
    disk.close(first)
    assert disk.try_lock(second)


def test_no_link_is_followed_and_no_name_taken_twice(disk: MemoryDisk) -> None:
    disk.plant(f"{PATH}/link", Link())
    disk.plant(f"{PATH}/file", File(b""))
    directory = disk.open_directory(PATH)
    for call, code in [
        (lambda: disk.open(directory, "link"), errno.ELOOP),
        (lambda: disk.open(directory, "none"), errno.ENOENT),
        (lambda: disk.open_directory(f"{PATH}/link"), errno.ELOOP),
        (lambda: disk.open_directory(f"{PATH}/file"), errno.ENOTDIR),
        (lambda: disk.create(directory, "link"), errno.EEXIST),
        (lambda: disk.rename_new(directory, "file", "link"), errno.EEXIST),
        (lambda: disk.make_directory("/no/where"), errno.ENOENT),
    ]:
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == code
