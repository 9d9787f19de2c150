"""White space sets, numbers and entity names."""

from __future__ import annotations

import pytest

from memhtml_format import text


def test_ascii_collapse_keeps_no_break_spaces_and_ends() -> None:
    assert text.collapse_ascii(" a \t\r\n\fb\u00a0 c\v") == " a b\u00a0 c\v"


def test_trim_takes_the_wide_set_and_no_separators() -> None:
    assert text.trim("\ufeff\u00a0\u2028 a \v\u3000") == "a"
    assert text.trim("\x1c\x85a") == "\x1c\x85a"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0.5", 0.5),
        (" 7 ", 7.0),
        ("+.5", 0.5),
        ("1e1", 10.0),
        ("5.", 5.0),
        ("", None),
        (" ", None),
        ("0x10", None),
        ("1_0", None),
        ("NaN", None),
        ("1e999", None),
        ("٣", None),
        ("9" * 500, None),
    ],
)
def test_number_is_finite_decimal_text(written: str, value: float | None) -> None:
    assert text.number(written) == value


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.125, "0.13"), (1, "1.00"), (0, "0.00"), (0.005, "0.01"), (0.115, "0.12"), (0.99, "0.99")],
)
def test_two_decimals_round_exact_ties_up(value: float, written: str) -> None:
    assert text.two_decimals(value) == written


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("service:checkout-api", True),
        ("person:sample user", True),
        ("a:b:c", True),
        ("memhtml", False),
        (":x", False),
        ("a:", False),
        ("Service:X", False),
        ("person: sample", False),
        ("person:sample  user", False),
        ("person:e\u0301", False),
    ],
)
def test_well_formed_entity_splits_and_is_normal(value: str, expected: bool) -> None:
    assert text.well_formed_entity(value) is expected


def test_normal_entity_normalises_both_halves() -> None:
    assert text.normal_entity("  Person :  Sample\u00a0 USER ") == "person:sample user"
    assert text.normal_entity("  Plain  Text ") == "plain text"


def test_scrub_replaces_lone_surrogates() -> None:
    assert text.scrub("a\ud800b") == "a\ufffdb"
