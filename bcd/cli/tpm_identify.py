"""`bcd tpm identify`."""

import json
import os
from collections.abc import Sequence
from typing import Any

from bcd.cli import options, render
from bcd.cli.build import Build
from bcd.domain.model.failures import Exit, Message, Refused
from bcd.domain.model.tpm import EndorsementKey, Stored, TpmFound
from bcd.wiring import config_file

_SUMMARY = (
    "What this machine's TPM is and holds: endorsement keys as an allow-list names them, their certificates, PCR "
    "banks, and whether node keys can live in it. Changes nothing. Exits 0 when they can and all could be read, 75 "
    "when not, 78 when what is named is no TPM."
)


def run(build: Build, argv: Sequence[str]) -> int:
    parser = options.Parser(build.program, "tpm identify", _SUMMARY)
    options.add_config(parser)
    options.add_json(parser)
    given = parser.read(argv)
    if build.needs_root and os.geteuid() != 0:
        raise Refused(Message.RUN_AS_ROOT, command="tpm identify")
    config = config_file.read(given.config, options.config_flags(given))
    found = build.container()(config=config).tpm().identify()
    if given.json:
        print(json.dumps(_document(found), indent=2))
    else:
        print("\n".join(f"{what:13} {text}" for what, text in _lines(found)))
    if found.trouble is not None:
        render.error(found.trouble.text)
        return found.trouble.exit
    return Exit.OK


def _lines(found: TpmFound) -> list[tuple[str, str]]:
    lines = [("TPM", found.device)]
    for key in found.endorsement_keys:
        lines.append((f"EK {key.kind.value}", f"{key.sha256 or 'not read'} ({_certificate_line(key)})"))
    for one in found.others:
        lines.append(("certificate", f"at {one.index:#010x}: {len(one.data)} bytes, {one.sha256}"))
    if found.unread is not None:
        lines.append(("certificate", f"not read: {found.unread.text}"))
    lines.append(("PCR banks", ", ".join(found.banks) or "none"))
    lines.append(("node keys", f"no: {found.node_keys.text}" if found.node_keys else "can live here"))
    return lines


def _certificate_line(key: EndorsementKey) -> str:
    if key.certificate is None:
        return "no certificate" if key.trouble is None else key.trouble.text
    which = "of this key" if key.in_certificate else "not of this key"
    return f"certificate at {key.certificate.index:#010x}, {len(key.certificate.data)} bytes, {which}"


def _document(found: TpmFound) -> dict[str, Any]:
    unread = {"unread": found.unread.text} if found.unread is not None else {}
    return {
        "device": found.device,
        "endorsementKeys": [_key(key) for key in found.endorsement_keys],
        "otherCertificates": [_stored(one) for one in found.others],
        **unread,
        "pcrBanks": list(found.banks),
        "nodeKeys": {"possible": False, "why": found.node_keys.text} if found.node_keys else {"possible": True},
    }


def _key(key: EndorsementKey) -> dict[str, Any]:
    document: dict[str, Any] = {"kind": key.kind.value}
    if key.spki:
        document["publicKeySha256"] = key.sha256
    if key.certificate is not None:
        document["certificate"] = {**_stored(key.certificate), "ofThisKey": key.in_certificate}
    if key.trouble is not None:
        document["trouble"] = key.trouble.text
    return document


def _stored(one: Stored) -> dict[str, Any]:
    return {"nvIndex": f"{one.index:#010x}", "bytes": len(one.data), "sha256": one.sha256}
