"""A list of endorsement keys as CSV (RFC 4180, UTF-8): a line of column names, then a key a line.

`ek` and `site` are required; `role`, `node_id` and `note` may be left out, as columns or in a row."""

import csv
import io

from bcd.controlplane.adapters.files.directory import translated
from bcd.controlplane.domain.admin_eks import EkRow
from bcd.controlplane.domain.eks import MAX_NOTE, MalformedDigest, digest
from bcd.controlplane.domain.failures import Usage
from bcd.controlplane.domain.messages import Message
from bcd.domain.model import names

MAX_BYTES = 1 << 22
MAX_ROWS = 10_000
_REQUIRED = ("ek", "site")
_COLUMNS = (*_REQUIRED, "role", "node_id", "note")


def read(path: str) -> tuple[EkRow, ...]:
    """Every row in order; a Failure that names the line for the first that is wrong."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise translated(error, path) from None
    if len(data) > MAX_BYTES:
        raise _wrong(path, 1, f"the file is larger than {MAX_BYTES} bytes")
    try:
        # Spreadsheets put a byte-order mark there.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(path, data[: error.start].count(b"\n") + 1, "not UTF-8") from None
    return _rows(path, text)


def _wrong(path: str, line: int, why: object) -> Usage:
    return Usage(Message.EK_FILE_LINE, path=path, line=line, why=why)


def _rows(path: str, text: str) -> tuple[EkRow, ...]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] | None = None
    found: dict[str, EkRow] = {}
    # The line a row begins on: a quoted note may have several.
    begun = 1
    try:
        for cells in reader:
            line, begun = begun, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if columns is None:
                columns = _header(path, line, cells)
                continue
            if len(cells) != len(columns):
                raise _wrong(path, line, f"{len(cells)} columns, and the first line names {len(columns)}")
            row = _row(path, line, dict(zip(columns, (cell.strip() for cell in cells), strict=True)))
            if row.ek in found:
                raise _wrong(path, row.line, f"{row.ek} is on line {found[row.ek].line} already")
            if len(found) == MAX_ROWS:
                raise _wrong(path, row.line, f"more than {MAX_ROWS} keys")
            found[row.ek] = row
    except csv.Error as error:
        raise _wrong(path, begun, error) from None
    if columns is None:
        raise _wrong(path, 1, f"no line with the names of columns: {', '.join(_COLUMNS)}")
    return tuple(found.values())


def _header(path: str, line: int, cells: list[str]) -> list[str]:
    columns = [cell.strip().lower() for cell in cells]
    unknown = [column for column in columns if column not in _COLUMNS]
    missing = [column for column in _REQUIRED if column not in columns]
    if unknown or missing or len(set(columns)) != len(columns):
        shown = "".join(character if character.isprintable() else "?" for character in ",".join(columns)[:80])
        raise _wrong(path, line, f"the columns are {', '.join(_COLUMNS)}, the first two required, not {shown}")
    return columns


def _row(path: str, line: int, cells: dict[str, str]) -> EkRow:
    node_id, note = cells.get("node_id") or None, cells.get("note", "")
    try:
        ek, site = digest(cells["ek"]), names.site_id(cells["site"])
        role = names.role(cells.get("role") or names.Role.NODE.value)
        if node_id is not None:
            node_id = names.node_id(node_id)
    except (MalformedDigest, names.MalformedName) as error:
        raise _wrong(path, line, error) from None
    if len(note) > MAX_NOTE or not note.isprintable():
        raise _wrong(path, line, f"a note is at most {MAX_NOTE} printable characters")
    return EkRow(line, ek, site, role.value, node_id, note)
