"""What every implementation of the port `Fs` does."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import pytest

from bcd.domain.model.datadir import IDENTITY, JOURNAL, KEY, NEXT_KEY, PENDING
from bcd.domain.model.failures import Failure, Message, TryLater
from bcd.ports.fs import Fs
from tests.fakes.clock import ManualClock

NAMES = (IDENTITY, KEY, NEXT_KEY, PENDING, JOURNAL)
NO_NAMES = ("../a", "a/b", "/a", "..", ".", "", "a\nb", "a\0b")
ELSEWHERE = b"somebody else's"


class Place(Protocol):
    """A directory to be, and what a test does behind an implementation's back."""

    clock: ManualClock

    def fs(self) -> Fs: ...

    def plant_file(self, name: str, data: bytes) -> None: ...

    def plant_link(self, name: str) -> None:
        """A symbolic link to a file outside that holds ELSEWHERE."""
        ...

    def plant_directory(self, name: str) -> None: ...

    def elsewhere(self) -> bytes: ...

    def files(self) -> dict[str, bytes]: ...

    def mode(self, name: str) -> int:
        """Of the directory itself for an empty name."""
        ...


def refused(message: Message, call: Callable[[], object]) -> Failure:
    with pytest.raises(Failure) as caught:
        call()
    assert caught.value.message is message
    return caught.value


