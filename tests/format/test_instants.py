"""The two spellings of an instant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhtml_format.instants import is_instant, millisecond, second


@pytest.mark.parametrize(
    "written",
    ["2026-07-28", "2024-02-29", "2000-02-29", "2026-12-31T23:59:60Z", "2026-01-01T00:00:00Z"],
)
def test_both_forms_are_instants(written: str) -> None:
    assert is_instant(written)


@pytest.mark.parametrize(
    "written",
    [
        "2026-8-9",
        "2026-02-29",
        "1900-02-29",
        "2026-13-01",
        "2026-00-10",
        "2026-04-31",
        "2026-01-00",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T00:00Z",
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00+00:00",
        "2026-01-01 00:00:00Z",
        "2026-01-01t00:00:00z",
        "2026-01-01\n",
        " 2026-01-01",
        "٢٠٢٦-01-01",
        "",
    ],
)
def test_anything_else_is_no_instant(written: str) -> None:
    assert not is_instant(written)


@given(st.floats(0, 4e9))
def test_stamps_are_instants_of_whole_seconds(at_s: float) -> None:
    assert is_instant(second(at_s))
    assert len(second(at_s)) == 20


@given(st.floats(0, 4e9))
def test_stamps_with_milliseconds_keep_the_second(at_s: float) -> None:
    stamp = millisecond(at_s)
    assert len(stamp) == 24
    assert second(int(at_s * 1000) // 1000) == f"{stamp[:19]}Z"


def test_stamps_with_milliseconds_are_cut_and_begin_with_1970() -> None:
    assert millisecond(1.9999) == "1970-01-01T00:00:01.999Z"
    assert millisecond(-5.0) == "1970-01-01T00:00:00.000Z"
