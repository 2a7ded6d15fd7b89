"""bcd: node identity that survives."""

__version__ = "0.1.0"
