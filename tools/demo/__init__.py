"""The demo: a node's life with the real commands."""
