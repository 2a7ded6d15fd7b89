"""Client authentication with a key that only signs: gRPC's experimental custom signer, and all that is known of it.

The one module that uses it (ADR 0023 names the fallback). gRPC hands over the message of the TLS 1.3 CertificateVerify
(RFC 8446, 4.4.3) on a thread of its own, once a connection, and waits 20 s for a DER signature.
"""

import threading
import warnings
from collections.abc import Callable, Sequence

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from grpc import experimental

from bcd.ports.gateway import Pair
from bcd.protocol.pki import ecdsa

# 64 spaces, the context string, a zero byte; then the transcript's hash, SHA-256 or SHA-384 as the suite has it.
_CONTEXT = b"\x20" * 64 + b"TLS 1.3, client CertificateVerify\x00"
_HASHES = (32, 48)
# gRPC gives up after 20 s (tried); our own word comes before.
SIGN_WITHIN_S = 15.0

Done = Callable[[bytes | Exception], None]


class Signer:
    """Signs for one connection's handshake. `trouble` is why it did not, for the report of a connection that failed:
    gRPC itself shows "Socket closed" and the like."""

    def __init__(self, pair: Pair, signed: Callable[[], None]) -> None:
        self._pair = pair
        self._signed = signed
        self._algorithm = experimental.PrivateKeySignatureAlgorithm.ECDSA_SECP256R1_SHA256
        self.trouble = ""

    def credentials(self, root_pem: bytes) -> grpc.ChannelCredentials:
        """For one channel that trusts `root_pem` alone, and shows the pair's chain."""
        if not root_pem:
            # Empty roots are the system's roots to gRPC.
            raise ValueError("no root certificate")
        with warnings.catch_warnings():
            # Known, pinned (pyproject.toml), confined to this module; nothing to tell an operator at every start.
            warnings.simplefilter("ignore", experimental.ExperimentalApiWarning)
            credentials: grpc.ChannelCredentials = experimental.ssl_channel_credentials_with_custom_signer(
                private_key_sign_fn=self.sign, root_certificates=root_pem, certificate_chain=pem(self._pair.chain)
            )
        return credentials

    def sign(self, message: bytes, algorithm: object, done: Done) -> Callable[[], None]:
        """What gRPC calls: `done` is called once, from another thread; the answer is how gRPC gives up."""
        # On a thread of our own: a key that takes its time would hold up every other channel.
        once = _Once(done)
        threading.Thread(target=self._answer, args=(message, algorithm, once), name="bcd-sign", daemon=True).start()
        limit = threading.Timer(SIGN_WITHIN_S, self._fail, args=(once, f"no signature within {SIGN_WITHIN_S:.0f} s"))
        limit.daemon = True
        limit.start()
        once.then(limit.cancel)
        return once.cancel

    def _answer(self, message: bytes, algorithm: object, once: "_Once") -> None:
        if algorithm != self._algorithm or not is_client_verify(message):
            self._fail(once, "gateway does not speak TLS 1.3")
            return
        try:
            signature = self._pair.key.sign(message)
        except Exception as error:  # noqa: BLE001 - on this thread nobody else would tell
            self._fail(once, f"the node key does not sign: {error}")
            return
        # A key that signs wrong (a TPM that was cleared) shows itself here and not as a network fault.
        if not ecdsa.verifies(ecdsa.public_key(self._pair.leaf.spki), message, signature):
            self._fail(once, "the node key's signature is not one of the certificate's key")
            return
        half = ecdsa.HALF_BYTES
        self._signed()
        signed = encode_dss_signature(int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))
        once(signed, lambda: self._told(""))

    def _fail(self, once: "_Once", why: str) -> None:
        once(RuntimeError(why), lambda: self._told(why))

    def _told(self, trouble: str) -> None:
        self.trouble = trouble


class _Once:
    """Answers gRPC once, whoever comes first: the signature, the time limit, or a cancellation."""

    def __init__(self, done: Done) -> None:
        self._done = done
        self._lock = threading.Lock()
        self._over = False
        self._after: Callable[[], None] | None = None

    def __call__(self, answer: bytes | Exception, before: Callable[[], None]) -> None:
        """`before` is called only by the first, and before gRPC knows: it ends the call on another thread, and what
        reports that must find the reason."""
        with self._lock:
            if self._over:
                return
            self._over = True
        if self._after is not None:
            self._after()
        before()
        self._done(answer)

    def then(self, after: Callable[[], None]) -> None:
        with self._lock:
            self._after = after
            over = self._over
        if over:
            after()

    def cancel(self) -> None:
        with self._lock:
            self._over = True
        if self._after is not None:
            self._after()


def is_client_verify(message: bytes) -> bool:
    """Whether `message` is what a TLS 1.3 client signs in a handshake, and nothing else."""
    return message.startswith(_CONTEXT) and len(message) - len(_CONTEXT) in _HASHES


def pem(chain: Sequence[bytes]) -> bytes:
    """DER certificates as PEM, in their order."""
    certificates = (x509.load_der_x509_certificate(der) for der in chain)
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates)
