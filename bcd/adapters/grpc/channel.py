"""What every client of ours sets on a gRPC channel."""

MAX_MESSAGE_BYTES = 1 << 20
CALL_TIMEOUT_S = 30.0
OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # A proxy from the environment would see, and could answer, what is meant for the control plane.
    ("grpc.enable_http_proxy", 0),
    # Retries are the caller's own: it counts them and tells of them.
    ("grpc.enable_retries", 0),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.use_local_subchannel_pool", 1),
)
