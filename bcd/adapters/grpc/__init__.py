"""gRPC. Its own log would stand between the documented lines on standard error; what it says of a failed call is in the
call's status."""

import os

# Read when gRPC is loaded. Whoever looks for a fault in gRPC itself may set another.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
