"""What gRPC's C core reads from the environment, once, when it is loaded: to be set before any module imports grpc."""

import os


def prepare() -> None:
    """Makes this process a server of TLS 1.3 alone, whose errors are told by us and nobody else."""
    # The core's own error lines would stand beside the documented message.
    os.environ["GRPC_VERBOSITY"] = "NONE"
    # A single TLS 1.2 suite, for RSA keys, which a P-256 certificate cannot serve, leaves TLS 1.3: Python has no
    # other switch for it.
    os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-RSA-AES128-GCM-SHA256"
