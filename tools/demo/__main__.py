"""`make demo`: a node's life with the real commands, each its own process, and each step checked from outside.

What a step claims is looked at with openssl, file modes, hashes and exit codes, never by asking bcd's own code. With
`--sabotage STEP` one thing is spoiled between a step's commands and its checks; the demo must then fail there, by name
(`tests/e2e/test_demo.py`).
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tools.demo.later_life import LaterLife
from tools.demo.stage import Stage, stage
from tools.demo.tpms import Kind, Tpms, kind_for

# Long enough to read along, short enough to see two renewals. A fleet's are 24 h.
LEAF_LIFETIME = "40s"


def steps(story: LaterLife) -> list[tuple[str, str, Callable[[], None]]]:
    """Name, title and what is done, in order."""
    return [
        ("control plane", "A control plane: keys, a server, a node's configuration", story.control_plane),
        ("token", "A join token, for one machine", story.join_token),
        ("tpm", "A machine with a TPM", story.tpm),
        ("join", "The machine joins, with its key in the TPM", story.join),
        ("already joined", "Joining again changes nothing", story.already_joined),
        ("status", "What is what", story.status),
        ("second use", "A token works once", story.second_use),
        ("crash", "The power goes in the middle of a join", story.crash),
        ("session", "A node keeps a session", story.session),
        ("copy", "The disk of that node, copied to another machine with another TPM", story.copy),
        ("renewal", "Key and certificate are replaced at 60 % of every lifetime", story.renewal),
        ("revocation", "The control plane revokes the identity", story.revocation),
        ("dry run", "Starting over: first, what would happen", story.dry_run),
        ("reset", "Starting over, with a token", story.reset),
        ("tokenless", "Starting over without a token: the TPM proves which machine it is", story.tokenless),
    ]


def main() -> int:
    nowhere = Stage(Path("/"))
    names = [name for name, _, _ in steps(LaterLife(nowhere, Tpms(nowhere, Kind.SIM), "", ""))]
    parser = argparse.ArgumentParser(prog="demo", description="A node's life, step by step, checked from outside.")
    spoil = f"spoil one of: {', '.join(names)}"
    parser.add_argument("--sabotage", metavar="STEP", choices=names, default="", help=spoil)
    parser.add_argument("--leaf-lifetime", metavar="TIME", default=LEAF_LIFETIME, help="(default: %(default)s)")
    parser.add_argument("--tpm", choices=tuple(Kind), help="the TPMs (default: swtpm where it is installed)")
    parser.add_argument("--list", action="store_true", help="only name the steps")
    given = parser.parse_args()
    if given.list:
        print("\n".join(names))
        return 0
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    with stage(colour) as built:
        tpms = Tpms(built, Kind(given.tpm) if given.tpm else kind_for(built.home))
        story = LaterLife(built, tpms, given.sabotage, given.leaf_lifetime)
        for number, (name, title, act) in enumerate(steps(story), 1):
            built.say(f"\n{number}. {title}", "1;36")
            try:
                act()
            except Exception as error:  # whatever it is, the step did not do what it says
                built.say(f"\ndemo failed at step: {name}: {type(error).__name__}: {error}", "31")
                return 1
    print(f"\nEvery step did what it says ({len(names)} steps). Nothing is left running, and no file is left.")
    return 0


if __name__ == "__main__":
    # Ended like Ctrl-C, so that the server goes and the directory with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    raise SystemExit(main())
