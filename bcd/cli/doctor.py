"""`bcd doctor`."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from bcd.adapters.beside_config.encryption_key import read_encryption_key
from bcd.adapters.grpc import pinned
from bcd.adapters.log.quiet import Quiet
from bcd.app.doctor import Doctor
from bcd.app.findings import Finding, Level
from bcd.cli import options
from bcd.cli.build import Build
from bcd.domain.model.failures import Exit, Failure
from bcd.protocol.files.config import ENCRYPTION_KEY_FILE, Address, Config
from bcd.wiring import config_file, node

_SUMMARY = (
    "What is wrong with this node, and the way back. Changes nothing; asks both ports for their certificates. "
    "Exits 1 when a check is `fail`, 0 when at most `warn`."
)


def run(build: Build, argv: Sequence[str]) -> int:
    parser = options.Parser(build.program, "doctor", _SUMMARY)
    options.add_config(parser)
    options.add_json(parser)
    given = parser.read(argv)
    config: Config | Failure
    with ExitStack() as ending:
        try:
            config = config_file.read(given.config, options.config_flags(given))
            container = build.container()(config=config, events=Quiet())
            keys = container.keys()
            # After it: where there is none to be had, there is nothing to give back.
            ending.callback(container.give_tpm_back)
            look = node.looker(config, keys)
        except Failure as failure:
            config, look, tpm, named = failure, None, None, False
        else:
            tpm = container.tpm().identify if container.keys_go_into_tpm() else None
            named = container.tpm_is_named()
        findings = Doctor(config, look, _reach, _encryption_key, tpm, tpm_is_named=named)()
    if given.json:
        print(json.dumps([_document(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        width = max(len(finding.check) for finding in findings)
        for finding in findings:
            way_back = f" ({finding.way_back})" if finding.way_back else ""
            print(f"{finding.level.value:5} {finding.check:{width}}  {finding.message}{way_back}")
    # Decision 18: a failed check is status 1 of doctor, which no unit restarts.
    return 1 if any(finding.level is Level.FAIL for finding in findings) else Exit.OK


def _document(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check,
        "level": finding.level.value,
        "message": finding.message,
        "wayBack": finding.way_back,
    }


def _reach(config: Config, address: Address) -> str | None:
    """What keeps a port from being used now, or None; FixConfiguration for a pin that does not match."""
    if config.serving_ca_spki_pin is None:
        return None
    try:
        pinned.from_server(address, config.serving_ca_spki_pin, datetime.now(UTC), config.path)
    except pinned.CannotProbe as error:
        return str(error)
    return None


def _encryption_key(config: Config) -> None:
    if config.join_encryption_key_pin is not None:
        read_encryption_key(config.beside(ENCRYPTION_KEY_FILE), config.join_encryption_key_pin)
