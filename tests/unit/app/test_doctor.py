"""The report of doctor, as a function of what was seen: each finding, its level and the way back."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bcd.app.doctor import Doctor
from bcd.app.findings import JOIN_AGAIN, Check, Finding, Level
from bcd.app.look import PendingUnreadable, Sight
from bcd.domain.model.datadir import KEY, MAX_FILE_BYTES, NEXT_KEY, Directory
from bcd.domain.model.failures import Failure, FixConfiguration, Message, MustJoinAgain, NotJoined, Refused, TryLater
from bcd.domain.model.identity import renew_at
from bcd.domain.model.keys import KeyKind
from bcd.domain.model.loading import Loaded, LoadedAsIs, PromoteNext, RemoveNext
from bcd.domain.model.names import Role
from bcd.domain.model.pending import PendingJoin
from bcd.domain.model.pins import Pin, Pins
from bcd.domain.model.tpm import EkKind, EndorsementKey, TpmFound
from bcd.ports.journal import CorruptJournal, JournalOf, NoJournal, Told
from bcd.protocol.files.config import Address, Config
from tests.fakes import pki
from tests.fakes.memory_node import PATH, identity

IDENTITY = identity()
LEAF = IDENTITY.leaf
PIN = Pins((Pin.of(b"key"),))
CONFIG = Config("/nowhere/config.toml", PATH, Address("cp", 1), Address("cp", 2), PIN, PIN, PIN)
DIRECTORY = Directory(PATH, 0o700, 0, 1 << 30, False)
BEGUN = pki.NOW.replace(microsecond=442131)
PENDING = PendingJoin("join-token", Role.NODE, None, b"key", b"csr", None, "", BEGUN)
ORDER = list(Check)
# A node that runs: what keeps a sound identity alive.
RUNS = JournalOf(pki.NODE, Told(running="bcd node (process 7)", session="up", session_since=pki.NOW))


def sight(found: Loaded | Failure | None = None, **departures: object) -> Sight:
    told: dict[str, object] = {
        "found": LoadedAsIs(IDENTITY, KeyKind.FILE) if found is None else found,
        "faults": (),
        "pending": None,
        "journal": RUNS,
        "directory": DIRECTORY,
        "now": pki.NOW + timedelta(minutes=1),
    }
    return Sight(**(told | departures))  # type: ignore[arg-type]


def report(seen: Sight | None = None, config: Config | Failure = CONFIG, **asked: object) -> dict[str, Finding]:
    """Findings by check. `reach` and `key` are what the two questions answer, or raise."""

    def answer(value: object) -> object:
        if isinstance(value, Failure):
            raise value
        return value

    doctor = Doctor(
        config,
        None if isinstance(config, Failure) else lambda: seen or sight(),
        lambda _config, _address: answer(asked.get("reach")),  # type: ignore[arg-type,return-value]
        lambda _: answer(asked.get("key")),  # type: ignore[arg-type,return-value]
        None if asked.get("tpm") is None else lambda: answer(asked["tpm"]),  # type: ignore[arg-type,return-value]
        tpm_is_named=bool(asked.get("tpm_is_named")),
    )
    findings = doctor()
    assert len({finding.check for finding in findings}) == len(findings)
    return {finding.check: finding for finding in findings}


def test_a_sound_node_has_nothing_to_mend() -> None:
    found = report()
    assert list(found) == ORDER
    assert {finding.level for finding in found.values()} == {Level.OK, Level.NOT_APPLICABLE}
    assert all(not finding.way_back for finding in found.values())
    assert found["identity"].message == "n-7 (site hall-2, role node)"


def test_without_a_configuration_it_is_all_there_is_to_say() -> None:
    failure = FixConfiguration(Message.NO_CONFIG, path="/etc/bcd/config.toml")
    found = report(config=failure)
    assert list(found) == ["config"]
    assert found["config"].level is Level.FAIL
    assert found["config"].message == "/etc/bcd/config.toml: no such file"
    assert found["config"].way_back.startswith("make one with bcd-controlplane node-config")


@pytest.mark.parametrize("key", ["join", "serving_ca_spki_pin", "join_encryption_key_pin", "join_signing_key_pin"])
def test_a_key_that_a_join_needs_and_is_missing_is_named(key: str) -> None:
    config = Config(**(vars(CONFIG) | {key: None}))
    found = report(config=config)
    assert found["config"] == Finding(
        "config", Level.FAIL, f"/nowhere/config.toml has no {key}", "bcd-controlplane node-config writes it"
    )
    if key in ("join", "serving_ca_spki_pin"):
        assert found["join port"].level is Level.NOT_APPLICABLE


def test_not_joined_is_a_warning_and_the_rest_of_the_identity_does_not_apply() -> None:
    found = report(sight(NotJoined(Message.NOT_JOINED), directory=None))
    assert found["identity"] == Finding("identity", Level.WARN, "this node has not joined", "bcd join")
    for check in ("data directory", "node key", "certificate", "clock"):
        assert found[check].level is Level.NOT_APPLICABLE


@pytest.mark.parametrize(
    "failure",
    [
        MustJoinAgain(Message.KEY_MISMATCH),
        MustJoinAgain(Message.KEY_MISMATCH_TPM),
        MustJoinAgain(Message.IDENTITY_UNREADABLE, path=f"{PATH}/identity.json", size=0, why="is empty"),
    ],
)
def test_b04_an_identity_that_does_not_load_is_a_failure_that_ends_with_the_way_back(failure: Failure) -> None:
    """Field report B04."""
    finding = report(sight(failure))["identity"]
    assert (finding.level, finding.way_back) == (Level.FAIL, JOIN_AGAIN)
    assert failure.text == f"{finding.message}; join again: {finding.way_back}"


def test_a_directory_that_may_not_be_looked_into_is_not_said_to_be_missing() -> None:
    failure = Refused(Message.PERMISSION_DENIED, path=PATH)
    found = report(sight(failure, directory=None, journal=NoJournal()))
    for check in ("data directory", "identity"):
        assert found[check] == Finding(check, Level.FAIL, f"permission denied: {PATH}", "run it as root")


def test_the_next_key_of_a_node_that_runs_is_no_left_over() -> None:
    seen = sight(RemoveNext(IDENTITY, KeyKind.FILE))
    running = report(seen)["identity"].message
    assert running.endswith("; node.key.next is of a renewal that is under way, or is tried again")
    stopped = report(replace(seen, journal=JournalOf(pki.NODE, Told())))
    assert stopped["identity"].message.endswith("; a renewal was cut off: the next start removes node.key.next")


WITH_A_WAY_BACK = [
    (Refused(Message.PERMISSION_DENIED, path="/k"), "permission denied: /k", "run it as root"),
    (FixConfiguration(Message.FILE_LOOSE, path="/k", mode="0644"), "/k has mode 0644, want 0600", "chmod 0600 /k"),
    (
        FixConfiguration(Message.FILE_OWNER, name="k", owner="a", want="b", path="/k"),
        "k: owner a, want b",
        "chown b /k",
    ),
    (FixConfiguration(Message.NOT_A_FILE, path="/k"), "/k is not a regular file", "move it out of the way"),
    (
        FixConfiguration(Message.NOT_A_DIRECTORY, path="/k"),
        "not a directory: /k (a file, or a symbolic link)",
        "name the ",
    ),
    (FixConfiguration(Message.ENCRYPTION_KEY, path="/k", why="is not JSON"), "/k: is not JSON", "get it again with"),
    (
        FixConfiguration(Message.ENCRYPTION_PIN, have="a", path="/k", presented="b"),
        "join encryption key pin mismatch: have a, /k holds b",
        "get both again",
    ),
]


@pytest.mark.parametrize(("failure", "said", "way_back"), WITH_A_WAY_BACK)
def test_a_documented_message_is_cut_where_its_way_back_begins(failure: Failure, said: str, way_back: str) -> None:
    finding = report(sight(failure))["identity"]
    assert finding.level is Level.FAIL
    assert finding.message == said
    assert finding.way_back.startswith(way_back)


@pytest.mark.parametrize(
    ("directory", "level"),
    [
        (Directory(PATH, 0o700, 0, MAX_FILE_BYTES, False), Level.OK),
        (Directory(PATH, 0o700, 0, MAX_FILE_BYTES - 1, False), Level.WARN),
        (Directory(PATH, 0o700, 0, 1 << 30, True), Level.FAIL),
    ],
)
def test_b10_a_disk_that_is_full_or_read_only_is_said_before_a_renewal_fails_on_it(
    directory: Directory, level: Level
) -> None:
    """Field reports B08 and B10."""
    finding = report(sight(directory=directory))["data directory"]
    assert finding.level is level
    assert PATH in finding.message
    assert bool(finding.way_back) is (level is not Level.OK)


def test_a_mode_that_is_too_wide_is_a_failure_of_the_data_directory() -> None:
    fault = FixConfiguration(Message.DIRECTORY_LOOSE, path=PATH, mode="0755")
    finding = report(sight(faults=(fault,)))["data directory"]
    assert (finding.level, finding.way_back) == (Level.FAIL, f"chmod 0700 {PATH}")


@pytest.mark.parametrize(("kind", "word"), [(PromoteNext, "promotes"), (RemoveNext, "removes"), (LoadedAsIs, None)])
def test_a_renewal_that_was_cut_off_is_said(kind: type[Loaded], word: str | None) -> None:
    finding = report(sight(kind(IDENTITY, KeyKind.FILE), journal=NoJournal()))["identity"]
    assert finding.level is Level.OK
    assert (NEXT_KEY in finding.message) is (word is not None)
    assert word is None or f"{word} {KEY}" in finding.message


@pytest.mark.parametrize(
    ("now", "level"),
    [
        (renew_at(LEAF) - timedelta(seconds=1), Level.OK),
        (renew_at(LEAF), Level.WARN),
        (LEAF.not_after - timedelta(seconds=1), Level.WARN),
        (LEAF.not_after, Level.FAIL),
    ],
)
def test_b26_the_certificate_is_told_with_its_end_and_its_planned_renewal(now: object, level: Level) -> None:
    """Field report B26."""
    finding = report(sight(now=now))["certificate"]
    assert finding.level is level
    assert "2026-09-27T11:55:00Z" in finding.message
    assert ("to be renewed at" in finding.message) is (level is not Level.FAIL)
    assert (finding.way_back == JOIN_AGAIN) is (level is Level.FAIL)


@pytest.mark.parametrize(
    ("journal", "level"),
    [
        (NoJournal(), Level.NOT_APPLICABLE),
        (JournalOf(pki.NODE), Level.OK),
        (JournalOf(None), Level.OK),
        (CorruptJournal("is not a journal"), Level.WARN),
    ],
)
def test_the_journal_is_told(journal: object, level: Level) -> None:
    assert report(sight(journal=journal))["journal"].level is level


def test_another_nodes_journal_is_a_failure_of_the_journal_and_not_of_the_directory() -> None:
    foreign = FixConfiguration(Message.FOREIGN_JOURNAL, owner="n-9", node="n-7", path=f"{PATH}/journal.db")
    found = report(sight(faults=(foreign,), journal=JournalOf(None)))
    assert found["journal"].level is Level.FAIL
    assert found["journal"].way_back.startswith(f"move {PATH}/journal.db aside")
    assert found["data directory"].level is Level.OK


@pytest.mark.parametrize("approval", ["", "a-1"])
@pytest.mark.parametrize("joined", [True, False])
def test_a_join_under_way_is_told_and_what_it_waits_for(joined: bool, approval: str) -> None:
    under_way = PendingJoin(*(vars(PENDING) | {"pending_id": approval}).values())
    found = None if joined else NotJoined(Message.NOT_JOINED)
    finding = report(sight(found, pending=under_way))["pending join"]
    assert finding.level is (Level.OK if joined else Level.WARN)
    assert "2026-09-26T12:00:00Z" in finding.message
    assert ("waiting for approval a-1" in finding.message) is (bool(approval) and not joined)


def test_a_request_that_cannot_be_read_is_a_failure_with_the_way_back() -> None:
    finding = report(sight(pending=PendingUnreadable("is empty")))["pending join"]
    assert finding == Finding("pending join", Level.FAIL, "join.pending is empty", JOIN_AGAIN)


@pytest.mark.parametrize(("now", "level"), [(pki.NOW, Level.FAIL), (pki.NOW + timedelta(seconds=1), Level.OK)])
def test_a_clock_behind_the_server_is_told(now: object, level: Level) -> None:
    assert report(sight(now=now))["clock"].level is level


@pytest.mark.parametrize(
    ("reach", "level"),
    [
        (None, Level.OK),
        ("cp:1: connection refused", Level.WARN),
        (FixConfiguration(Message.SERVING_PIN, have="a", presented="b", path="c"), Level.FAIL),
    ],
)
def test_b55_a_join_port_out_of_reach_is_a_warning_and_another_pin_a_failure(reach: object, level: Level) -> None:
    """Field report B55, and decision 20."""
    finding = report(reach=reach)["join port"]
    assert finding.level is level
    assert bool(finding.way_back) is (level is not Level.OK)
    if level is Level.FAIL:
        assert finding.message == "serving CA pin mismatch: have a, presented b"
        assert finding.way_back.startswith("get the new pin from bcd-controlplane node-config")


def test_a_key_to_seal_to_that_is_another_is_a_failure() -> None:
    failure = FixConfiguration(Message.ENCRYPTION_PIN, have="a", path="k", presented="b")
    assert report(key=failure)["join encryption key"].level is Level.FAIL
    assert report()["join encryption key"].level is Level.OK


def told(**departures: object) -> Sight:
    return sight(journal=JournalOf(pki.NODE, Told(**departures)))  # type: ignore[arg-type]


def test_a_node_that_does_not_run_is_a_warning_and_its_old_session_says_nothing() -> None:
    found = report(told(session="up", session_since=pki.NOW))
    assert (found["node"].level, found["session"].level) == (Level.WARN, Level.NOT_APPLICABLE)
    assert "start bcd node" in found["node"].way_back
    assert report(sight())["node"].level is Level.OK


def test_a_session_that_is_down_is_told_with_why_and_since_when() -> None:
    found = report(told(running="bcd node (process 7)", session="down: connection refused", session_since=pki.NOW))
    assert found["session"].level is Level.WARN
    assert found["session"].message == "down: connection refused, since 2026-09-26T12:00:00Z"


def test_a_renewal_that_failed_is_told_until_one_works() -> None:
    found = report(told(failures=3, last_error="no answer", last_error_at=pki.NOW))["renewal"]
    assert found.level is Level.WARN
    assert found.message == "3 in a row failed, last at 2026-09-26T12:00:00Z: no answer"
    assert found.way_back.endswith(JOIN_AGAIN)
    assert report(told())["renewal"].level is Level.NOT_APPLICABLE


def test_the_gateway_is_asked_as_the_join_port_is() -> None:
    asked: list[str] = []

    def reach(_: Config, address: Address) -> str | None:
        asked.append(str(address))
        return "gone" if str(address) == "cp:2" else None

    found = {f.check: f.level for f in Doctor(CONFIG, sight, reach, lambda _: None)()}
    assert asked == ["cp:1", "cp:2"]
    assert (found["join port"], found["gateway"]) == (Level.OK, Level.WARN)


def test_a_revoked_node_is_not_told_to_start_again() -> None:
    found = report(told(session="revoked: operator: stolen", session_since=pki.NOW))["node"]
    assert found.level is Level.FAIL
    assert found.message.startswith("revoked: operator: stolen, at 2026-09-26T12:00:00Z")
    assert found.way_back == JOIN_AGAIN


# --- The TPM


EK = EndorsementKey(EkKind.RSA_2048, b"spki", None, False, None)
TPM = TpmFound("/dev/tpmrm0", (EK,), (), None, ("sha256",), None)
NO_TPM = TryLater(Message.TPM_ABSENT, device="/dev/tpmrm0", why="No such file or directory", setting="…")
PASSWORD = TryLater(Message.TPM_PASSWORD, hierarchy="owner", device="/dev/tpmrm0")


@pytest.mark.parametrize(
    ("kind", "tpm", "level", "message", "way_back"),
    [
        (KeyKind.TPM, TPM, Level.OK, "in the TPM", ""),
        (KeyKind.FILE, NO_TPM, Level.OK, "a file; this machine has no TPM 2.0", ""),
        (KeyKind.FILE, None, Level.OK, "a file; no TPM is used here", ""),
        (KeyKind.FILE, TPM, Level.WARN, "a file, on a machine with a TPM", "the next renewal moves it into the TPM"),
        (
            KeyKind.FILE,
            replace(TPM, node_keys=PASSWORD),
            Level.WARN,
            "a file, on a machine whose TPM cannot hold it",
            "see the tpm check",
        ),
        (
            KeyKind.FILE,
            TryLater(Message.TPM_LOCKOUT, device="/dev/tpmrm0"),
            Level.WARN,
            "a file, on a machine whose TPM cannot hold it",
            "see the tpm check",
        ),
    ],
)
def test_where_the_node_key_is(
    kind: KeyKind, tpm: TpmFound | Failure | None, level: Level, message: str, way_back: str
) -> None:
    """Specification, "Seeing where the key is"."""
    found = report(sight(LoadedAsIs(IDENTITY, kind)), tpm=tpm)
    assert found["node key"] == Finding("node key", level, message, way_back)


def test_a_tpm_that_takes_node_keys_is_shown_with_what_goes_on_an_allow_list() -> None:
    """Field report B46: also when the chip holds no certificate."""
    finding = report(tpm=TPM)["tpm"]
    assert finding == Finding("tpm", Level.OK, f"/dev/tpmrm0 holds node keys; EK rsa-2048 {EK.sha256}")


@pytest.mark.parametrize("tpm", [PASSWORD, replace(TPM, node_keys=PASSWORD)])
def test_a_tpm_that_takes_none_is_a_warning_with_the_way_back(tpm: TpmFound | Failure) -> None:
    finding = report(tpm=tpm)["tpm"]
    assert finding.level is Level.WARN
    assert finding.message == "the TPM's owner hierarchy has a password (/dev/tpmrm0)"
    assert finding.way_back == "take it away with tpm2_changeauth -c owner -p PASSWORD"


def test_a_machine_without_a_tpm_lacks_nothing() -> None:
    assert report(tpm=NO_TPM)["tpm"] == Finding(
        "tpm", Level.NOT_APPLICABLE, "no TPM 2.0: /dev/tpmrm0: No such file or directory"
    )
    assert report()["tpm"].level is Level.NOT_APPLICABLE


def test_a_tpm_that_is_named_and_not_there_is_missing() -> None:
    """Else a path by mistake would read as a machine without a TPM, its node key in a file for ever."""
    found = report(sight(LoadedAsIs(IDENTITY, KeyKind.FILE)), tpm=NO_TPM, tpm_is_named=True)
    assert found["tpm"].level is Level.WARN
    assert found["tpm"].message == "no TPM 2.0: /dev/tpmrm0: No such file or directory"
    assert found["tpm"].way_back == "switch it on in the firmware, or name another with …"
    assert found["node key"] == Finding(
        "node key", Level.WARN, "a file; the TPM that is named for it is not there", "see the tpm check"
    )


def test_a_tpm_that_shows_no_endorsement_key_is_a_warning_with_the_reason() -> None:
    """It holds node keys, and no certificate that names its attestation key is renewed there."""
    locked = TryLater(Message.TPM_PASSWORD, hierarchy="endorsement", device="/dev/tpmrm0")
    unread = replace(EK, spki=b"", trouble=locked)
    finding = report(tpm=replace(TPM, endorsement_keys=(unread, unread)))["tpm"]
    assert (finding.level, finding.message) == (
        Level.WARN,
        "the TPM's endorsement hierarchy has a password (/dev/tpmrm0)",
    )
    # One of them is enough to be known by.
    assert report(tpm=replace(TPM, endorsement_keys=(EK, unread)))["tpm"].level is Level.OK
