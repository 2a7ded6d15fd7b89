"""Puts the repository's root on the path, so that every suite shares `tests.fakes`."""

import signal
import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

# Before anything loads gRPC, as in every process of ours: it reads what is set here only once.
import bcd.adapters.grpc  # noqa: E402, F401

# A shell without job control lets what it starts in the background ignore these two, and so would every program that a
# test starts: none would end when a test sends it one.
for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _usual)
