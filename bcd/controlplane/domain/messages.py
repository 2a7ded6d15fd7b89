"""Every message of bcd-controlplane that a person may meet, as a template; the name is its row in docs/messages.md."""

from enum import Enum


class Message(Enum):
    """`{…}` are filled in. Each ends with the way back."""

    # Using a command
    USAGE = "bcd-controlplane {command}: {what} (see bcd-controlplane {command} --help)"
    NO_COMMAND = "bcd-controlplane: {what} (see bcd-controlplane --help)"
    # The directory
    NO_DIRECTORY = "{path}: no such directory: make one with bcd-controlplane init --dir {path} --trust-domain NAME"
    NOT_A_DIRECTORY = "{path}: not a directory: name another with --dir"
    NOT_INITIALIZED = (
        "{path}: not a complete control plane: run bcd-controlplane init --dir {path} --trust-domain NAME; "
        "it goes on with the keys that are there"
    )
    ALREADY_INITIALIZED = (
        "{path}: already a control plane (trust domain {domain}); nothing was changed; for another name another --dir"
    )
    NOT_A_CONTROL_PLANE = (
        "{path}: not a control plane's directory: name that one with --dir, "
        "or make one with bcd-controlplane init --dir D --trust-domain NAME"
    )
    NOT_EMPTY = "{path}: holds {name}, which is no control plane's: name an empty directory or a new one with --dir"
    DIRECTORY_LOOSE = "{path} has mode {mode}, want {want}: chmod {want} {path}"
    DIRECTORY_OWNER = "{path} belongs to user id {owner}, this is {user}: run it as that user"
    LOCKED = "{path} is in use by {holder}: run it again when that is done"
    SERVED_ALREADY = "{path} is served already, by {holder}: stop that one first, or name another --dir"
    FILE_BROKEN = "{path}: {why}: put it back from your backup of the directory"
    STORE_BROKEN = "{path} {why}: put it back from your backup of the directory"
    STORE_NEWER = (
        "{path} has version {have}, and this bcd-controlplane knows {known}: "
        "run the bcd-controlplane that wrote it, or a newer one"
    )
    CONFIG_KEY = "{path}: {key}: {why}"
    PERMISSION_DENIED = "permission denied: {path}: run it as the directory's owner"
    NO_SPACE = "no space left on device: {path}: make room, then run it again"
    FILE_SYSTEM = "{path}: {what}: put that right, then run it again"
    # Serving
    CANNOT_LISTEN = (
        "cannot listen on {address}: another program has the port, or this machine has no such address: "
        "stop that program, or give another address with --{port}"
    )
    NO_ENDPOINT = "{path}: no {port} port yet: run bcd-controlplane serve --dir {path} once, it keeps the port it gets"
    # Asking a control plane
    STORE_UNAVAILABLE = "the store cannot be used now ({why}); nothing was changed: run it again"
    NO_ANSWER = "{path}: the running server does not answer: run it again, or restart bcd-controlplane serve"
    OTHER_VERSION = (
        "{path}: the running server is of another version, and may have done what was asked: "
        "restart bcd-controlplane serve, then run it again"
    )
    NO_SUCH_TOKEN = "no token {id}: see bcd-controlplane token list"  # noqa: S105
    NO_SUCH_NODE = "no node {id}: see bcd-controlplane nodes list"
    NODE_IS_REVOKED = "node {id} is revoked ({reason}) and renews no more: the machine must join again"
    NO_SUCH_REFUSAL = (
        "no refusal {id}: see bcd-controlplane refusals list; beyond 60 an hour from one address, 600 an hour in all "
        "and after 30 days only the server's log has it"
    )
    NO_SUCH_APPROVAL = "no approval {id}: see bcd-controlplane approvals list"
    ALREADY_DECIDED = (
        "approval {id} was {state} at {at}: for another decision the machine must join again, "
        "or its TPM be allowed with bcd-controlplane ek allow"
    )
    APPROVAL_LAPSED = (
        "approval {id} lapsed at {at}: the machine must join again, with a new token or, as before, by its TPM"
    )
    APPROVAL_WANTS_SITE = (
        "approval {id} is for the TPM {ek}, and no token says where it belongs: name its site with --site"
    )
    NO_SUCH_ROOT = "no command root {pin}: see bcd-controlplane trust show"
    NO_SUCH_APPROVER = "no approver {name}: see bcd-controlplane trust show"
    APPROVER_KNOWN = (
        "approver {name} has the key {pin} already, and names and keys are each there once: "
        "remove that one first with bcd-controlplane trust remove-approver"
    )
    BUNDLE_FULL = "the trust bundle holds {most} {what}, the most there may be: bcd-controlplane trust {command} first"
    NOT_A_PUBLIC_KEY = (
        "{path}: {why}: name a file with one P-256 public key (PEM or DER) or one certificate of such a key"
    )
    NODE_OF_ANOTHER_SITE = "node {id} is of site {have}, not {want}: give its site with --site {have}"
    NO_SUCH_EK_ROOT = "no manufacturer CA {root}: see bcd-controlplane ek-roots list"
    NO_SUCH_EK = "no endorsement key {ek}: see bcd-controlplane ek list"
    NOT_A_MANUFACTURER_CA = (
        "{path}: {why}: name a file of manufacturers' CA certificates (PEM or DER), a zip of such files or a directory"
    )
    EK_FILE_LINE = "{path}, line {line}: {why}; nothing was changed: put that right, then import it again"
    # Anything else
    INTERNAL = "internal error ({what}): please report it; what was acknowledged before is kept"
