"""A list of endorsement keys as spreadsheets and scripts write it; the first wrong line is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.controlplane.cli import ek_csv
from bcd.controlplane.domain.admin_eks import EkRow
from bcd.controlplane.domain.eks import MAX_NOTE
from bcd.controlplane.domain.failures import Failure, Usage
from bcd.controlplane.domain.messages import Message
from tests.fakes.properties import few

A, B = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"


def read(text: str | bytes, tmp_path: Path) -> tuple[EkRow, ...]:
    path = tmp_path / "eks.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return ek_csv.read(str(path))


def wrong(text: str | bytes, tmp_path: Path) -> tuple[int, str]:
    with pytest.raises(Usage) as caught:
        read(text, tmp_path)
    failure = caught.value
    assert failure.message is Message.EK_FILE_LINE
    return int(str(failure.fields["line"])), str(failure.fields["why"])


def test_every_column_is_read(tmp_path: Path) -> None:
    text = f'ek,site,role,node_id,note\n{A},lab,site,rack-7,"rack 7, top"\n{B},barn,,,\n'
    assert read(text, tmp_path) == (
        EkRow(2, A, "lab", "site", "rack-7", "rack 7, top"),
        EkRow(3, B, "barn", "node", None, ""),
    )


@pytest.mark.parametrize(
    "text",
    [
        f"ek,site\n{A},lab\n",
        f"ek,site\n{A},lab",
        f"\ufeffek,site\r\n{A},lab\r\n",
        f"site,ek\nlab,{'A' * 64}\n",
        f"EK , Site\n {A} , lab \n",
        f'"ek","site"\n"{A}","lab"\n',
        f"ek,site,note\n{A},lab,\n",
    ],
    ids=["plain", "no line end", "a spreadsheet's", "another order", "spaces", "quoted", "empty note"],
)
def test_it_is_the_same_list_however_it_is_written(text: str, tmp_path: Path) -> None:
    assert read(text, tmp_path) == (EkRow(2, A, "lab", "node", None, ""),)


def test_empty_lines_are_passed_over_and_counted(tmp_path: Path) -> None:
    assert [row.line for row in read(f"\nek,site\n\n{A},lab\n,\n{B},lab\n\n", tmp_path)] == [4, 6]


def test_a_file_with_the_names_of_columns_alone_is_an_empty_list(tmp_path: Path) -> None:
    assert read("ek,site\n", tmp_path) == ()


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "no line with the names of columns: ek, site, role, node_id, note"),
        (f"{A},lab\n", 1, "the columns are ek, site, role, node_id, note, the first two required, not sha256:aa"),
        ("ek\n", 1, "the columns are"),
        ("ek,site,site\n", 1, "the columns are"),
        ("ek,site,s\x1b\n", 1, "the columns are ek, site, role, node_id, note, the first two required, not ek,site,s?"),
        (f"ek,site\n{A},lab\n{B}\n", 3, "1 columns, and the first line names 2"),
        (f"ek,site\n{A},lab,node\n", 2, "3 columns, and the first line names 2"),
        ("ek,site\n12,lab\n", 2, "want sha256: and 64 hexadecimal digits"),
        (f"ek,site\n{A},\n", 2, ""),
        (f"ek,site\n{A},a/b\n", 2, ""),
        (f"ek,site,role\n{A},lab,admin\n", 2, ""),
        (f"ek,site,node_id\n{A},lab,..\n", 2, ""),
        (f'ek,site,note\n{A},lab,"a\nb"\n', 2, "a note is at most 200 printable characters"),
        (f"ek,site,note\n{A},lab,{'x' * 201}\n", 2, "a note is at most 200 printable characters"),
        (f"ek,site\n{A},lab\n\n{A},barn\n", 4, f"{A} is on line 2 already"),
        (f'ek,site\n{A},"lab\n', 2, ""),
        (f'ek,site\n{A},"lab"x\n', 2, ""),
        (b"ek,site\nabc,l\xffb\n", 2, "not UTF-8"),
        (b"ek;site\n", 1, "the columns are"),
    ],
)  # fmt: skip
def test_the_first_wrong_line_is_named(text: str | bytes, line: int, why: str, tmp_path: Path) -> None:
    found = wrong(text, tmp_path)
    assert found[0] == line
    assert found[1] and found[1].startswith(why)
    assert found[1].isprintable()


def test_as_much_as_may_be_is_taken(tmp_path: Path) -> None:
    text = f"ek,site,note\n{A},lab,{'x' * MAX_NOTE}\n"
    assert read(text, tmp_path)[0].note == "x" * MAX_NOTE
    rows = "".join(f"{number:064x},lab\n" for number in range(ek_csv.MAX_ROWS))
    assert len(read("ek,site\n" + rows, tmp_path)) == ek_csv.MAX_ROWS
    assert len(read(text.ljust(ek_csv.MAX_BYTES, "\n"), tmp_path)) == 1


def test_more_than_an_import_takes_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"{number:064x},lab\n" for number in range(ek_csv.MAX_ROWS + 1))
    assert wrong("ek,site\n" + rows, tmp_path) == (ek_csv.MAX_ROWS + 2, "more than 10000 keys")
    assert wrong(b" " * (ek_csv.MAX_BYTES + 1), tmp_path)[1] == "the file is larger than 4194304 bytes"


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="No such file"):
        ek_csv.read(str(tmp_path / "none"))


@few
@given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_a_line_that_is_wrong(data: bytes) -> None:
    for given_ in (data, b"ek,site,note\n" + data):
        try:
            text = given_.decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
        try:
            ek_csv._rows("eks.csv", text)
        except Usage as failure:
            assert failure.message is Message.EK_FILE_LINE
