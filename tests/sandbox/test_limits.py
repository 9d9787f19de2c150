"""The caps of a run: what is accepted, and what is named when it is not."""

from __future__ import annotations

import pytest

from memhtml_sandbox.limits import MAXIMA, MIB, Limits, check


def test_the_defaults_are_those_of_the_specification() -> None:
    assert Limits() == (
        30_000,
        5_000,
        64 * MIB,
        20_000,
        64 * MIB,
        20_000,
        16 * MIB,
        128,
        1_024 * MIB,
        2_048 * MIB,
        512,
        1_024,
        1 * MIB,
        1 * MIB,
        20_000,
        64,
    )
    assert check(Limits()) == Limits()


@pytest.mark.parametrize("name", Limits._fields)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "7", None])
def test_a_cap_that_is_no_whole_number_from_one_is_refused_by_name(
    name: str, value: object
) -> None:
    with pytest.raises(ValueError, match=name):
        check(Limits()._replace(**{name: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", Limits._fields)
def test_a_cap_above_its_maximum_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        check(MAXIMA._replace(**{name: getattr(MAXIMA, name) + 1}))


def test_the_maxima_themselves_are_accepted() -> None:
    assert check(MAXIMA) is MAXIMA


def test_one_is_accepted_where_no_other_cap_depends_on_it() -> None:
    ones = Limits(*([1] * len(Limits._fields)))
    with pytest.raises(ValueError, match="heap_mib"):
        check(ones)
    assert check(ones._replace(data_bytes=MIB)).timeout_ms == 1


def test_one_file_may_not_be_larger_than_all_changes() -> None:
    with pytest.raises(ValueError, match="file_bytes"):
        check(Limits(upper_bytes=MIB, file_bytes=MIB + 1))


def test_the_heap_must_fit_into_the_memory_of_a_process() -> None:
    with pytest.raises(ValueError, match="heap_mib"):
        check(Limits(data_bytes=256 * MIB, heap_mib=257))
