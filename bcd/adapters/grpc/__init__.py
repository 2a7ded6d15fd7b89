"""gRPC. Its own log would stand between the documented lines on standard error; what it says of a failed call is in the
call's status."""

import os

# Read when gRPC is loaded. Whoever looks for a fault in gRPC itself may set another.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# TLS 1.3 and nothing older: gRPC has no setting for a lowest version, but one for the suites of 1.2. The only one left
# needs a key shared beforehand, which nobody has; the suites of 1.3 are not its to choose (tried, ADR 5).
os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-PSK-CHACHA20-POLY1305"
