"""Frame keys and lexical agreement."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhtml_format.frame import frame, values_agree


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The capital of India is New Delhi.", ("the capital of india is", "New Delhi")),
        ("THE  Capital of India is   Mumbai", ("the capital of india is", "Mumbai")),
        ("The cache ttl is five minutes.", ("the cache ttl is", "five minutes")),
        ("The capital is Paris.", ("the capital is", "Paris")),
        ("ratio of a is b to c", ("ratio of a is b to", "c")),
        ("The capital\u00a0 is\u3000Paris..", ("the capital is", "Paris.")),
        ("The cost éis 5", ("the cost éis", "5")),
        ("Water is wet.", None),
        ("Total isolation inbox toast", None),
        ("The cache ttl is one two three four five six seven", None),
        ("The cache ttl IS five", None),
        ("The cache ttl is", None),
        ("", None),
    ],
)
def test_frame_of_a_claim(claim: str, expected: tuple[str, str] | None) -> None:
    assert frame(claim) == expected


@pytest.mark.parametrize("claim", [" " * 200_000, "is " * 100_000, "a is" + "\u3000" * 200_000])
def test_frame_is_linear_on_long_claims(claim: str) -> None:
    began = time.process_time()
    frame(claim)
    assert time.process_time() - began < 2


@given(st.text(alphabet="of is\n.\u00a0ab", max_size=60))
def test_frame_is_total(claim: str) -> None:
    found = frame(claim)
    assert found is None or (found.key == found.key.lower() and found.value)


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("five minutes", " Five  MINUTES.", True),
        ("e\u0301", "\u00e9!?", True),
        ("five minutes", "5 minutes", False),
    ],
)
def test_values_agree_by_letters_only(one: str, other: str, agree: bool) -> None:
    assert values_agree(one, other) is agree
