"""Manufacturers' CAs from files a vendor gave: all of what is good, and nothing that could hurt."""

from __future__ import annotations

import base64
import os
import threading
import zipfile
from pathlib import Path

import pytest

from bcd.controlplane.cli import ek_files
from bcd.controlplane.domain.admin_eks import SkippedView
from bcd.controlplane.domain.failures import Failure, Usage
from bcd.controlplane.domain.messages import Message
from tests.fakes import manufacturer as maker

ROOT, OTHER = maker.root(), maker.root(9100, "Other CA")
ODD = maker.root(9009, subject=maker.name("Odd CA", one_set=True, sorted_=False))
EK = ROOT.ek(maker.rsa_spki(maker.modulus(1)))


def pem(der: bytes, label: str = "CERTIFICATE") -> bytes:
    return f"-----BEGIN {label}-----\n".encode() + base64.encodebytes(der) + f"-----END {label}-----\n".encode()


def refused(path: Path) -> str:
    with pytest.raises(Usage) as caught:
        ek_files.read(str(path))
    assert caught.value.message is Message.NOT_A_MANUFACTURER_CA
    return str(caught.value.fields["why"])


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize(
    "data",
    [
        ROOT.der,
        pem(ROOT.der),
        pem(ROOT.der, "X509 CERTIFICATE"),
        pem(ROOT.der, "TRUSTED CERTIFICATE"),
        pem(ROOT.der).replace(b"\n", b"\r\n"),
        pem(ROOT.der).replace(b"\n", b"\r"),
        b"Maker's root, valid to 2030\n" + pem(ROOT.der) + b"\n# end\n",
        pem(ROOT.der).removesuffix(b"-----END CERTIFICATE-----\n") + b"-----END CERTIFICATE-----",
        maker.padded(ROOT.der),
    ],
    ids=["DER", "PEM", "X509", "trusted", "CRLF", "CR", "with words", "no line end", "padded"],
)
def test_a_ca_is_read_from_a_file(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    assert ek_files.read(str(tmp_path / "file")) == ek_files.Found((ROOT.der,), ())


def test_one_file_may_hold_several(tmp_path: Path) -> None:
    (tmp_path / "all.pem").write_bytes(pem(ROOT.der) + b"\n" + pem(ODD.der) + pem(ROOT.der))
    assert ek_files.read(str(tmp_path / "all.pem")).certificates == (ROOT.der, ODD.der, ROOT.der)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"nothing", "no certificate in it"),
        (pem(b"nothing"), "no certificate in it"),
        (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no certificate in it"),
        (b"-----BEGIN CERTIFICATE-----\n", "no certificate in it"),
        (b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n", "Invalid base64"),
        (EK, "not a CA's certificate: (no name)"),
        (pem(ROOT.der) + pem(EK), "not a CA's certificate"),
        (pem(ROOT.der) + b"-----BEGIN PRIVATE KEY-----\n", "a private key in it, which stays where it is used"),
        (b" " * (ek_files.MAX_FILE_BYTES + 1), "too large"),
        (ROOT.der[:-1], "no certificate in it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_holds_anything_else_is_refused(data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    assert refused(tmp_path / "file").startswith(why)


def test_a_directory_is_read_to_its_depth_and_what_is_no_ca_is_named(tmp_path: Path) -> None:
    (tmp_path / "maker" / "root").mkdir(parents=True)
    (tmp_path / "maker" / "root" / "ROOT.CER").write_bytes(ROOT.der)
    (tmp_path / "other.crt").write_bytes(pem(OTHER.der))
    (tmp_path / "readme.txt").write_bytes(b"about these")
    (tmp_path / "wrong.pem").write_bytes(b"wrong")
    (tmp_path / "ek.der").write_bytes(EK)
    (tmp_path / "leads.pem").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "waits.pem")
    found = ek_files.read(str(tmp_path))
    assert found.certificates == (OTHER.der, ROOT.der)
    assert found.skipped == (
        SkippedView("ek.der", "not a CA's certificate: (no name)"),
        SkippedView("wrong.pem", "no certificate in it"),
    )


def test_a_directory_without_a_ca_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == "no file named .pem, .crt, .cer, .der in it"
    (tmp_path / "wrong.pem").write_bytes(b"wrong")
    assert refused(tmp_path) == "wrong.pem: no certificate in it"


def test_a_zip_is_read_like_a_directory(tmp_path: Path) -> None:
    files = {
        "maker/root.cer": ROOT.der,
        "readme.txt": b"",
        "maker/": b"",
        "odd\x1b.pem": b"wrong",
        "b.pem": pem(ODD.der),
    }
    found = ek_files.read(str(zipped(tmp_path / "all.zip", files)))
    assert found.certificates == (ROOT.der, ODD.der)
    assert found.skipped == (SkippedView("odd?.pem", "no certificate in it"),)


@pytest.mark.parametrize("name", ["../a.pem", "/etc/a.pem", "a/../../b.pem", "..\\a.pem", "\\a.pem", "..", "a/.."])
def test_a_zip_whose_names_lead_out_of_it_is_refused(name: str, tmp_path: Path) -> None:
    why = refused(zipped(tmp_path / "all.zip", {"good.pem": pem(ROOT.der), name: pem(ROOT.der)}))
    assert why == f"{name} leads out of it"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.zip"]


def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    large = {f"{number}.pem": b" " * ek_files.MAX_FILE_BYTES for number in range(33)}
    path = zipped(tmp_path / "all.zip", large)
    assert path.stat().st_size < 1 << 20
    assert refused(path) == "more than 33554432 bytes"
    one = zipped(tmp_path / "one.zip", {"a.pem": b" " * (ek_files.MAX_FILE_BYTES * 4), "b.pem": pem(ROOT.der)})
    assert ek_files.read(str(one)).skipped == (SkippedView("a.pem", "too large"),)


def test_a_zip_of_too_many_files_is_refused(tmp_path: Path) -> None:
    many = {f"{number}.txt": b"" for number in range(ek_files.MAX_FILES + 1)}
    assert refused(zipped(tmp_path / "all.zip", many)) == "more than 5000 files"


def test_a_zip_of_as_many_files_as_may_be_is_read(tmp_path: Path) -> None:
    many = {f"{number}.txt": b"" for number in range(ek_files.MAX_FILES - 1)}
    assert ek_files.read(str(zipped(tmp_path / "all.zip", many | {"a.der": ROOT.der}))).certificates == (ROOT.der,)


def test_a_directory_of_too_many_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.der").write_bytes(ROOT.der)
    for number in range(ek_files.MAX_FILES - 1):
        (tmp_path / f"{number}.txt").touch()
    assert ek_files.read(str(tmp_path)).certificates == (ROOT.der,)
    (tmp_path / "one.more").touch()
    assert refused(tmp_path) == "more than 5000 files"


def test_too_many_certificates_are_refused(tmp_path: Path) -> None:
    (tmp_path / "all.pem").write_bytes(pem(ROOT.der) * (ek_files.MAX_CERTIFICATES + 1))
    assert refused(tmp_path / "all.pem") == "too large"
    for number in range(5):
        (tmp_path / f"{number}.crt").write_bytes(pem(ROOT.der) * (ek_files.MAX_CERTIFICATES // 4))
    (tmp_path / "all.pem").unlink()
    assert refused(tmp_path) == "more than 2000 certificates, or 4194304 bytes of them"


def test_as_many_as_may_be_are_taken(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.crt").write_bytes(pem(ROOT.der) * (ek_files.MAX_CERTIFICATES // 4))
    assert len(ek_files.read(str(tmp_path)).certificates) == ek_files.MAX_CERTIFICATES


def test_more_than_the_admin_socket_carries_is_refused(tmp_path: Path) -> None:
    filler = maker.extension("1.2.3", bytes(15_000), critical=False)
    large = maker.root(extensions=(maker.basic_constraints(True), filler)).der
    for number in range(7):
        (tmp_path / f"{number}.crt").write_bytes(pem(large) * 45)
    assert refused(tmp_path) == "more than 2000 certificates, or 4194304 bytes of them"
    for number in range(2):
        (tmp_path / f"{number}.crt").unlink()
    assert len(ek_files.read(str(tmp_path)).certificates) == 5 * 45


def test_a_ca_that_may_not_sign_is_none(tmp_path: Path) -> None:
    wrong = maker.root(extensions=(maker.basic_constraints(True), maker.key_usage(0x80))).der
    (tmp_path / "file").write_bytes(wrong)
    assert refused(tmp_path / "file") == "not a CA's certificate: CN=Maker Root CA, O=Maker Ltd, C=XX"
    (tmp_path / "file").write_bytes(maker.root(extensions=(maker.basic_constraints(True),)).der)
    assert ek_files.read(str(tmp_path / "file")).certificates


def test_a_zip_with_a_spoiled_file_is_not_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.der", ROOT.der)
        archive.writestr("b.der", OTHER.der)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(OTHER.der, bytes([*OTHER.der[:-1], OTHER.der[-1] ^ 1])))
    assert refused(path) == "the zip cannot be read (Bad CRC-32 for file 'b.der')"


def test_a_zip_that_is_spoiled_is_refused(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "all.zip", {"a.pem": pem(ROOT.der), "b.pem": pem(OTHER.der)}).read_bytes()
    for at in range(0, len(whole), 7):
        data = bytearray(whole)
        data[at] ^= 0xFF
        (tmp_path / "spoiled").write_bytes(data)
        try:
            found = ek_files.read(str(tmp_path / "spoiled"))
        except Failure:
            continue
        assert set(found.certificates) <= {ROOT.der, OTHER.der}


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "lzma"])
def test_a_zip_that_is_packed_in_another_way_is_refused(method: int, tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.pem", pem(ROOT.der))
    assert refused(path) == "a.pem is packed in a way that is not known here"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_zip_spoiled_in_any_way_is_told_as_such(method: int, tmp_path: Path) -> None:
    """Names that are no UTF-8, and fields that lead nowhere: zipfile has an exception of its own for few of them."""
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("\u00fcn\u00ef.pem", pem(ROOT.der))
    whole = path.read_bytes()
    raised = []
    for at in [*range(80), *range(len(whole) - 100, len(whole))]:
        for value in (0x00, 0xFF):
            path.write_bytes(whole[:at] + bytes((value,)) + whole[at + 1 :])
            try:
                ek_files.read(str(path))
            except Failure as failure:
                raised.append(failure)
    assert raised


def test_a_zip_that_is_itself_too_much_is_not_looked_into(tmp_path: Path) -> None:
    path = zipped(tmp_path / "all.zip", {"a.pem": pem(ROOT.der)})
    whole = path.read_bytes()
    path.write_bytes(bytes(ek_files.MAX_ZIP_BYTES - len(whole)) + whole)
    assert ek_files.read(str(path)).certificates == (ROOT.der,)
    path.write_bytes(bytes(ek_files.MAX_ZIP_BYTES + 1 - len(whole)) + whole)
    assert refused(path) == "more than 33554432 bytes"


def test_a_device_without_an_end_is_read_so_far() -> None:
    assert refused(Path("/dev/zero")) == "too large"


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(pem(ROOT.der),))
    writer.start()
    assert ek_files.read(str(tmp_path / "pipe")).certificates == (ROOT.der,)
    writer.join(20)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="No such file"):
        ek_files.read(str(tmp_path / "none"))
