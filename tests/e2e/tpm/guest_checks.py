"""What runs in the guest: each check prints one line of JSON with what it found, and test_real_kernel judges it.

One after the other, as a start of Python costs seconds on an emulated processor; beside most of them a node, whose life
is waiting. TPM2_Clear comes after that node's end, and last what gives the device another number."""

import json
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.e2e.tpm import guest_client, guest_programs

Check = Callable[[], object]
# They change who may open the device.
FIRST: tuple[Check, ...] = (guest_client.root_without_its_capabilities, guest_client.somebody_who_is_not_root)
BESIDE_A_NODE: tuple[Check, ...] = (
    guest_programs.the_program_identifies,
    guest_client.a_handle_that_denotes_nothing,
    guest_client.a_fourth_key,
    guest_client.two_processes,
    guest_client.two_threads,
    guest_client.a_late_reply,
    guest_client.a_client_that_is_killed,
)
LAST: tuple[Check, ...] = (guest_client.a_tpm_that_is_cleared, guest_client.a_device_that_goes_and_comes_back)


def main(home: Path) -> None:
    guest_programs.CONFIG.write_text("")
    run(*FIRST)
    plane = guest_programs.served(home)
    try:
        # Beside nothing else: what it leaves in the TPM is looked at.
        joins = partial(guest_programs.a_machine_joins_by_its_tpm, plane)
        print(json.dumps(line_of(joins, joins.func.__name__)), flush=True)
        renews = partial(guest_programs.its_node_renews_twice, plane)
        node = guest_client.in_child(partial(line_of, renews, renews.func.__name__))
        run(*BESIDE_A_NODE)
        print(json.dumps(node()), flush=True)
    finally:
        plane.stop()
    run(*LAST)


def run(*checks: Check) -> None:
    for check in checks:
        print(json.dumps(line_of(check, check.__name__)), flush=True)


def line_of(check: Check, name: str) -> dict[str, object]:
    began = time.monotonic()
    line: dict[str, object] = {"check": name}
    try:
        line["found"] = check()
    except Exception:
        line["trouble"] = traceback.format_exc()
    return line | {"seconds": round(time.monotonic() - began, 2)}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
