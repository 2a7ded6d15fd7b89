"""What `bcd doctor` can say: one row a finding, with its check, its level, its text and the way back.

`docs/messages.md` shows this table; a test has a real process print each row. A failure that a command would end with
stands in the report as its documented message (`failed`)."""

from dataclasses import dataclass
from enum import Enum, StrEnum

from bcd.domain.model.failures import Failure, Message

JOIN_AGAIN = "bcd join --reset --yes, then bcd join"
_NODE_CONFIG = "bcd-controlplane node-config writes it"


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    NOT_APPLICABLE = "n/a"


class Check(StrEnum):
    """In the order of the report."""

    CONFIG = "config"
    ENCRYPTION_KEY = "join encryption key"
    DIRECTORY = "data directory"
    IDENTITY = "identity"
    NODE_KEY = "node key"
    TPM = "tpm"
    CERTIFICATE = "certificate"
    JOURNAL = "journal"
    PENDING = "pending join"
    CLOCK = "clock"
    NODE = "node"
    SESSION = "session"
    RENEWAL = "renewal"
    JOIN_PORT = "join port"
    GATEWAY = "gateway"


@dataclass(frozen=True)
class Finding:
    """One line of the report. `way_back` is a command or what to do; empty where nothing is to be done."""

    check: str
    level: Level
    message: str
    way_back: str = ""


@dataclass(frozen=True)
class Row:
    """A finding before its fields are filled in."""

    check: Check
    level: Level
    message: str
    way_back: str = ""


