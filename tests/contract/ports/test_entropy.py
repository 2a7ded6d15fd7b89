"""The port `Entropy`: one contract over the system's generator and the fake that always says the middle."""

from collections.abc import Callable

import pytest

from bcd.adapters.host.entropy import SystemEntropy
from bcd.ports.entropy import Entropy
from tests.fakes.contracts import checks_of, failed_checks
from tests.fakes.joining import Half

DRAWS = 2000


class EntropyContract:
    @staticmethod
    def a_fraction_is_at_least_0_and_below_1(entropy: Entropy) -> None:
        assert all(0.0 <= entropy.fraction() < 1.0 for _ in range(DRAWS))

    @staticmethod
    def fractions_lie_around_the_middle(entropy: Entropy) -> None:
        # Ten standard deviations of the mean of that many uniform draws: it never happens by chance.
        assert abs(sum(entropy.fraction() for _ in range(DRAWS)) / DRAWS - 0.5) < 0.065


@pytest.mark.parametrize("make", [SystemEntropy, Half])
@pytest.mark.parametrize("check", checks_of(EntropyContract).values(), ids=checks_of(EntropyContract))
def test_every_implementation_meets_the_contract(check: Callable[[Entropy], None], make: Callable[[], Entropy]) -> None:
    check(make())


class UpToTwo(SystemEntropy):
    def fraction(self) -> float:
        return 2 * super().fraction()


class HalvesIt(SystemEntropy):
    def fraction(self) -> float:
        return super().fraction() / 2


@pytest.mark.parametrize(
    ("wrong", "caught_by"),
    [(UpToTwo, "a_fraction_is_at_least_0_and_below_1"), (HalvesIt, "fractions_lie_around_the_middle")],
)
def test_a_wrong_implementation_fails_the_contract(wrong: Callable[[], Entropy], caught_by: str) -> None:
    assert caught_by in failed_checks(EntropyContract, wrong)


def test_the_systems_fractions_are_all_different() -> None:
    entropy = SystemEntropy()
    assert len({entropy.fraction() for _ in range(DRAWS)}) == DRAWS
