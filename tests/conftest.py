"""Puts the repository's root on the path, so that every suite shares `tests.fakes`."""

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

# Before anything loads gRPC, as in every process of ours: it reads what is set here only once.
import bcd.adapters.grpc  # noqa: E402, F401
