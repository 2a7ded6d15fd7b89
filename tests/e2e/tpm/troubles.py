"""What can befall the TPM that holds a node's key."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bcd.adapters.tpm.client import Key
from bcd.protocol.tpm2 import templates
from bcd.protocol.tpm2.structures import Handle
from tests.e2e.messages.tpm import FAILURE, OLD, WRONG_PASSWORDS
from tests.e2e.tpm.fitted import Fitted
from tests.fakes.tpm_proxy import Answer, refuse

UNAVAILABLE = "the node key is in the TPM, which is unavailable: "
BOUND_S = 30.0
# SIGTERM to a node with a TPM that does not answer.
ENDS_WITHIN_S = 2.0
AGAIN, LOCKED_OUT = 0x922, 0x921


@dataclass(frozen=True)
class Trouble:
    """`begin` brings it about, `end` takes it away; `text` is in the message."""

    text: str
    begin: Callable[[Fitted], object]
    end: Callable[[Fitted], object] = lambda one: one.proxy.clear()

    @contextmanager
    def on(self, one: Fitted) -> Iterator[None]:
        self.begin(one)
        try:
            yield
        finally:
            self.end(one)


def answers(text: str, answer: Answer) -> Trouble:
    return Trouble(text, lambda one: one.proxy.on(None, answer))


def fill(one: Fitted, count: int = 3) -> None:
    """With somebody else's objects."""
    client = one.tpm.client()
    for number in range(count):
        client.load(Key(Handle.OWNER, templates.node_key(bytes([number]) * 32)))
    client._link.close()


def hierarchy(one: Fitted, to: str) -> None:
    one.tpm.tool("tpm2_hierarchycontrol", "-C", "p", "shEnable", to)


def lock_out(one: Fitted) -> None:
    """By wrong passwords for an index that counts them, which is gone afterwards."""
    index = "0x01C00002"
    one.tpm.tool("tpm2_nvdefine", index, "-C", "o", "-s", "8", "-a", "ownerwrite|authread|authwrite", "-p", "secret")
    (one.tpm.home / "content").write_bytes(bytes(8))
    one.tpm.tool("tpm2_nvwrite", index, "-C", "o", "-i", "content")
    for _ in range(WRONG_PASSWORDS):
        one.tpm.tool("tpm2_nvread", index, "-C", index, "-P", "wrong", check=False)
    assert "inLockout:                 1" in one.tpm.tool("tpm2_getcap", "properties-variable")
    one.tpm.tool("tpm2_nvundefine", index, "-C", "o")


PASSWORD = Trouble(
    "the TPM's owner hierarchy has a password",
    lambda one: one.tpm.tool("tpm2_changeauth", "-c", "owner", "secret"),
    lambda one: one.tpm.tool("tpm2_changeauth", "-c", "owner", "-p", "secret"),
)
HIERARCHY_OFF = Trouble(
    "the TPM's owner hierarchy is disabled", lambda one: hierarchy(one, "clear"), lambda one: hierarchy(one, "set")
)
NOT_STARTED = Trouble(
    "is not started (0x100; did a resume fail?)", lambda one: one.lose_power(started=False), Fitted.start_tpm
)
FULL = Trouble("has no free object slots (others hold them)", fill, lambda one: one.tpm.tool("tpm2_flushcontext", "-t"))
LOCKOUT = answers("is locked out after failed authorizations (0x921)", refuse(LOCKED_OUT))
BUSY = answers("is busy: ", refuse(AGAIN))
TPM_1_2 = answers("answers as a TPM 1.2", Answer(OLD))
BROKEN = answers("CreatePrimary failed: ", Answer(FAILURE))
TROUBLES = (PASSWORD, HIERARCHY_OFF, NOT_STARTED, FULL, LOCKOUT, BUSY, TPM_1_2, BROKEN)
