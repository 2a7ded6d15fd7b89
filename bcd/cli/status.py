"""`bcd status`: what the identity is; exits as a node that starts now would."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from bcd.app.look import PendingUnreadable, Sight
from bcd.cli import options
from bcd.cli.build import Build
from bcd.cli.render import error, time
from bcd.domain.model.failures import Exit
from bcd.domain.model.identity import Identity, Leaf, Trust, renew_at
from bcd.domain.model.loading import Loaded, PromoteNext, RemoveNext
from bcd.domain.model.pending import PendingJoin
from bcd.ports.journal import Told
from bcd.protocol.files.config import Config
from bcd.wiring import config_file, node

_SUMMARY = (
    "What this machine's identity is, until when, and what a node that runs said last. Reads only; needs no network."
)
_EPILOG = """exit status, as of a bcd node that starts now
  0   the identity loads; expired or revoked, which the control plane decides,
      it is said in the text and in --json
  75  not joined yet
  76  the identity does not load, or does not match its key
  77  a file may not be read by this user
  78  configuration, modes and owners, another node's journal
and 2 when the command line is wrong, 70 for a defect of bcd"""


def run(build: Build, argv: Sequence[str]) -> int:
    parser = options.Parser(build.program, "status", _SUMMARY, _EPILOG)
    options.add_config(parser)
    options.add_json(parser)
    given = parser.read(argv)
    config = config_file.read(given.config, options.config_flags(given))
    sight = node.looker(config)()
    if given.json:
        print(json.dumps(_document(sight, config), indent=2, ensure_ascii=False))
    else:
        _print(sight)
    failure = sight.failure
    if failure is None:
        return Exit.OK
    error(failure.text)
    return failure.exit


def _print(sight: Sight) -> None:
    if isinstance(sight.found, Loaded):
        identity = sight.found.identity
        leaf = identity.leaf
        who = f"{identity.node_id} (site {identity.site_id}, role {identity.role.value})"
        print(f"identity: {who}, node key {_place(sight.found)}")
        print(f"SPIFFE ID: {leaf.spiffe_id}")
        if sight.now >= leaf.not_after:
            print(f"certificate: expired at {time(leaf.not_after)}")
        else:
            print(f"certificate: valid until {time(leaf.not_after)} (in {_span(leaf.not_after - sight.now)})")
        for line in _running(sight, leaf):
            print(line)
        print(f"signed intent: {_intent(identity.trust)}")
        match sight.found:
            case PromoteNext():
                print("next key: certified: the next start makes it node.key")
            case RemoveNext() if sight.told.running:
                print("next key: of a renewal that is under way, or is tried again")
            case RemoveNext():
                print("next key: left by a renewal that was cut off: the next start removes it")
    match sight.pending:
        case PendingJoin() as pending if not isinstance(sight.found, Loaded):
            waiting = f", waiting for approval {pending.pending_id}" if pending.pending_id else ""
            print(f"join: begun {time(pending.begun)}{waiting}; bcd join goes on with it")
        case PendingUnreadable(why):
            print(f"join: join.pending {why}")


def _running(sight: Sight, leaf: Leaf) -> Iterator[str]:
    """What the journal adds: a node's plan and its trouble."""
    told = sight.told
    planned = _planned(told, leaf, sight.now)
    late = " (that is past)" if sight.now >= planned else ""
    yield f"renewal: planned for {time(planned)}{late}"
    if told.last_error and told.last_error_at is not None:
        yield f"renewal failed: {told.failures} in a row, last at {time(told.last_error_at)}: {told.last_error}"
    yield f"node: {told.running or 'not running'}"
    if told.session and told.session_since is not None:
        stale = "" if told.running else " when it ended"
        yield f"session: {told.session}, since {time(told.session_since)}{stale}"
    for kid, count in told.signatures:
        yield f"handshakes signed: {count} by key {kid}"


def _planned(told: Told, leaf: Leaf, now: datetime) -> datetime:
    """The plan of the node that runs, where it has one for this leaf; else what the leaf's dates say.

    One that is to come is the next attempt, which is before its time where the gateway asked for it. One that is past
    may be of the leaf before."""
    at = renew_at(leaf)
    if not told.running or told.planned is None or told.planned >= leaf.not_after:
        return at
    return told.planned if told.planned > now else max(at, told.planned)


def _place(found: Loaded) -> str:
    return "in the TPM" if found.kind.value == "tpm" else "a file"


def _intent(trust: Trust | None) -> str:
    if trust is None or not trust.roots:
        return "not enforced (no command roots)"
    return f"{len(trust.roots)} command roots (bundle v{trust.version})"


def _span(left: timedelta) -> str:
    minutes, seconds = divmod(int(left.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _document(sight: Sight, config: Config) -> dict[str, Any]:
    failure = sight.failure
    document: dict[str, Any] = {"joined": isinstance(sight.found, Loaded), "dataDir": config.data_dir}
    if isinstance(sight.found, Loaded):
        document |= _identity(sight.found, sight.found.identity, sight)
    if isinstance(sight.pending, PendingJoin):
        document["pendingJoin"] = {"begun": time(sight.pending.begun), "attestor": sight.pending.attestor}
        if sight.pending.pending_id:
            document["pendingJoin"]["approval"] = sight.pending.pending_id
    if isinstance(sight.found, Loaded):
        document |= _node(sight.told)
    document["exit"] = int(Exit.OK if failure is None else failure.exit)
    if failure is not None:
        document["message"] = failure.text
    return document


def _identity(found: Loaded, identity: Identity, sight: Sight) -> dict[str, Any]:
    leaf = identity.leaf
    document: dict[str, Any] = {
        "nodeId": identity.node_id,
        "siteId": identity.site_id,
        "trustDomain": identity.trust_domain,
        "role": identity.role.value,
        "spiffeId": str(leaf.spiffe_id),
        "nodeKey": found.kind.value,
        "notBefore": time(leaf.not_before),
        "notAfter": time(leaf.not_after),
        "expired": sight.now >= leaf.not_after,
        "renewAt": time(_planned(sight.told, leaf, sight.now)),
        "commandRoots": len(identity.trust.roots) if identity.trust is not None else 0,
    }
    if identity.trust is not None:
        document["trustVersion"] = identity.trust.version
    if identity.server_time is not None:
        document["serverTime"] = time(identity.server_time)
    match found:
        case PromoteNext():
            document["nextKey"] = "promote"
        case RemoveNext():
            document["nextKey"] = "remove"
    return document


def _node(told: Told) -> dict[str, Any]:
    """What the journal says: of the node that runs, or that ran last."""
    document: dict[str, Any] = {"running": bool(told.running)}
    if told.session and told.session_since is not None:
        document["session"] = {"state": told.session, "since": time(told.session_since)}
    if told.last_error and told.last_error_at is not None:
        failed = {"failures": told.failures, "error": told.last_error, "at": time(told.last_error_at)}
        document["renewalFailed"] = failed
    if told.signatures:
        document["handshakesSigned"] = [{"kid": kid, "count": count} for kid, count in told.signatures]
    return document
