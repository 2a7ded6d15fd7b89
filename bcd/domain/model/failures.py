"""Failures, named by what the operator must do. The text is one documented message; it ends with the way back.

`docs/messages.md` has a row for every member of `Message`, with the test that saw a real process print it.
"""

from enum import Enum, IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """Decision 18. 1 means that an identity is dead, and nothing else may end with it."""

    OK = 0
    DEAD = 1
    USAGE = 2
    INTERNAL = 70
    TRY_LATER = 75
    NO_IDENTITY = 76
    REFUSED = 77
    CONFIGURATION = 78


class Message(Enum):
    """Every message a person may meet, as a template. The name is its row in `docs/messages.md`."""

    # Loading
    NOT_JOINED = "this node has not joined (run bcd join)"
    KEY_MISMATCH = "the node key does not match the node certificate; join again: bcd join --reset --yes, then bcd join"
    KEY_MISMATCH_TPM = (
        "the node key does not match the node certificate: the TPM derives another key from node.key "
        "(was the TPM cleared?); join again: bcd join --reset --yes, then bcd join"
    )
    IDENTITY_UNREADABLE = (
        "identity does not load: {path} ({size} bytes) {why}; nothing was changed; "
        "join again: bcd join --reset --yes, then bcd join"
    )
    EXPIRED = "the certificate expired at {when}; join again: bcd join --reset --yes, then bcd join"
    REVOKED_BEFORE = "this identity was {session}, at {when}; join again: bcd join --reset --yes, then bcd join"
    KEY_UNAVAILABLE = (
        "the node key is in the TPM, which is unavailable: {why}; nothing was changed; "
        "if that TPM is gone for good: bcd join --reset --yes, then bcd join"
    )
    PERMISSION_DENIED = "permission denied: {path}: run it as root"
    # The data directory
    NOT_A_DIRECTORY = (
        "not a directory: {path} (a file, or a symbolic link): name the directory itself in config.toml, "
        "or move this out of the way"
    )
    DIRECTORY_LOOSE = "the data directory {path} has mode {mode}, want 0700: chmod 0700 {path}"
    DIRECTORY_OWNER = "the data directory {path} belongs to {owner}, want {want}: chown {want} {path}"
    FILE_LOOSE = "{path} has mode {mode}, want 0600: chmod 0600 {path}"
    FILE_OWNER = "{name}: owner {owner}, want {want}: chown {want} {path}"
    NOT_A_FILE = "{path} is not a regular file: move it out of the way, then run it again"
    NO_SPACE = "No space left on device: {path} ({free} bytes free): make room, then run it again"
    READ_ONLY = "read-only file system: {path}: remount it writable, then run it again"
    FILE_SYSTEM = "{path}: {what}"
    LOCKED = "{path} is in use by {holder}: run it again when that is done"
    # Using a command
    RUN_AS_ROOT = "bcd {command}: run it as root"
    USAGE = "bcd {command}: {what} (see bcd {command} --help)"
    POSITIONAL = (
        "bcd {command}: takes no argument; a token comes in BCD_JOIN_TOKEN, on standard input or by --token-file"
    )
    NO_ARGUMENT = "bcd {command}: takes no argument (see bcd {command} --help)"
    NO_COMMAND = "{program}: no such command{hint} (see {program} --help)"
    TWO_CREDENTIALS = "bcd join: two join tokens, {one} and {other}: give one of them"
    TOKEN_MALFORMED = "bcd join: the join token {source} {why}: get one with bcd-controlplane token create"
    TOKEN_FILE = "bcd join: --token-file {path}: {why}"
    NO_TOKEN = (
        "bcd join: no join token: pipe one on standard input, or set BCD_JOIN_TOKEN, or name a file with --token-file"
    )
    RESET_NEEDS_YES = "bcd join --reset: nothing was moved; to do it: bcd join --reset --yes"
    # Configuration
    NO_CONFIG = "{path}: no such file: make one with bcd-controlplane node-config, or name it with --config"
    CONFIG_SYNTAX = "{path}: not a configuration: {why}"
    CONFIG_KEY = "{path}: {key}: {why}"
    ENCRYPTION_KEY = "{path}: {why}: get it again with bcd-controlplane node-config, and put it beside config.toml"
    ENCRYPTION_PIN = (
        "join encryption key pin mismatch: have {have}, {path} holds {presented}; "
        "get both again with bcd-controlplane node-config"
    )
    SERVING_PIN = (
        "serving CA pin mismatch: have {have}, presented {presented}; "
        "get the new pin from bcd-controlplane node-config and put it in {path} as serving_ca_spki_pin"
    )
    SIGNING_PIN = (
        "join signing key pin mismatch: have {have}, presented {presented}; "
        "get the new pin from bcd-controlplane node-config and put it in config.toml as join_signing_key_pin"
    )
    FOREIGN_JOURNAL = "journal.db belongs to node {owner}, this is {node}: move {path} aside, or join again as {owner}"
    # Joining
    JOIN_REFUSED = (
        "Join refused (refusal id {id}): ask the control plane's operator for "
        "bcd-controlplane refusals show {id}; then bcd join with a new token"
    )
    TPM_JOIN_REFUSED = (
        "Join refused (refusal id {id}): ask the control plane's operator for bcd-controlplane refusals show {id}; "
        "bcd tpm identify shows what its allow-list names this machine by"
    )
    CHALLENGE = (
        "join: the control plane's challenge {why}; nothing was stored; "
        "run bcd join again: it asks with the same request"
    )
    OTHER_NODE = (
        "this machine is already joined as {node}, not {wanted}; to give that up: "
        "bcd join --reset --yes, then bcd join --node-id {wanted}"
    )
    GAVE_UP = "join: no answer after {attempts} attempts: {last}; run bcd join again: it goes on with the same request"
    NO_RETRY = "join: the control plane asks not to be called again now: {last}; run bcd join again later"
    BAD_ANSWER = (
        "join: the answer does not verify (check {number}): {why}; nothing was stored; "
        "run bcd join again: it asks with the same request, or give that up with bcd join --reset --yes"
    )
    PENDING_UNREADABLE = "{path}: {why}; to give that join up: bcd join --reset --yes, then bcd join"
    PENDING_OTHER = (
        "a join is under way with another {what} ({have}, not {want}): run bcd join as before, "
        "or give it up with bcd join --reset --yes"
    )
    INTERRUPTED = "interrupted; run bcd join again: it goes on where it stopped"
    # Running
    RENEWAL_TPM_AWAY = "renewal: the certificate's node key is in the TPM, which is unavailable: {why}"
    RENEWAL_ANOTHER_AK = (
        "renewal: this TPM's attestation key is not the one the certificate names (another TPM, or its endorsement "
        "seed changed): the certificate cannot be renewed here; join again: bcd join --reset --yes, then bcd join"
    )
    RENEWAL_NO_NEXT_KEY = "renewal: the next node key in the TPM: {why}"
    RENEWAL_NOT_CERTIFIED = "renewal: the TPM's attestation key certifying the next key: {why}"
    REVOKED = "agent: this node's certificate was revoked"
    ANOTHER_LEAF = "identity changed on disk while this one was revoked: start bcd node again"
    SECOND_NODE = "{path} is served by {holder}: stop that bcd node first"
    # The TPM
    TPM_ABSENT = "no TPM 2.0: {device}: {why}: switch it on in the firmware, or name another with {setting}"
    TPM_NOT_ONE = "{device} is no TPM: {why}: name the TPM with {setting}"
    TPM_OLD = "no TPM 2.0: {device} answers as a TPM 1.2: switch it to 2.0 in the firmware, if it can"
    TPM_OPEN = "cannot open the TPM {device}: {why}: run it as root, and let the unit have the device (DeviceAllow)"
    TPM_BUSY = "the TPM {device} is busy: {why}: run it again; when it stays so, restart the machine"
    TPM_NOT_STARTED = "the TPM {device} is not started (0x100; did a resume fail?): restart the machine"
    TPM_PASSWORD = (
        "the TPM's {hierarchy} hierarchy has a password ({device}): take it away with "
        "tpm2_changeauth -c {hierarchy} -p PASSWORD"
    )
    TPM_HIERARCHY = (
        "the TPM's {hierarchy} hierarchy is disabled ({device}): "
        "restart the machine; when it stays so, enable it in the firmware"
    )
    TPM_LOCKOUT = (
        "the TPM {device} is locked out after failed authorizations (0x921): wait until it recovers, "
        "or clear it with tpm2_dictionarylockout --clear-lockout"
    )
    TPM_FULL = "the TPM {device} has no free {what} slots (others hold them): end what uses it, or restart the machine"
    TPM_FAILED = "the TPM {device}: {command} failed: {why}: run it again; when it stays so, restart the machine"
    FAKEHW_TPM = "bcd-fakehw tpm {command}: {what} (see bcd-fakehw tpm {command} --help)"
    # Anything else
    INTERNAL = "{program}: internal error ({what}): please report it; nothing was deleted"


