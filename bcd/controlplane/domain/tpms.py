"""Which endorsement keys are of one TPM, as far as that is known (docs/protocol.md, "Endorsement keys").

A TPM has a key of each kind, and a machine shows those it likes. What ties them together is an attestation key: it
cannot leave its TPM, and a challenge proves that it is in that of an endorsement key. Which other keys the machine
showed beside that one is its own word. The word is held against who gave it, and shuts nobody else out: everybody can
show a key that is another's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from bcd.controlplane.domain.eks import TpmKey
from bcd.controlplane.ports.store import Records

# Remembered of one attestation key: the TCG's templates L-1 and L-2 are two, and a request shows at most eight.
MAX_KEYS = 8
# Remembered of one endorsement key: bcd has one, which only another endorsement seed changes.
MAX_ATTESTATION_KEYS = 16
# Followed from one request: no honest TPM leads to a second.
MAX_REACH = 64


class Tie(StrEnum):
    """How another key stands to one. SAME: both are in one TPM. SHOWED: its TPM showed this one. SHOWN: this one's TPM
    showed it."""

    SAME = "same"
    SHOWED = "showed"
    SHOWN = "shown"


@dataclass(frozen=True)
class Other:
    ek: str
    tie: Tie


def remember(records: Records, ak: str, proved: str, offered: Iterable[str]) -> None:
    """A challenge has just proved that the attestation key `ak` is in the TPM of the endorsement key `proved`; the
    machine showed `offered` beside it."""
    rows = {row.ek: row for row in records.tpm_keys.of_ak(ak)}
    if not rows and len(_aks_proved(records, proved)) >= MAX_ATTESTATION_KEYS:
        return
    for ek in (proved, *offered):
        old = rows.get(ek)
        if ek != proved and (old is not None or len(rows) >= MAX_KEYS):
            continue
        rows[ek] = TpmKey(ak, ek, proved=ek == proved)
        if rows[ek] != old:
            records.tpm_keys.put(rows[ek])


def denied_with(records: Records, eks: Iterable[str], ak: str = "") -> str:
    """A key that is denied, of those the TPM that has `eks`, or `ak`, ever showed; empty when there is none."""
    own = tuple(eks)
    shown = {row.ek for one in _aks(records, own, ak) for row in records.tpm_keys.of_ak(one)}
    return next((ek for ek in (*own, *sorted(shown)) if _is_denied(records, ek)), "")


def doubt(records: Records, ek: str) -> str:
    """A key that is denied, of a TPM that showed `ek` too, which nothing proved: it may be that TPM's, or a stranger's.
    Empty when there is none."""
    claimed = (row.ak for row in records.tpm_keys.of_ek(ek) if not row.proved)
    return next(filter(None, (denied_with(records, (), ak) for ak in claimed)), "")


def others(records: Records, ek: str) -> tuple[Other, ...]:
    """What is known to have to do with `ek`, by key."""
    own = _aks(records, (ek,))
    rows = [row for ak in own for row in records.tpm_keys.of_ak(ak)]
    same = {row.ek for row in rows if row.proved}
    shown = {row.ek for row in rows} - same
    claimed = {row.ak for row in records.tpm_keys.of_ek(ek) if not row.proved} - own
    showed = {
        row.ek for one in claimed for ak in _aks(records, (), one) for row in records.tpm_keys.of_ak(ak) if row.proved
    } - same
    # Two that each showed the other say the same of themselves.
    same |= shown & showed
    found = dict.fromkeys(same, Tie.SAME) | dict.fromkeys(showed - same, Tie.SHOWED)
    found |= dict.fromkeys(shown - same, Tie.SHOWN)
    return tuple(Other(one, found[one]) for one in sorted(found) if one != ek)


def _aks(records: Records, eks: Iterable[str], ak: str = "") -> set[str]:
    """The attestation keys known to be in the TPM that has one of `eks`, or `ak`."""
    found: set[str] = set()
    ahead = [ak] if ak else []
    ahead += [one for ek in eks for one in _aks_proved(records, ek)]
    while ahead and len(found) < MAX_REACH:
        one = ahead.pop()
        if one not in found:
            found.add(one)
            ahead += [a for row in records.tpm_keys.of_ak(one) if row.proved for a in _aks_proved(records, row.ek)]
    return found


def _aks_proved(records: Records, ek: str) -> list[str]:
    return [row.ak for row in records.tpm_keys.of_ek(ek) if row.proved]


def _is_denied(records: Records, ek: str) -> bool:
    row = records.eks.get(ek)
    return row is not None and row.denied
