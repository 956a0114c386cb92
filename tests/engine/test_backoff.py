"""How long an entry that failed waits."""

from __future__ import annotations

import pytest

from felixresp.config import SETTINGS, InvalidSetting
from felixresp.engine.backoff import delay_ms

MOST_BITS = 2**64 - 1


def delays(policy: str, *attempts: int, bits: int = 0) -> list[int]:
    return [delay_ms(policy, attempt, lambda: bits) for attempt in attempts]


def test_without_a_policy_nothing_waits() -> None:
    assert delays("none", 0, 1, 50) == [0, 0, 0]


def test_a_fixed_delay_is_always_the_same() -> None:
    assert delays("fixed 250", 1, 2, 50) == [250, 250, 250]


def test_a_linear_delay_grows_by_its_step_up_to_its_cap() -> None:
    assert delays("linear 100 350", 1, 2, 3, 4, 50) == [100, 200, 300, 350, 350]


def test_an_exponential_delay_grows_by_its_factor_up_to_its_cap() -> None:
    assert delays("exponential 100 2 1000", 1, 2, 3, 4, 5) == [100, 200, 400, 800, 1000]
    assert delays("exponential 100 1.5 1000", 1, 2, 3) == [100, 150, 225]


def test_a_delay_before_any_attempt_is_that_of_the_first() -> None:
    for policy in ("fixed 7", "linear 7 70", "exponential 7 2 70"):
        assert delays(policy, 0) == delays(policy, 1) == [7]


def test_jitter_takes_off_at_most_its_share_and_adds_nothing() -> None:
    policy = "exponential 100 2 1000 0.25"

    assert delays(policy, 1, 2, 9, bits=0) == [100, 200, 1000]
    assert delays(policy, 1, 2, 9, bits=MOST_BITS) == [75, 150, 750]
    for bits in range(0, MOST_BITS, MOST_BITS // 97):
        assert 750 <= delays(policy, 9, bits=bits)[0] <= 1000


def test_full_jitter_goes_down_to_no_delay() -> None:
    assert delays("exponential 100 2 1000 1", 9, bits=MOST_BITS) == [0]


@pytest.mark.parametrize("attempts", [1024, 1025, 10**6, 2**63])
def test_a_count_beyond_measure_never_overflows(attempts: int) -> None:
    for policy in (
        "linear 999999999999 999999999999",
        "exponential 999999999999 999.999999 999999999999",
        "exponential 1 1.000001 999999999999",
    ):
        assert 0 < delays(policy, attempts)[0] <= 999_999_999_999


def test_a_factor_below_1_gives_shorter_delays_and_0_none() -> None:
    assert delays("exponential 100 0.5 1000", 1, 2, 3) == [100, 50, 25]
    assert delays("exponential 100 0 1000", 1, 2) == [100, 0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fixed",
        "fixed -1",
        "fixed 1 2",
        "linear 1",
        "exponential 1 2",
        "exponential 1 1e9 5",
        "exponential 1 2 3 1.5",
        "exponential 1 nan 3",
        "exponential 1 2 3 -0.5",
        "fixed 9999999999999",
        "none 1",
        "\u0661",
        "fixed \u0661",
    ],
)
def test_a_policy_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting):
        SETTINGS["group-backoff"].parse(text)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("NONE", "none"),
        ("  Fixed   10 ", "fixed 10"),
        ("exponential 100 2.5 1000 .5", "exponential 100 2.5 1000 .5"),
    ],
)
def test_a_policy_is_kept_in_one_spelling(text: str, policy: str) -> None:
    parsed = SETTINGS["group-backoff"].parse(text)

    assert parsed == policy
    assert isinstance(parsed, str)
    assert delay_ms(parsed, 3, lambda: 0) >= 0
