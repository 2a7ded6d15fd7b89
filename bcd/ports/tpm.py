"""Port: the machine's own TPM."""

from typing import Protocol

from bcd.domain.model.tpm import TpmFound


class Tpm(Protocol):
    def identify(self) -> TpmFound:
        """What it is and holds. Nothing of it is changed, and nothing stays loaded.

        The documented failure when there is no TPM 2.0, it cannot be opened, does not answer or is not started; what
        is wrong with one key or one hierarchy stands in the result."""
        ...
