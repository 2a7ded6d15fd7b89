"""`bcd node`."""

from collections.abc import Sequence

from bcd.adapters.host.process import harden
from bcd.adapters.host.signals import on_stop
from bcd.app.inbox import Inbox
from bcd.cli import options
from bcd.cli.build import Build
from bcd.domain.model.failures import Exit

_SUMMARY = (
    "Keep this machine's identity alive: a session with the gateway, and a new key and certificate at 60 % of every "
    "certificate's life. Runs until SIGTERM (exit 0), or until the identity is revoked (exit 1)."
)
_EPILOG = """exit status
  0   ended by SIGTERM or SIGINT
  1   the certificate was revoked: only joining again brings the machine back;
      must not be restarted
  2   the command line is wrong
  70  a defect of bcd
  75  try later: not joined yet, the key is in a TPM that cannot be asked,
      in use by another process, identity changed on disk
  76  the identity does not load or does not match its key
  77  a file may not be read by this user
  78  configuration, modes and owners, another node's journal"""


def run(build: Build, argv: Sequence[str]) -> int:
    parser = options.Parser(build.program, "node", _SUMMARY, _EPILOG)
    options.add_config(parser)
    options.add_log(parser)
    given = parser.read(argv)
    harden()

    from bcd.adapters.log.events import LogEvents
    from bcd.wiring import settings

    config = settings.read(given.config, options.config_flags(given))
    events = LogEvents(config.log_level, config.log_format)
    inbox = Inbox()
    on_stop(inbox.stop, lambda: inbox.stopped)
    container = build.container()(config=config, events=events)
    try:
        container.daemon()(inbox)
    finally:
        container.give_tpm_back()
    return Exit.OK
