"""Making a TPM: seeds, endorsement keys, and a manufacturer's certificates for them."""

import datetime
import errno
import os
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bcd.adapters.tpmsim import file, manufacturer, primaries
from bcd.adapters.tpmsim.state import (
    MAGIC,
    PLATFORM_CREATE,
    SEED_BYTES,
    VERSION,
    Faults,
    Hierarchy,
    Persistent,
    State,
    fresh_bank,
    with_nv,
)
from bcd.protocol.tpm2 import templates
from bcd.protocol.tpm2.structures import Algorithm, Handle, NvAttribute

# TCG EK Credential Profile 2.5, 2.2.1.4; TCG TPM v2.0 Provisioning Guidance, 7.8.
RSA_CERTIFICATE, ECC_CERTIFICATE = 0x01C00002, 0x01C0000A
CERTIFICATES = (RSA_CERTIFICATE, ECC_CERTIFICATE)
_CERTIFIED = (
    ("EK rsa-2048", RSA_CERTIFICATE, templates.EK_RSA_2048),
    ("EK ecc-p256", ECC_CERTIFICATE, templates.EK_ECC_P256),
)
PERSISTENT_RSA = 0x81010001
# TPMA_NV of an endorsement certificate as swtpm_setup has it: the platform's to write, whoever asks may read, and it
# counts for no lockout.
_PP_WRITE, _WRITE_DEFINE, _PP_READ, _NO_DA = 1 << 0, 1 << 13, 1 << 16, 1 << 25
CERTIFICATE_ATTRIBUTES = (
    _PP_WRITE | _WRITE_DEFINE | _PP_READ | NvAttribute.OWNER_READ | NvAttribute.AUTH_READ | _NO_DA | PLATFORM_CREATE
)
# Certificates begin yesterday: the clock of whoever reads them may be behind.
_BEFORE = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Made:
    """Where a manufactured TPM's things are."""

    state: str
    root: str
    issuing: str
    certificates: tuple[tuple[str, int], ...]


def fresh_state(banks: Iterable[int] = (Algorithm.SHA256,)) -> State:
    """A TPM as it leaves the factory without certificates: started, with seeds of its own."""
    return State(
        magic=MAGIC,
        version=VERSION,
        boot=1,
        cleared=0,
        owner=fresh_hierarchy(),
        endorsement=fresh_hierarchy(),
        null=fresh_hierarchy(),
        clock_ms=0,
        since_ms=time.time_ns() // 1_000_000,
        # The one that it was first started by.
        resets=1,
        restarts=0,
        safe=1,
        failed_tries=0,
        tried=0,
        banks=tuple(fresh_bank(bank) for bank in banks),
        extends=0,
        nv=(),
        persistent=(),
        rsa_keys=(),
        faults=Faults(),
    )


def manufacture(path: str, directory: str, banks: Iterable[int] = (Algorithm.SHA256,)) -> Made:
    """A new TPM at `path` with certificates of the manufacturer in `directory`, which is made if absent.

    FileExistsError when there is something at `path`; OSError as the system gave it; ValueError when `directory` holds
    something else."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "", path)
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0) - _BEFORE
    authority = manufacturer.founded(directory, now)
    state = fresh_state(banks)
    for _, index, template in _CERTIFIED:
        key, state = primaries.derive(state, Handle.ENDORSEMENT, template, b"")
        state = with_nv(state, index, CERTIFICATE_ATTRIBUTES, authority.certify(key.private.public_key(), now))
    state = replace(state, persistent=(Persistent(PERSISTENT_RSA, Handle.ENDORSEMENT, templates.EK_RSA_2048),))
    file.create(path, state)
    root, issuing = (os.path.join(directory, name) for name in (manufacturer.ROOT, manufacturer.ISSUING))
    return Made(path, root, issuing, tuple((what, index) for what, index, _ in _CERTIFIED))


def fresh_hierarchy() -> Hierarchy:
    """New secrets, no password."""
    return Hierarchy(secrets.token_bytes(SEED_BYTES), secrets.token_bytes(SEED_BYTES), b"", 0)
