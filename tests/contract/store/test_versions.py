"""A store that an older version made goes on under this one; one that a newer version made is left alone."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bcd.controlplane.adapters.sqlite.schema import CHANGES, OLDEST, VERSION
from bcd.controlplane.adapters.sqlite.store import NewerStore, NotAStore, SqliteStore, create
from bcd.controlplane.domain.eks import TpmKey
from bcd.controlplane.ports.store import StoreUnavailable
from tests.fakes.controlplane import rows

VERSION_2, VERSION_3 = (Path(__file__).with_name(f"version_{number}.sql") for number in (2, 3))


@pytest.fixture
def old(tmp_path: Path) -> str:
    """Version 2, with a token, a node and what the log says of them."""
    path = str(tmp_path / "store.db")
    with closing(sqlite3.connect(path)) as store:
        store.executescript(VERSION_2.read_text(encoding="utf-8"))
        store.executescript(
            """
            INSERT INTO tokens VALUES ('aaaaaaaaaa', x'00', 'lab', 'node', NULL, 0, 0, 1, 2, 1, 0, NULL);
            INSERT INTO nodes VALUES ('n-1', 'lab', 'node', 2, 'uuid board', '{}', '0.1.0', 'aaaaaaaaaa', 1, 1, NULL,
                NULL, '');
            INSERT INTO audit (at, actor, kind, detail) VALUES (1, 'operator', 'store.created', '{}');
            """
        )
    return path


def version(path: str) -> int:
    with closing(sqlite3.connect(path)) as store:
        return int(store.execute("PRAGMA user_version").fetchone()[0])


def tables(path: str) -> dict[str, Any]:
    """Every table's columns and options, every index and trigger."""
    with closing(sqlite3.connect(path)) as store:
        made = store.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        found: dict[str, Any] = {name: " ".join(sql.split()) for kind, name, sql in made if kind != "table"}
        for kind, name, _ in made:
            if kind == "table":
                found[name] = store.execute(f"PRAGMA table_xinfo({name})").fetchall()
        found[""] = sorted(row[1:] for row in store.execute("PRAGMA table_list"))
        return found


def test_every_version_leads_to_the_next() -> None:
    assert sorted(CHANGES) == list(range(OLDEST, VERSION))


def test_an_older_store_keeps_what_it_held_and_takes_what_is_new(old: str) -> None:
    store = SqliteStore(old)
    try:
        node = store.read(lambda r: r.nodes.all())[0]
        assert (node.id, node.generation, node.machine, node.ek) == ("n-1", 2, "uuid board", "")
        assert [token.id for token in store.read(lambda r: r.tokens.all())] == ["aaaaaaaaaa"]
        assert [row.event.kind.value for row in store.read(lambda r: r.audit.latest(5))] == ["store.created"]
        store.change(lambda r: r.ek_roots.put(rows.ek_root())).result()
        store.change(lambda r: r.eks.put(rows.listed_ek())).result()
        assert node.ak_name is None
        store.change(lambda r: r.nodes.put(rows.node("n-2", ek="sha256:00"))).result()
        store.change(lambda r: r.challenges.put(rows.challenge())).result()
    finally:
        store.close()
    assert version(old) == VERSION
    again = SqliteStore(old)
    assert again.read(lambda r: r.eks.all()) == [rows.listed_ek()]
    assert [node.id for node in again.read(lambda r: r.nodes.of_ek("sha256:00"))] == ["n-2"]
    again.close()


def test_an_older_stores_tables_become_those_of_a_new_one(old: str, tmp_path: Path) -> None:
    SqliteStore(old).close()
    create(str(tmp_path / "new.db"))
    assert tables(old) == tables(str(tmp_path / "new.db"))


def test_what_joins_by_tpm_proved_before_there_was_a_place_for_it_is_known(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    with closing(sqlite3.connect(path)) as store:
        store.executescript(VERSION_3.read_text(encoding="utf-8"))
        for detail in (
            {"node": "n-1", "ek": "sha256:01", "ak": "000b01", "nodeKey": "tpm"},
            {"node": "n-1", "ek": "sha256:01", "ak": "000b01", "nodeKey": "unattested"},
            {"node": "n-2", "token": "aaaaaaaaaa"},
        ):
            store.execute(
                "INSERT INTO audit (at, actor, kind, detail) VALUES (1, 'node:x', 'node.joined', ?)",
                (json.dumps(detail),),
            )
        store.execute(
            "INSERT INTO audit (at, actor, kind, detail) VALUES (1, 'operator', 'ek.denied', '{\"ek\": \"sha256:02\"}')"
        )
        store.commit()
    opened = SqliteStore(path)
    assert opened.read(lambda r: r.tpm_keys.of_ek("sha256:01")) == [TpmKey("000b01", "sha256:01", True)]
    assert opened.read(lambda r: r.tpm_keys.of_ek("sha256:02")) == []
    opened.close()
    create(str(tmp_path / "new.db"))
    assert tables(path) == tables(str(tmp_path / "new.db"))


def test_create_brings_an_older_one_up_too(old: str) -> None:
    create(old)
    assert version(old) == VERSION


def test_what_cannot_be_done_whole_is_not_done(old: str) -> None:
    with closing(sqlite3.connect(old)) as store:
        # The last of the changes fails.
        store.execute("CREATE TABLE challenges (id TEXT)")
    before = tables(old)
    with pytest.raises(StoreUnavailable, match="challenges"):
        SqliteStore(old)
    assert tables(old) == before
    assert version(old) == 2


def test_one_that_somebody_else_writes_to_is_left_for_later(old: str) -> None:
    with closing(sqlite3.connect(old, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="BUSY"):
            SqliteStore(old)
    assert version(old) == 2
    SqliteStore(old).close()
    assert version(old) == VERSION


def test_two_that_open_it_at_once_bring_it_up_once(old: str) -> None:
    together = threading.Barrier(4)
    failed: list[BaseException] = []

    def open_it() -> None:
        together.wait(20)
        try:
            SqliteStore(old).close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failed == []
    assert version(old) == VERSION


def test_a_newer_one_is_left_alone(old: str) -> None:
    SqliteStore(old).close()
    with closing(sqlite3.connect(old)) as store:
        store.execute(f"PRAGMA user_version = {VERSION + 1}")
    for opening in (SqliteStore, create):
        with pytest.raises(NewerStore) as caught:
            opening(old)
        assert caught.value.version == VERSION + 1
    assert version(old) == VERSION + 1


def test_one_older_than_any_that_was_given_out_is_no_store(old: str) -> None:
    with closing(sqlite3.connect(old)) as store:
        store.execute(f"PRAGMA user_version = {OLDEST - 1}")
    with pytest.raises(NotAStore, match="has version 1, this bcd-controlplane knows 2 to 4"):
        SqliteStore(old)
