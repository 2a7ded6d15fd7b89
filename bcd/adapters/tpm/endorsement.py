"""What a TPM's memory holds for its endorsement keys (TCG EK Credential Profile 2.5, 2.2.1)."""

from bcd.adapters.tpm.client import Client
from bcd.adapters.tpm.failures import Refusal
from bcd.domain.model.tpm import Stored
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import Empty, NvReadIn
from bcd.protocol.tpm2.structures import Handle, NvAttribute, Public

# 2.2.1.4 and 2.2.1.5: the low range, chains.
RSA_2048_INDEX = 0x01C00002
ECC_P256_INDEX = 0x01C0000A
CHAIN_INDICES = range(0x01C00100, 0x01C00200)
# TCG TPM v2.0 Provisioning Guidance, 7.8: where a manufacturer leaves the RSA EK.
PERSISTENT_RSA = 0x81010001
# What MAX_NV_BUFFER_SIZE is: most chips', that of some of Infineon's, and the least a PC's TPM may have (PC Client
# Platform TPM Profile). A certificate has some 1,000 bytes, and each command takes time on a chip.
_BLOCKS_BYTES = (1024, 768, 512)
# How a TPM that gives less at a time says so, before it reads anything (Part 3, NV_Read): no word about the index.
_TOO_LARGE = frozenset({Rc.VALUE, Rc.SIZE, Rc.NV_RANGE})


def stored(client: Client, index: int) -> Stored | None:
    """What `index` holds; None when it is not there, or nothing was ever written to it."""
    try:
        public = client.run(commands.NV_READ_PUBLIC, (index,), Empty()).parameters.public
    except Refusal as refusal:
        if refusal.code.base == Rc.HANDLE:
            return None
        raise
    if not public.attributes & NvAttribute.WRITTEN:
        return None
    reader = index if public.attributes & NvAttribute.AUTH_READ else Handle.OWNER
    data = b""
    most_bytes, *smaller = _BLOCKS_BYTES
    while len(data) < public.size_bytes:
        wanted = NvReadIn(min(most_bytes, public.size_bytes - len(data)), len(data))
        try:
            block = client.run(commands.NV_READ, (reader, index), wanted).parameters.data
        except Refusal as refusal:
            smaller = [size_bytes for size_bytes in smaller if size_bytes < wanted.size_bytes]
            if refusal.code.base not in _TOO_LARGE or not smaller:
                raise
            most_bytes = smaller.pop(0)
            continue
        if len(block) != wanted.size_bytes:
            raise client.failed(commands.NV_READ, f"gave {len(block)} bytes for {wanted.size_bytes}")
        data += block
    return Stored(index, data)


def persistent(client: Client, template: Public, certificate: Stored | None) -> Public | None:
    """The persistent RSA key, where it is of the template and the certificate names it: deriving one takes a chip
    seconds."""
    if template is not templates.EK_RSA_2048 or certificate is None:
        return None
    try:
        public = client.run(commands.READ_PUBLIC, (PERSISTENT_RSA,), Empty()).parameters.public
    except Refusal:
        return None
    fits = templates.same_but_unique(public, template) and names.in_certificate(public, certificate.data)
    return public if fits else None


def chain(client: Client) -> tuple[bytes, ...]:
    """What stands from the first index for chains on, part by part; they lie one behind the other."""
    found: list[bytes] = []
    for index in CHAIN_INDICES:
        part = stored(client, index)
        if part is None:
            break
        found.append(part.data)
    return tuple(found)
