"""`Tpm` by the client: which endorsement keys, certificates and banks a TPM has, and whether it takes node keys."""

import secrets
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from bcd.adapters.tpm import failures
from bcd.adapters.tpm.client import AnotherKey, Client, Key
from bcd.adapters.tpm.endorsement import CHAIN_INDICES, ECC_P256_INDEX, RSA_2048_INDEX, persistent, stored
from bcd.adapters.tpm.failures import Refusal
from bcd.domain.model.failures import Failure
from bcd.domain.model.tpm import EkKind, EndorsementKey, Stored, TpmFound
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.codes import Rc
from bcd.protocol.tpm2.commands import PcrReadIn
from bcd.protocol.tpm2.structures import Algorithm, Handle, PcrSelection, Public
from bcd.protocol.tpm2.wire import Malformed

# TCG EK Credential Profile 2.5, 2.2.1.4 and 2.2.1.5: the high range.
_LATER_INDICES = range(0x01C00012, 0x01C0001F, 2)
_BANKS = {
    "sha1": Algorithm.SHA1,
    "sha256": Algorithm.SHA256,
    "sha384": Algorithm.SHA384,
    "sha512": Algorithm.SHA512,
    "sm3_256": Algorithm.SM3_256,
}
_PCR_0 = b"\x01\x00\x00"
_PROFILE = (
    (EkKind.RSA_2048, templates.EK_RSA_2048, RSA_2048_INDEX),
    (EkKind.ECC_P256, templates.EK_ECC_P256, ECC_P256_INDEX),
)


T = TypeVar("T")


class LinkedTpm:
    """The TPM that `connect` gives a client for."""

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect

    def identify(self) -> TpmFound:
        client = self._connect()
        try:
            return _identify(client)
        except Refusal as refusal:
            raise failures.of_code(refusal, client.device) from None
        finally:
            client.close()


def _identify(client: Client) -> TpmFound:
    banks = tuple(name for name, bank in _BANKS.items() if _has_bank(client, bank))
    keys = tuple(_endorsement_key(client, *one) for one in _PROFILE)
    others, unread = _others(client)
    return TpmFound(client.device, keys, others, unread, banks, _node_key_trouble(client))


def _has_bank(client: Client, bank: Algorithm) -> bool:
    try:
        answer = client.run(commands.PCR_READ, (), PcrReadIn((PcrSelection(bank, _PCR_0),)))
    except Refusal as refusal:
        if refusal.code.base == Rc.HASH:
            # An algorithm this TPM does not have.
            return False
        raise
    # A bank that is not allocated is read all the same: as no PCR.
    return bool(answer.parameters.values)


def _endorsement_key(client: Client, kind: EkKind, template: Public, index: int) -> EndorsementKey:
    certificate, trouble = _tried(client, lambda: stored(client, index))
    public, no_key = _tried(client, lambda: _public(client, template, certificate))
    spki, odd = _tried(client, lambda: names.spki(public) if public else b"")
    return EndorsementKey(
        kind,
        spki or b"",
        certificate,
        public is not None and certificate is not None and names.in_certificate(public, certificate.data),
        trouble or no_key or odd,
    )


def _public(client: Client, template: Public, certificate: Stored | None) -> Public:
    return persistent(client, template, certificate) or client.load(Key(Handle.ENDORSEMENT, template)).public


def _node_key_trouble(client: Client) -> Failure | None:
    template = templates.node_key(secrets.token_bytes(templates.UNIQUE_BYTES))
    made, trouble = _tried(client, lambda: client.load(Key(Handle.OWNER, template)))
    if made is None:
        return trouble
    _, odd = _tried(client, lambda: names.spki(made.public))
    return odd


def _others(client: Client) -> tuple[tuple[Stored, ...], Failure | None]:
    """What else is stored for endorsement keys, and why something of it could not be read."""
    found: list[Stored] = []
    unread: Failure | None = None
    for index in (*_LATER_INDICES, *CHAIN_INDICES):
        one, trouble = _tried(client, partial(stored, client, index))
        unread = unread or trouble
        if one is not None:
            found.append(one)
        elif index in CHAIN_INDICES:
            # A chain's parts lie one behind the other.
            break
    return tuple(found), unread


def _tried(client: Client, step: Callable[[], T]) -> tuple[T | None, Failure | None]:
    """What `step` gives, or why this one thing cannot be had. A TPM that does not answer at all ends the report."""
    try:
        return step(), None
    except Refusal as refusal:
        return None, failures.of_code(refusal, client.device)
    except (AnotherKey, Malformed) as error:
        return None, client.failed(commands.CREATE_PRIMARY, str(error))