class Failure(Exception):
    """The documented message, and the exit code of its class. Holds no secret."""

    exit: ClassVar[Exit]

    def __init__(self, message: Message, **fields: object) -> None:
        self.message = message
        self.fields = fields
        super().__init__(message.value.format(**fields))

    @property
    def text(self) -> str:
        return str(self)


class Usage(Failure):
    """The command line is wrong, or asks for a yes."""

    exit = Exit.USAGE


class TryLater(Failure):
    """Nothing is broken for good: the same command, later, may do."""

    exit = Exit.TRY_LATER


class NotThereYet(TryLater):
    """The TPM that the identity needs is not there, as a device may not be that early in a boot."""


class NotJoined(TryLater):
    """There is no identity yet."""


class IdentityDead(Failure):
    """The control plane revoked this identity; only joining again brings the machine back."""

    exit = Exit.DEAD


class MustJoinAgain(Failure):
    """The identity on disk does not load, or does not match its key."""

    exit = Exit.NO_IDENTITY


class Refused(Failure):
    """Somebody said no: the control plane, or the operating system."""

    exit = Exit.REFUSED


class FixConfiguration(Failure):
    """A setting, a mode, an owner or a pin is wrong, and only a person can put it right."""

    exit = Exit.CONFIGURATION


class Internal(Failure):
    """A defect of bcd."""

    exit = Exit.INTERNAL
