"""Adapters of the port `Hardware`: the running kernel's files, and a machine described by a file."""
