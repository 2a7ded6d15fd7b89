"""Manufacturers' CA certificates in files: PEM, several in one if need be; DER; a zip or a directory of such files.

What comes from a vendor's page is somebody else's file: everything about it is bounded, and nothing of it is written
anywhere."""

import base64
import binascii
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from bcd.controlplane.adapters.files.directory import translated
from bcd.controlplane.domain.admin_eks import SkippedView
from bcd.controlplane.domain.failures import Usage
from bcd.controlplane.domain.messages import Message
from bcd.protocol.pki import ek_certificate

# A bundle of one manufacturer has some ten certificates of 2 KB; all manufacturers' together about a thousand.
MAX_FILE_BYTES = 1 << 20
MAX_ZIP_BYTES = 1 << 25
MAX_FILES = 5_000
MAX_CERTIFICATES = 2_000
MAX_BYTES = 1 << 22
# In a directory or a zip, which may hold readme files too, these are looked at.
SUFFIXES = (".pem", ".crt", ".cer", ".der")
# What everybody's zip tools write. LZMA's header would say how much memory unpacking takes.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PEM = re.compile(rb"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----(.*?)-----END ", re.DOTALL)


@dataclass(frozen=True)
class Found:
    """`certificates` are DER."""

    certificates: tuple[bytes, ...]
    skipped: tuple[SkippedView, ...]


class _Unfit(Exception):
    """What is wrong with one file."""


def read(path: str) -> Found:
    """A Failure when there is no manufacturer CA's certificate at all, or too much."""
    try:
        several = os.path.isdir(path) or _is_zip(path)
        certificates: list[bytes] = []
        skipped: list[SkippedView] = []
        for name, data in _files(path):
            try:
                certificates += _certificates(data)
            except _Unfit as unfit:
                if not several:
                    raise _refused(path, str(unfit)) from None
                skipped.append(SkippedView(_shown(name), str(unfit)))
            if len(certificates) > MAX_CERTIFICATES or sum(map(len, certificates)) > MAX_BYTES:
                raise _refused(path, f"more than {MAX_CERTIFICATES} certificates, or {MAX_BYTES} bytes of them")
    except OSError as error:
        raise translated(error, path) from None
    if not certificates:
        why = f"{skipped[0].file}: {skipped[0].why}" if skipped else f"no file named {', '.join(SUFFIXES)} in it"
        raise _refused(path, why)
    return Found(tuple(certificates), tuple(skipped))


def _refused(path: str, why: str) -> Usage:
    return Usage(Message.NOT_A_MANUFACTURER_CA, path=path, why=why)


def _files(path: str) -> Iterator[tuple[str, bytes]]:
    if os.path.isdir(path):
        yield from _in_directory(path)
    elif _is_zip(path):
        yield from _in_zip(path)
    else:
        with open(path, "rb") as file:
            yield path, file.read(MAX_FILE_BYTES + 1)


def _is_zip(path: str) -> bool:
    """Of a pipe or a device zipfile would look for the end."""
    return os.path.isfile(path) and zipfile.is_zipfile(path)


def _in_directory(path: str) -> Iterator[tuple[str, bytes]]:
    """At any depth, in the order of names; links are passed over, as they lead anywhere."""
    seen = 0
    for folder, folders, files in os.walk(path, onerror=_raised):
        folders.sort()
        for name in sorted(files):
            seen += 1
            if seen > MAX_FILES:
                raise _refused(path, f"more than {MAX_FILES} files")
            full = os.path.join(folder, name)
            if name.lower().endswith(SUFFIXES) and stat.S_ISREG(os.lstat(full).st_mode):
                with open(full, "rb") as file:
                    yield os.path.relpath(full, path), file.read(MAX_FILE_BYTES + 1)


def _raised(error: OSError) -> None:
    """os.walk passes over a folder it may not read, and its CAs with it."""
    raise error


def _in_zip(path: str) -> Iterator[tuple[str, bytes]]:
    total = 0
    if os.path.getsize(path) > MAX_ZIP_BYTES:
        # The list of its files is read into memory whole.
        raise _refused(path, f"more than {MAX_ZIP_BYTES} bytes")
    try:
        with zipfile.ZipFile(path) as archive:
            if len(archive.infolist()) > MAX_FILES:
                raise _refused(path, f"more than {MAX_FILES} files")
            for entry in archive.infolist():
                if entry.filename.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", entry.filename):
                    # Nothing is unpacked here; but whoever made that one meant it for somebody who does.
                    raise _refused(path, f"{_shown(entry.filename)} leads out of it")
                if entry.is_dir() or not entry.filename.lower().endswith(SUFFIXES):
                    continue
                if entry.compress_type not in _METHODS:
                    raise _refused(path, f"{_shown(entry.filename)} is packed in a way that is not known here")
                with archive.open(entry) as file:
                    # What the directory says of its size is the maker's word.
                    data = file.read(MAX_FILE_BYTES + 1)
                total += len(data)
                if total > MAX_ZIP_BYTES:
                    raise _refused(path, f"more than {MAX_ZIP_BYTES} bytes")
                yield entry.filename, data
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, ValueError, IndexError) as error:
        # RuntimeError: a password is asked for. The last two: names and fields that are not as zipfile expects.
        raise _refused(path, f"the zip cannot be read ({_shown(str(error))})") from None


def _certificates(data: bytes) -> list[bytes]:
    """DER of each, every one a CA's."""
    if len(data) > MAX_FILE_BYTES:
        raise _Unfit("too large")
    if b"PRIVATE KEY" in data:
        raise _Unfit("a private key in it, which stays where it is used")
    bodies = _PEM.findall(data)
    try:
        parts = [base64.b64decode(body) for body in bodies] if b"-----BEGIN " in data else [data]
        if not parts:
            raise _Unfit("no certificate in it")
        return [ek_certificate.read_authority(part).der for part in parts]
    except (binascii.Error, ek_certificate.Malformed) as error:
        raise _Unfit(str(error)) from None


def _shown(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)[:200]
