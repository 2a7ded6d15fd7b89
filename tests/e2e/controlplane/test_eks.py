"""Manufacturers' CAs and the list of endorsement keys, as an operator keeps them: with a server and without."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from bcd.controlplane.cli.ek_csv import MAX_ROWS
from tests.fakes import commands
from tests.fakes import manufacturer as maker
from tests.fakes.commands import Ran
from tests.fakes.node_process import NodeProcess
from tests.fakes.plane import Plane

ROOT = maker.root()
ISSUING = ROOT.below(9003, "Maker Issuing CA")
ODD = maker.root(9009, subject=maker.name("Odd CA", one_set=True, sorted_=False))
A, B = "aa" * 32, "bb" * 32
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
VERSION_2 = Path(__file__).resolve().parents[2] / "contract" / "store" / "version_2.sql"


def fingerprint(der: bytes) -> str:
    return f"sha256:{sha256(der).hexdigest()}"


def run(plane: Plane, *words: str) -> Ran:
    return commands.run("bcd-controlplane", *words, "--dir", str(plane.directory))


@pytest.fixture(params=["with a server", "without one"])
def plane(request: pytest.FixtureRequest, fresh: Plane) -> Plane:
    if request.param == "with a server":
        fresh.serve()
    return fresh


def rows(plane: Plane, *words: str) -> Any:
    return plane.json(*words)


def test_cas_come_from_a_directory_and_admit_until_told_otherwise(plane: Plane, tmp_path: Path) -> None:
    (tmp_path / "cas").mkdir()
    for name, ca in (("root.der", ROOT), ("issuing.cer", ISSUING), ("again.crt", ROOT), ("odd.der", ODD)):
        (tmp_path / "cas" / name).write_bytes(ca.der)
    (tmp_path / "cas" / "readme.pem").write_bytes(b"not one")
    assert plane.admin("ek-roots", "import", str(tmp_path / "cas")).out == (
        "3 manufacturer CAs: 3 added, 0 known\nskipped readme.pem: no certificate in it\n"
    )
    listed = rows(plane, "ek-roots", "list")
    assert {row["fingerprint"] for row in listed} == {fingerprint(ca.der) for ca in (ROOT, ISSUING, ODD)}
    assert {frozenset(row) for row in listed} == {
        frozenset(("fingerprint", "subject", "issuer", "notBefore", "notAfter", "admitsSite", "admitsRole", "added"))
    }
    name = fingerprint(ROOT.der)
    said = plane.admin("ek-roots", "admit", name, "--site", "lab", "--role", "node").out
    assert said.startswith("every machine whose TPM CN=Maker Root CA, O=Maker Ltd, C=XX vouches for may join site lab")
    assert said.endswith(f"bcd-controlplane ek-roots withdraw {name} ends it\n")
    (row,) = [row for row in rows(plane, "ek-roots", "list") if row["fingerprint"] == name]
    assert (row["admitsSite"], row["admitsRole"]) == ("lab", "node")
    assert "lab" in plane.admin("ek-roots", "list").out
    plane.admin("ek-roots", "withdraw", name)
    assert rows(plane, "ek-roots", "withdraw", name)["admitsSite"] is None
    assert rows(plane, "ek-roots", "remove", name) == {
        "fingerprint": name,
        "subject": "CN=Maker Root CA, O=Maker Ltd, C=XX",
    }
    kinds = [event["kind"] for event in rows(plane, "audit", "tail") if event["kind"].startswith("ek")]
    assert kinds == ["ek-root.added"] * 3 + ["ek-root.admits", "ek-root.withdrawn", "ek-root.removed"]


def test_what_import_did_is_told_to_machines(fresh: Plane, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "cas.zip", "w") as archive:
        archive.writestr("a.der", ROOT.der)
        archive.writestr("b.der", b"wrong")
    assert rows(fresh, "ek-roots", "import", str(tmp_path / "cas.zip")) == {
        "added": 1,
        "known": 0,
        "skipped": [{"file": "b.der", "why": "no certificate in it"}],
    }


def test_a_site_and_a_role_are_said_to_admit(fresh: Plane) -> None:
    for words in (("--site", "lab"), ("--role", "node"), ("--site", "a/b", "--role", "node")):
        done = run(fresh, "ek-roots", "admit", fingerprint(ROOT.der), *words)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("bcd-controlplane ek-roots admit: ")


def test_keys_are_allowed_denied_and_taken_off(plane: Plane) -> None:
    said = plane.admin("ek", "allow", A, "--site", "lab", "--node-id", "rack-7", "--note", "rack 7").out
    assert said == f"sha256:{A} may join site lab as rack-7, role node\n"
    assert plane.admin("ek", "deny", f"sha256:{B}", "--note", "stolen").out == f"sha256:{B} is denied\n"
    listed = rows(plane, "ek", "list")
    for row in listed:
        del row["listed"]
    assert listed == [
        {
            "publicKeySha256": f"sha256:{A}",
            "state": "allowed",
            "site": "lab",
            "role": "node",
            "nodeId": "rack-7",
            "joinedAs": None,
            "note": "rack 7",
            "others": [],
        },
        {
            "publicKeySha256": f"sha256:{B}",
            "state": "denied",
            "site": None,
            "role": "node",
            "nodeId": None,
            "joinedAs": None,
            "note": "stolen",
            "others": [],
        },
    ]
    text = plane.admin("ek", "list").out
    assert text.splitlines()[0].split() == ["PUBLIC", "KEY", "STATE", "SITE", "ROLE", "NODE", "JOINED", "AS", "NOTE"]
    assert "rack 7" in text and "stolen" in text
    assert plane.admin("ek", "remove", A).out == f"sha256:{A} removed from the list\n"
    assert [row["publicKeySha256"] for row in rows(plane, "ek", "list")] == [f"sha256:{B}"]


def test_a_file_is_imported_whole_or_not_at_all(plane: Plane, tmp_path: Path) -> None:
    plane.admin("ek", "deny", B)
    file = tmp_path / "eks.csv"
    file.write_text(f"ek,site,node_id\n{A},lab,rack-7\n{B},lab,rack-8\n")
    done = run(plane, "ek", "import", str(file))
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        f"{file}, line 3: sha256:{B} is denied; nothing was changed: put that right, then import it again\n"
    )
    assert len(rows(plane, "ek", "list")) == 1
    plane.admin("ek", "remove", B)
    assert plane.admin("ek", "import", str(file)).out == "2 added, 0 changed, 0 as they were\n"
    assert rows(plane, "ek", "import", str(file)) == {"added": 0, "changed": 0, "unchanged": 2}


def test_the_largest_import_fits_through_the_socket(fresh: Plane, tmp_path: Path) -> None:
    fresh.serve()
    file = tmp_path / "eks.csv"
    file.write_text(
        "ek,site,role,node_id,note\n"
        + "".join(f"{number:064x},lab,node,rack-{number},{'n' * 150}\n" for number in range(MAX_ROWS))
    )
    assert rows(fresh, "ek", "import", str(file))["added"] == MAX_ROWS
    assert len(rows(fresh, "ek", "list")) == MAX_ROWS


def test_an_empty_list_says_so(fresh: Plane) -> None:
    assert fresh.admin("ek", "list").out == "no endorsement keys\n"
    assert fresh.admin("ek-roots", "list").out == "no manufacturer CAs\n"


def test_a_directory_of_an_older_version_goes_on(fresh: Plane) -> None:
    """Its node stays, and what is new in this version works."""
    store = fresh.directory / "store.db"
    with closing(sqlite3.connect(store)) as new:
        bundles = new.execute("SELECT version, signed FROM bundles").fetchall()
    for file in fresh.directory.glob("store.db*"):
        file.unlink()
    with closing(sqlite3.connect(store)) as old:
        old.executescript(VERSION_2.read_text(encoding="utf-8"))
        old.executemany("INSERT INTO bundles VALUES (?, ?)", bundles)
        old.execute(
            "INSERT INTO nodes VALUES ('n-1', 'lab', 'node', 1, '', ?, '0.1.0', 'aaaaaaaaaa', 1, 1, NULL, NULL, '')",
            (
                json.dumps(
                    {
                        "product_uuid": "",
                        "product_serial": "",
                        "board_serial": "",
                        "chassis_serial": "",
                        "macs": [],
                        "gpu_uuids": [],
                        "hostname": "metal",
                        "boot_id": "",
                    }
                ),
            ),
        )
        old.commit()
    fresh.serve()
    assert [row["id"] for row in rows(fresh, "nodes", "list")] == ["n-1"]
    fresh.admin("ek", "allow", A, "--site", "lab", "--node-id", "n-1")
    fresh.stop()
    assert [row["nodeId"] for row in rows(fresh, "ek", "list")] == ["n-1"]


def test_a_tpm_is_refused_admitted_by_its_manufacturer_and_shut_out(fresh: Plane, tmp_path: Path) -> None:
    fresh.serve()
    fresh.node_config()
    state, maker_of_it = tmp_path / "tpm.json", tmp_path / "maker"
    made = commands.run("bcd-fakehw", "tpm", "manufacture", "--state", str(state), "--ca", str(maker_of_it))
    assert made.status == 0, made.err
    machine, tpm = fresh.machine(), {"BCD_FAKEHW_TPM": f"sim:{state}"}

    assert machine.run("join", "--attestor", "tpm", env=tpm).status == 77
    (refusal,) = rows(fresh, "refusals", "list")
    assert refusal["reason"] == "ek-ca-unknown"
    assert refusal["detail"].startswith("no CA known here is CN=bcd test TPM issuing CA (endorsement key sha256:")

    assert rows(fresh, "ek-roots", "import", str(maker_of_it))["added"] == 2
    (root,) = [row for row in rows(fresh, "ek-roots", "list") if row["subject"] == row["issuer"]]
    fresh.admin("ek-roots", "admit", root["fingerprint"], "--site", "barn", "--role", "node")
    joined = machine.run("join", "--attestor", "tpm", env=tpm)
    assert joined.status == 0, joined.err
    (node,) = rows(fresh, "nodes", "list")
    assert node["site"] == "barn"

    process = NodeProcess(machine).start()
    try:
        process.up()
        said = fresh.admin("ek", "deny", node["ek"]).out
        assert f"it is node {node['id']}, which renews no more" in said
        ((other,),) = [row["others"] for row in rows(fresh, "ek", "list")]
        assert (other["tie"], other["state"], other["joinedAs"]) == ("shown", "", None)
        assert said.endswith(f"bcd-controlplane ek deny {other['publicKeySha256']} keeps that out as well\n")
        fresh.admin("nodes", "renew-now", node["id"])
        process.said("the endorsement key of this node's TPM is denied")
        assert process.runs()
    finally:
        process.stop()
    assert [row["joinedAs"] for row in rows(fresh, "ek", "list")] == [node["id"]]
    # Either key keeps it out.
    fresh.admin("ek", "remove", node["ek"])
    assert f"ek deny {node['ek']} keeps it out" in fresh.admin("nodes", "revoke", node["id"], "--reason", "stolen").out
    fresh.admin("ek", "deny", other["publicKeySha256"])
    other = fresh.machine()
    assert other.run("join", "--attestor", "tpm", env=tpm).status == 77
    assert rows(fresh, "refusals", "list")[0]["reason"] == "ek-denied"


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not here")
def test_every_manufacturers_ca_that_was_collected_is_taken(plane: Plane) -> None:
    done = rows(plane, "ek-roots", "import", str(DATA / "tpm-roots"))
    assert (done["added"], done["known"], done["skipped"]) == (45, 0, []), "51 files, six of them twice"
    subjects = [row["subject"] for row in rows(plane, "ek-roots", "list")]
    assert len(subjects) == done["added"]
    assert sum("Nuvoton Technology" in subject for subject in subjects) == 7
