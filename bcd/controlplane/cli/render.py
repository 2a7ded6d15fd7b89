"""Text for people, JSON for machines."""

import json
from collections.abc import Sequence
from datetime import datetime

from bcd.controlplane.adapters.admin.codec import to_json


def print_json(value: object) -> None:
    print(json.dumps(to_json(value), indent=2, ensure_ascii=True))


def print_json_line(value: object) -> None:
    """One value a line, for a stream without an end."""
    print(json.dumps(to_json(value), ensure_ascii=True), flush=True)


def time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}" if at is not None else "-"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """Columns as wide as their longest cell; one line that says so when there is no row."""
    if not rows:
        print(nothing)
        return
    every = [head, *rows]
    widths = [max(len(row[column] or "-") for row in every) for column in range(len(head))]
    for row in every:
        print("  ".join((cell or "-").ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def facts(pairs: Sequence[tuple[str, str]]) -> None:
    """One thing, a line a fact; what there is none of is left out."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        if value:
            print(f"{name.ljust(width)}  {value}")