class FsContract:
    @staticmethod
    def without_the_directory_there_is_nothing(place: Place) -> None:
        fs = place.fs()
        assert fs.look() is None
        assert fs.entries() == ()
        assert fs.read(KEY, 10) is None
        assert fs.move_aside(KEY, "aside") is None
        assert fs.hand_over(KEY) is False
        fs.remove(KEY)
        refused(Message.FILE_SYSTEM, lambda: fs.write(KEY, b"key"))
        assert fs.look() is None

    @staticmethod
    def the_lock_makes_the_directory_0700(place: Place) -> None:
        fs = place.fs()
        with fs.lock(0):
            pass
        found = fs.look()
        assert found is not None
        assert (found.mode, found.uid, found.read_only) == (0o700, os.geteuid(), False)
        assert found.free_bytes > 0
        assert place.mode("") == 0o700

    @staticmethod
    def what_is_written_is_read_and_is_0600(place: Place) -> None:
        fs = place.fs()
        for data in (b"", b"key", bytes(range(256)) * 600):
            with fs.lock(0):
                fs.write(KEY, data)
            assert fs.read(KEY, 1 << 20) == data
            assert place.files() == {KEY: data}
            assert place.mode(KEY) == 0o600

    @staticmethod
    def a_write_replaces_the_whole_file_and_leaves_no_other(place: Place) -> None:
        fs = place.fs()
        with fs.lock(0):
            fs.write(IDENTITY, b"a long identity")
            fs.write(IDENTITY, b"short")
        assert place.files() == {IDENTITY: b"short"}

    @staticmethod
    def a_file_that_is_read_stays_what_it_was_when_it_is_replaced(place: Place) -> None:
        fs = place.fs()
        with fs.lock(0):
            fs.write(IDENTITY, b"one")
            before = fs.entries()
            fs.write(IDENTITY, b"two")
        assert before[0].inode != fs.entries()[0].inode

    @staticmethod
    def a_read_stops_one_byte_after_its_limit(place: Place) -> None:
        fs = place.fs()
        place.plant_file(KEY, b"0123456789")
        assert fs.read(KEY, 10) == b"0123456789"
        assert fs.read(KEY, 9) == b"0123456789"
        assert fs.read(KEY, 8) == b"012345678"

    @staticmethod
    def entries_are_all_names_sorted_and_tell_what_is_there(place: Place) -> None:
        fs = place.fs()
        place.plant_file(NEXT_KEY, b"12345")
        place.plant_file(IDENTITY, b"")
        place.plant_link(KEY)
        place.plant_directory("folder")
        found = fs.entries()
        assert [entry.name for entry in found] == ["folder", IDENTITY, KEY, NEXT_KEY]
        assert [entry.regular for entry in found] == [False, True, False, True]
        assert (found[3].size, found[3].mode, found[3].uid) == (5, 0o600, os.geteuid())

    @staticmethod
    def a_rename_replaces(place: Place) -> None:
        fs = place.fs()
        place.plant_file(NEXT_KEY, b"new")
        place.plant_file(KEY, b"old")
        with fs.lock(0):
            fs.rename(NEXT_KEY, KEY)
        assert place.files() == {KEY: b"new"}
        refused(Message.FILE_SYSTEM, lambda: fs.rename(NEXT_KEY, KEY))
        assert place.files() == {KEY: b"new"}

    @staticmethod
    def moving_aside_replaces_nothing_and_says_the_name(place: Place) -> None:
        fs = place.fs()
        for number, name in enumerate(("aside", "aside.1", "aside.2")):
            place.plant_file(KEY, f"key {number}".encode())
            with fs.lock(0):
                assert fs.move_aside(KEY, "aside") == name
        assert place.files() == {"aside": b"key 0", "aside.1": b"key 1", "aside.2": b"key 2"}
        assert fs.move_aside(KEY, "aside") is None
        assert len(place.files()) == 3

    @staticmethod
    def moving_a_link_aside_moves_the_link(place: Place) -> None:
        fs = place.fs()
        place.plant_link(KEY)
        with fs.lock(0):
            assert fs.move_aside(KEY, "aside") == "aside"
        assert [(entry.name, entry.regular) for entry in fs.entries()] == [("aside", False)]
        assert place.elsewhere() == ELSEWHERE

    @staticmethod
    def removing_twice_is_removing(place: Place) -> None:
        fs = place.fs()
        place.plant_file(KEY, b"key")
        place.plant_file(NEXT_KEY, b"next")
        with fs.lock(0):
            fs.remove(NEXT_KEY)
            fs.remove(NEXT_KEY)
        assert place.files() == {KEY: b"key"}

    @staticmethod
    def a_planted_link_is_never_followed(place: Place) -> None:
        fs = place.fs()
        for name in NAMES:
            place.plant_link(name)
            refused(Message.NOT_A_FILE, lambda name=name: fs.read(name, 100))  # type: ignore[misc]
            with fs.lock(0):
                fs.write(name, b"ours")
            assert fs.read(name, 100) == b"ours"
        assert place.elsewhere() == ELSEWHERE
        assert place.files() == dict.fromkeys(NAMES, b"ours")

    @staticmethod
    def removing_a_link_removes_the_link(place: Place) -> None:
        fs = place.fs()
        place.plant_link(KEY)
        with fs.lock(0):
            fs.remove(KEY)
        assert fs.entries() == ()
        assert place.elsewhere() == ELSEWHERE

    @staticmethod
    def a_planted_directory_is_no_file(place: Place) -> None:
        fs = place.fs()
        for name in NAMES:
            place.plant_directory(name)
            failure = refused(Message.NOT_A_FILE, lambda name=name: fs.read(name, 100))  # type: ignore[misc]
            assert name in failure.text
            refused(Message.NOT_A_FILE, lambda name=name: fs.remove(name))  # type: ignore[misc]
        assert [entry.name for entry in fs.entries()] == sorted(NAMES)

    @staticmethod
    def a_name_that_leaves_the_directory_is_refused(place: Place) -> None:
        fs = place.fs()
        place.plant_file(KEY, b"key")
        for name in NO_NAMES:
            for call in (
                lambda name: fs.read(name, 1),
                lambda name: fs.write(name, b""),
                fs.remove,
                # An empty name is the directory, which is handed over as its files are.
                lambda name: fs.hand_over(name or "."),
                lambda name: fs.rename(name, "b"),
                lambda name: fs.rename(KEY, name),
                lambda name: fs.move_aside(name, "b"),
                lambda name: fs.move_aside(KEY, name),
            ):
                with pytest.raises(ValueError, match="not a plain name"):
                    call(name)
        assert place.files() == {KEY: b"key"}

    @staticmethod
    def one_writer_at_a_time(place: Place) -> None:
        one, other = place.fs(), place.fs()
        with one.lock(0):
            failure = refused(Message.LOCKED, lambda: enter(other.lock(45)))
            assert isinstance(failure, TryLater)
            assert sum(place.clock.waits) >= 45
            one.write(KEY, b"one's")
        with other.lock(0):
            other.write(KEY, b"other's")
        assert place.files() == {KEY: b"other's"}

    @staticmethod
    def a_lock_ends_with_its_block_whatever_ends_that(place: Place) -> None:
        one, other = place.fs(), place.fs()
        with pytest.raises(KeyError), one.lock(0):
            raise KeyError
        with other.lock(0):
            pass
        with one.lock(0):
            pass

    @staticmethod
    def who_waits_gets_the_lock_when_it_is_free(place: Place) -> None:
        one, other = place.fs(), place.fs()
        held = one.lock(0)
        held.__enter__()
        place.clock.on_wait = lambda: held.__exit__(None, None, None) if len(place.clock.waits) == 3 else None
        with other.lock(45):
            pass
        assert len(place.clock.waits) == 3

    @staticmethod
    def a_reader_needs_no_lock(place: Place) -> None:
        one, other = place.fs(), place.fs()
        with one.lock(0):
            one.write(KEY, b"key")
            assert other.read(KEY, 10) == b"key"
            assert [entry.name for entry in other.entries()] == [KEY]

    @staticmethod
    def a_writer_sweeps_what_an_interrupted_write_left_and_nothing_else(place: Place) -> None:
        fs = place.fs()
        place.plant_file(".bcd-node.key.0123456789abcdef", b"half")
        place.plant_file(".other", b"not ours")
        place.plant_file("bcd-node.key", b"not ours either")
        assert len(fs.entries()) == 3
        with fs.lock(0):
            assert place.files() == {".other": b"not ours", "bcd-node.key": b"not ours either"}

    @staticmethod
    def without_an_owner_nothing_is_handed_over(place: Place) -> None:
        fs = place.fs()
        place.plant_file(KEY, b"key")
        assert fs.hand_over(KEY) is False
        assert fs.hand_over(NEXT_KEY) is False


def enter(lock: AbstractContextManager[None]) -> None:
    with lock:
        pass
