"""`TpmKeys` by the client: node keys, primaries of the owner hierarchy that their uniques derive."""

import hashlib
from collections.abc import Callable
from typing import TypeVar

from bcd.adapters.tpm import failures
from bcd.adapters.tpm.client import AnotherKey, Client, node_key
from bcd.adapters.tpm.failures import Refusal
from bcd.domain.model.keys import Hash
from bcd.protocol.tpm2 import commands, names, templates
from bcd.protocol.tpm2.commands import SignIn
from bcd.protocol.tpm2.structures import NO_HASH_CHECK, Algorithm, EcdsaSignature, Scheme
from bcd.protocol.tpm2.wire import Malformed

_ALGORITHMS = {Hash.SHA256: Algorithm.SHA256, Hash.SHA384: Algorithm.SHA384, Hash.SHA512: Algorithm.SHA512}

T = TypeVar("T")


class LinkedKeys:
    """The node keys in the TPM of `client`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def node_key(self, unique: bytes) -> bytes:
        return self._asked(commands.CREATE_PRIMARY.name, lambda: names.spki(self._client.load(node_key(unique)).public))

    def sign(self, unique: bytes, message: bytes, digest: Hash) -> bytes:
        scheme = Scheme(Algorithm.ECDSA, _ALGORITHMS[digest])
        wanted = SignIn(hashlib.new(digest.value, message).digest(), scheme, NO_HASH_CHECK)

        def ask() -> bytes:
            answer, _ = self._client.use((node_key(unique),), commands.SIGN, wanted)
            return p1363(answer.parameters.signature.ecdsa)

        return self._asked(commands.SIGN.name, ask)

    def release(self, unique: bytes) -> None:
        self._client.release(node_key(unique))

    def _asked(self, command: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except Refusal as refusal:
            raise failures.of_code(refusal, self._client.device) from None
        except (AnotherKey, Malformed) as error:
            raise failures.failed(self._client.device, command, str(error)) from None


def p1363(signature: EcdsaSignature) -> bytes:
    """Both halves with 32 bytes each, whatever zeros the TPM left out or put before; Malformed for longer numbers."""
    halves = [half.lstrip(b"\0") for half in (signature.r, signature.s)]
    if any(len(half) > templates.P256_BYTES for half in halves):
        raise Malformed("a signature that is not P-256's")
    return b"".join(half.rjust(templates.P256_BYTES, b"\0") for half in halves)
