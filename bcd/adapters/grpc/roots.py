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
        if self._held is None:
            self._held = self._from_file() or pinned.from_server(
                self._address, self._pins, self._clock.now(), self._config_path, self._timeout_s
            )
        return self._held

    def did_not_verify(self) -> None:
        """The CA at hand did not verify the server: the next `find` looks at what the server presents."""
        self._held = None
        self._file_failed = True

    def verified(self) -> None:
        self._file_failed = False

    def _from_file(self) -> pinned.ServingCa | None:
        data = None if self._file_failed else self._ca_file()
        return pinned.from_file(data, self._pins, self._clock.now()) if data is not None else None
