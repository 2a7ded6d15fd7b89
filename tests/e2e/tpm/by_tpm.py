"""A node that joined by its TPM, and what it is asked to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.lifecycle.lives import Running
from tests.fakes.fitted_machine import OnSwTpm


def joined_by_tpm(one: OnSwTpm) -> OnSwTpm:
    """Joined; what it sends its TPM is counted from here on."""
    one.fitted.allowed().joined()
    one.proxy.forget()
    return one


@contextmanager
def up(one: OnSwTpm) -> Iterator[Running]:
    """Its node, with a session."""
    running = Running(one.fitted.machine, env=one.fitted.env)
    running.wait("session up")
    yield running
    running.stop()


def ask(one: OnSwTpm) -> None:
    one.fitted.plane.admin("nodes", "renew-now", one.fitted.id)


def renewed(one: OnSwTpm, running: Running) -> None:
    """A renewal that was asked for, and the session with the new certificate."""
    ask(one)
    running.wait(" renewed ")
    running.wait("session up", times=2)
