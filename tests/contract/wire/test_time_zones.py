"""B25: the same instants in every time zone and through the nights clocks change, and no naive datetime anywhere."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Fourteen hours ahead, three and a half behind with half-hour steps, and two places on the nights clocks change.
ZONES = ["Pacific/Kiritimati", "America/St_Johns", "Europe/Berlin", "America/New_York"]
DATE_SENSITIVE = [
    "tests/unit/domain/model/test_datadir.py",
    "tests/unit/domain/model/test_identity.py",
    "tests/unit/protocol/files/test_encoding.py",
    "tests/unit/protocol/pki/test_join_response.py",
]

# Everything the pure code does with a time, at instants of which local time has two or none (Berlin: 2026-10-25 00:30
# and 01:30 UTC are both 02:30; 2026-03-29 01:00 UTC is the end of the hour that is not there; New York and St. John's:
# 2026-11-01 and 2026-03-08).
TOLD = """
import json, sys
from datetime import UTC, datetime, timedelta
from bcd.domain.model import datadir
from bcd.domain.model.identity import Identity, renew_at
from bcd.domain.model.names import NodeId
from bcd.protocol.files import identity_json
from bcd.protocol.pki.certificates import check_chain
from tests.fakes import pki

told = []
for start in ("2026-10-25T00:30", "2026-10-25T01:30", "2026-03-29T00:59", "2026-03-29T01:00", "2026-11-01T05:30",
              "2026-11-01T06:30", "2026-03-08T06:59", "2026-03-08T07:00", "2026-11-01T03:30", "2026-12-31T23:59"):
    at = datetime.fromisoformat(start + "+00:00")
    issuer = pki.ca(not_before=at - timedelta(days=1), not_after=at + timedelta(days=2))
    chain = pki.chain(issuer, not_before=at, not_after=at + timedelta(hours=24))
    leaf = check_chain(chain, at)
    file = json.loads(identity_json.encode(Identity(leaf, chain, None, at)))
    again = identity_json.decode(identity_json.encode(Identity(leaf, chain, None, at)))
    told.append([str(leaf.not_before), str(leaf.not_after), file["notAfter"], file["serverTime"],
                 str(again.server_time), renew_at(leaf).isoformat(), str(leaf.lifetime), datadir.stamp(at),
                 datadir.other_nodes_journal(NodeId("n"), at)])
    for outside in (at - timedelta(seconds=1), at + timedelta(hours=24)):
        try:
            check_chain(chain, outside)
        except ValueError as error:
            told.append(str(error))
        else:
            told.append("accepted out of date")
print(json.dumps(told))
"""


def python(zone: str, *args: str) -> str:
    env = os.environ | {"TZ": zone, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *args], cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_nights_clocks_change_are_the_same_instants_in_every_zone() -> None:
    here = python("UTC", "-c", TOLD)
    assert "accepted out of date" not in here
    assert {zone: python(zone, "-c", TOLD) == here for zone in ZONES} == dict.fromkeys(ZONES, True)


def test_the_zones_are_really_other_zones() -> None:
    """Without a zone database every zone is UTC, and the test above would pass for nothing."""
    code = "import time; print(time.localtime(1790424000).tm_hour, time.localtime(1790424000).tm_min)"
    assert len({python(zone, "-c", code) for zone in ["UTC", *ZONES]}) == 5


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "America/St_Johns"])
def test_the_date_sensitive_suites_pass_in(zone: str) -> None:
    python(zone, "-m", "pytest", "-q", "-p", "no:cacheprovider", *DATE_SENSITIVE)


# Read, these are naive (cryptography); called, they are the builder's, which takes aware ones.
NAIVE_PROPERTIES = {"not_valid_after", "not_valid_before", "last_update", "next_update", "revocation_date"}
NAIVE_CALLS = {"utcnow", "utcfromtimestamp", "localtime", "mktime", "ctime", "today", "strptime"}
# How many arguments it takes before one of them is the zone.
NEEDS_ZONE = {"now": 1, "fromtimestamp": 2, "ToDatetime": 1, "datetime": 8}


def naive(source: str) -> Iterator[str]:
    """What in `source` makes or reads a datetime without a zone, with its line."""
    tree = ast.parse(source)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in NAIVE_PROPERTIES and id(node) not in called:
            yield f"{node.lineno}: {node.attr}"
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        zoned = any(word.arg in {"tz", "tzinfo"} for word in node.keywords)
        if name == "datetime" and not node.args and not node.keywords:
            continue
        if name == "now" and getattr(getattr(node.func, "value", None), "id", "") != "datetime":
            # A port's `now()` is not datetime's.
            continue
        if name in NAIVE_CALLS or (name in NEEDS_ZONE and not zoned and len(node.args) < NEEDS_ZONE[name]):
            yield f"{node.lineno}: {name}"


def test_no_naive_datetime_is_made_or_read_in_the_product() -> None:
    found = {
        str(path.relative_to(ROOT)): list(naive(path.read_text(encoding="utf-8")))
        for path in sorted((ROOT / "bcd").rglob("*.py"))
        if not path.name.endswith(("_pb2.py", "_pb2_grpc.py"))
    }
    assert len(found) > 20
    assert {path: places for path, places in found.items() if places} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "x = datetime.utcnow()",
        "x = datetime.datetime.utcfromtimestamp(0)",
        "x = datetime.now()",
        "x = datetime.fromtimestamp(0)",
        "x = datetime.today()",
        "x = datetime(2026, 1, 1)",
        "x = dt.datetime(2026, 1, 1, 0, 0)",
        "x = datetime.strptime('2026', '%Y')",
        "x = certificate.not_valid_after",
        "x = f(certificate.not_valid_before)",
        "x = response.server_time.ToDatetime()",
        "x = time.localtime()",
        "x = time.mktime(y)",
    ],
)
def test_a_planted_naive_datetime_is_found(planted: str) -> None:
    assert len(list(naive(planted))) == 1


@pytest.mark.parametrize(
    "fine",
    [
        "x = datetime.now(UTC)",
        "x = datetime.now(tz=UTC)",
        "x = datetime.fromtimestamp(0, UTC)",
        "x = datetime(2026, 1, 1, tzinfo=UTC)",
        "x = datetime(2026, 1, 1, 0, 0, 0, 0, UTC)",
        "x = certificate.not_valid_after_utc",
        "x = builder.not_valid_after(y)",
        "x = response.server_time.ToDatetime(tzinfo=UTC)",
        "x = clock.now()",
    ],
)
def test_an_aware_one_is_not(fine: str) -> None:
    assert list(naive(fine)) == []
