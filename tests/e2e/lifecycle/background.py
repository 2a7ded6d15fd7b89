"""Scenarios that mostly wait run beside each other: each in a thread, begun with the first test that asks for one."""

import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from tests.e2e.lifecycle.lives import start_plane
from tests.fakes.plane import Plane

SHORT = ("--leaf-lifetime", "20s")
# Room, between a renewal that failed and the end, for a control plane to start again on a busy machine.
ROOMY = ("--leaf-lifetime", "60s")
# Renewed when asked, as often as asked (the quota grows as lives get shorter), and over long after any test is.
ASKED = ("--leaf-lifetime", "120s")
# Long enough for a session that is being replaced, and far shorter than a certificate.
GRACE = "3s"
_AT_ONCE = 10
# Each wait in a scenario has an end of its own; all of them together take this on a machine that does much else.
_PATIENCE_S = 600


class Stage:
    """Where scenarios play. The control planes are made when one is asked for, and shared."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._planes: dict[str, Plane] = {}
        self._locks = {name: Lock() for name in ("short", "asked", "long")}
        self._lock = Lock()

    def place(self, name: str) -> Path:
        """A directory of that scenario's own."""
        made = self.home / name
        made.mkdir()
        return made

    def short(self) -> Plane:
        """Certificates of 20 seconds."""
        return self._plane("short", *SHORT)

    def asked(self) -> Plane:
        """Certificates that no test sees renewed before it asked for that."""
        return self._plane("asked", *ASKED)

    def long(self) -> Plane:
        """Certificates of a day."""
        return self._plane("long")

    def own(self, name: str, *init_words: str, serve: bool = True, host: str | None = None) -> Plane:
        """A control plane for one scenario, which may do to it what it wants."""
        plane = start_plane(self.home / name, *init_words, grace=GRACE, host=host)
        if serve:
            plane.serve()
            plane.node_config()
        with self._lock:
            self._planes[name] = plane
        return plane

    def _plane(self, name: str, *init_words: str) -> Plane:
        with self._locks[name]:
            return self._planes.get(name) or self.own(name, *init_words)

    def end(self) -> None:
        for plane in self._planes.values():
            plane.stop()


Scenario = Callable[[Stage], None]
SCENARIOS: dict[str, Scenario] = {}


def in_background(scenario: Scenario) -> Callable[..., None]:
    """Makes a scenario a test: it fails as the scenario does."""
    name = scenario.__name__
    SCENARIOS[name] = scenario

    @functools.wraps(scenario)
    def test(background: "Background") -> None:
        background.result(name)

    del test.__wrapped__  # pytest would look at the scenario's own arguments
    return test


class Background:
    def __init__(self, stage: Stage, names: set[str]) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._runs: dict[str, Future[None]] = {
            name: self._pool.submit(SCENARIOS[name], stage) for name in SCENARIOS if name in names
        }

    def result(self, name: str) -> None:
        self._runs[name].result(timeout=_PATIENCE_S)

    def end(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
