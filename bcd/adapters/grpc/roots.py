"""Which serving CA a client trusts now: the file beside the configuration first, then what the server presents."""

from collections.abc import Callable

from bcd.adapters.grpc import pinned
from bcd.domain.model.pins import Pins
from bcd.ports.clock import Clock
from bcd.protocol.files.config import Address


class Roots:
    """The pinned CA for one address, kept while it verifies the server."""

    def __init__(
        self,
        address: Address,
        *,
        pins: Pins,
        config_path: str,
        clock: Clock,
        ca_file: Callable[[], bytes | None],
        timeout_s: float = pinned.CONNECT_TIMEOUT_S,
    ) -> None:
        self._address = address
        self._pins = pins
        self._config_path = config_path
        self._clock = clock
        self._ca_file = ca_file
        self._timeout_s = timeout_s
        self._held: pinned.ServingCa | None = None
        self._file_failed = False

    def find(self) -> pinned.ServingCa:
        """The CA, PEM; CannotProbe or FixConfiguration (SERVING_PIN) when there is none to be had."""
        return self.at_hand() or self.probe()

    def at_hand(self) -> pinned.ServingCa | None:
        """The CA that is held, or the one in the file beside the configuration; the server is not asked."""
        if self._held is None and not self._file_failed:
            data = self._ca_file()
            self._held = pinned.from_file(data, self._pins, self._clock.now()) if data is not None else None
        return self._held

    def probe(self) -> pinned.ServingCa:
        """The CA in what the server presents now; fails as `find` does."""
        self._held = None
        self._held = pinned.from_server(
            self._address, self._pins, self._clock.now(), self._config_path, self._timeout_s
        )
        return self._held

    def did_not_verify(self) -> None:
        """The CA at hand did not verify the server: the next `find` looks at what the server presents."""
        self._held = None
        self._file_failed = True

    def verified(self) -> None:
        """The CA at hand did verify the server: the file beside the configuration may serve again."""
        self._file_failed = False
