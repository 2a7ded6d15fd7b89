"""What is served without gRPC."""