class Told(Enum):
    """Every finding that is not a failure's own message."""

    CONFIG_INCOMPLETE = Row(Check.CONFIG, Level.FAIL, "{path} has no {keys}", _NODE_CONFIG)
    CONFIG_WRITABLE = Row(
        Check.CONFIG,
        Level.FAIL,
        "{path} may be written by others than root: whoever does owns this node's trust",
        "chmod go-w {path}",
    )
    CONFIG_OK = Row(Check.CONFIG, Level.OK, "{path}")
    ENCRYPTION_KEY_OK = Row(Check.ENCRYPTION_KEY, Level.OK, "matches its pin")
    DIRECTORY_NONE = Row(Check.DIRECTORY, Level.NOT_APPLICABLE, "there is none yet")
    DIRECTORY_READ_ONLY = Row(
        Check.DIRECTORY,
        Level.FAIL,
        "{path} is on a read-only file system: nothing can be renewed or joined",
        "remount it writable",
    )
    DIRECTORY_FULL = Row(Check.DIRECTORY, Level.WARN, "{path} has {free} bytes free", "make room: a renewal needs it")
    DIRECTORY_OK = Row(Check.DIRECTORY, Level.OK, "{path}")
    IDENTITY_OK = Row(Check.IDENTITY, Level.OK, "{who}")
    IDENTITY_PROMOTES = Row(
        Check.IDENTITY, Level.OK, "{who}; a renewal was cut off: the next start promotes node.key.next"
    )
    IDENTITY_REMOVES = Row(
        Check.IDENTITY, Level.OK, "{who}; a renewal was cut off: the next start removes node.key.next"
    )
    IDENTITY_RENEWS = Row(
        Check.IDENTITY, Level.OK, "{who}; node.key.next is of a renewal that is under way, or is tried again"
    )
    NODE_KEY_NONE = Row(Check.NODE_KEY, Level.NOT_APPLICABLE, "no identity that loads")
    NODE_KEY_TPM = Row(Check.NODE_KEY, Level.OK, "in the TPM")
    NODE_KEY_FILE = Row(Check.NODE_KEY, Level.OK, "a file; this machine has no TPM 2.0")
    NODE_KEY_NO_SUCH_TPM = Row(
        Check.NODE_KEY, Level.WARN, "a file; the TPM that is named for it is not there", "see the tpm check"
    )
    NODE_KEY_UNUSED = Row(Check.NODE_KEY, Level.OK, "a file; no TPM is used here")
    NODE_KEY_MOVES = Row(
        Check.NODE_KEY, Level.WARN, "a file, on a machine with a TPM", "the next renewal moves it into the TPM"
    )
    NODE_KEY_STAYS = Row(
        Check.NODE_KEY, Level.WARN, "a file, on a machine whose TPM cannot hold it", "see the tpm check"
    )
    TPM_UNUSED = Row(Check.TPM, Level.NOT_APPLICABLE, "not used")
    TPM_NONE = Row(Check.TPM, Level.NOT_APPLICABLE, "{why}")
    TPM_OK = Row(Check.TPM, Level.OK, "{device} holds node keys; {keys}")
    CERTIFICATE_NONE = Row(Check.CERTIFICATE, Level.NOT_APPLICABLE, "no identity that loads")
    CERTIFICATE_EXPIRED = Row(Check.CERTIFICATE, Level.FAIL, "expired at {until}", JOIN_AGAIN)
    CERTIFICATE_LATE = Row(
        Check.CERTIFICATE,
        Level.WARN,
        "valid until {until}, to be renewed at {at}: that is past",
        "see that bcd node runs",
    )
    CERTIFICATE_OK = Row(Check.CERTIFICATE, Level.OK, "valid until {until}, to be renewed at {at}")
    JOURNAL_NONE = Row(Check.JOURNAL, Level.NOT_APPLICABLE, "there is none yet")
    JOURNAL_CORRUPT = Row(Check.JOURNAL, Level.WARN, "journal.db {why}", "the next join or start sets it aside")
    JOURNAL_OK = Row(Check.JOURNAL, Level.OK, "this node's")
    PENDING_NONE = Row(Check.PENDING, Level.NOT_APPLICABLE, "none")
    PENDING_UNREADABLE = Row(Check.PENDING, Level.FAIL, "join.pending {why}", JOIN_AGAIN)
    PENDING_DONE = Row(Check.PENDING, Level.OK, "begun {begun} and done; the next join tidies up")
    PENDING_BEGUN = Row(Check.PENDING, Level.WARN, "begun {begun}{waiting}", "bcd join goes on with it")
    CLOCK_UNKNOWN = Row(Check.CLOCK, Level.NOT_APPLICABLE, "no server time to compare with")
    CLOCK_BEHIND = Row(
        Check.CLOCK, Level.FAIL, "the clock is behind the time the server told last ({mark})", "set the clock"
    )
    CLOCK_OK = Row(Check.CLOCK, Level.OK, "not behind the server's")
    NODE_NONE = Row(Check.NODE, Level.NOT_APPLICABLE, "no identity that loads")
    NODE_STOPPED = Row(Check.NODE, Level.WARN, "bcd node is not running", "start bcd node: nothing renews without it")
    NODE_RUNS = Row(Check.NODE, Level.OK, "{process}")
    NODE_REVOKED = Row(
        Check.NODE, Level.FAIL, "{session}, at {at}: bcd node does not run with this identity", JOIN_AGAIN
    )
    SESSION_NONE = Row(Check.SESSION, Level.NOT_APPLICABLE, "no node runs")
    SESSION_UP = Row(Check.SESSION, Level.OK, "up since {since}")
    SESSION_DOWN = Row(
        Check.SESSION, Level.WARN, "{state}, since {since}", "bcd node dials again by itself; see the gateway check"
    )
    RENEWAL_NONE = Row(Check.RENEWAL, Level.NOT_APPLICABLE, "none failed")
    RENEWAL_FAILED = Row(
        Check.RENEWAL,
        Level.WARN,
        "{failures} in a row failed, last at {at}: {error}",
        "bcd node tries again by itself; if this lasts: bcd join --reset --yes, then bcd join",
    )
    JOIN_PORT_NONE = Row(Check.JOIN_PORT, Level.NOT_APPLICABLE, "not configured")
    JOIN_PORT_TROUBLE = Row(Check.JOIN_PORT, Level.WARN, "{trouble}", "{way_back}")
    JOIN_PORT_OK = Row(Check.JOIN_PORT, Level.OK, "{address} presents the pinned serving CA")
    GATEWAY_NONE = Row(Check.GATEWAY, Level.NOT_APPLICABLE, "not configured")
    GATEWAY_TROUBLE = Row(Check.GATEWAY, Level.WARN, "{trouble}", "{way_back}")
    GATEWAY_OK = Row(Check.GATEWAY, Level.OK, "{address} presents the pinned serving CA")

    def __call__(self, **fields: object) -> Finding:
        row: Row = self.value
        return Finding(row.check, row.level, row.message.format(**fields), row.way_back.format(**fields))


# How the way back begins in the documented messages that have one.
_WAYS_BACK = (
    "; join again: ",
    "; get ",
    ": get ",
    ": chmod ",
    ": chown ",
    ": run it as root",
    ": make ",
    ": move ",
    ": name ",
    ": remount ",
    ": switch it ",
    ": run it again",
    ": restart the machine",
    ": take it away ",
    ": wait until ",
    ": end what uses it",
)


def failed(check: Check, failure: Failure, level: Level = Level.FAIL) -> Finding:
    """A documented message as a finding, cut where its own way back begins."""
    level = Level.WARN if failure.message is Message.NOT_JOINED else level
    for mark in _WAYS_BACK:
        said, found, way_back = failure.text.partition(mark)
        if found:
            return Finding(check, level, said, (mark + way_back).removeprefix("; join again").lstrip(":; "))
    if failure.message is Message.NOT_JOINED:
        return Finding(check, level, "this node has not joined", "bcd join")
    return Finding(check, level, failure.text)
