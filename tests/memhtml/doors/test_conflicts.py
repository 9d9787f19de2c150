"""Which claims of one frame differ, and that the first of them is named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memhtml.doors.conflicts import Claim, Conflicts
from memhtml_format.frame import values_agree

VALUES = st.sampled_from(["5", "6", "7", "five", "Five.", "FIVE "])


def naive(stored: list[Claim], batch: list[Claim], value: str) -> Claim | None:
    differing = (each for each in stored + batch if not values_agree(each.value, value))
    return next(differing, None)


@given(st.lists(VALUES, max_size=6), st.lists(st.tuples(st.sampled_from("kl"), VALUES)))
def test_the_first_claim_that_differs_is_found(
    stored: list[str], batch: list[tuple[str, str]]
) -> None:
    rows = {"k": [Claim(value, value, path=f"areas/{n}.html") for n, value in enumerate(stored)]}
    conflicts = Conflicts(lambda key: rows.get(key, []))
    seen: dict[str, list[Claim]] = {"k": [], "l": []}
    for number, (key, value) in enumerate(batch):
        expected = naive(rows.get(key, []), seen[key], value)
        assert conflicts.check(number, key, value, value) == expected
        seen[key].append(Claim(value, value, batch_index=number))


def test_the_store_is_asked_once_for_a_frame() -> None:
    asked: list[str] = []

    def stored(key: str) -> list[Claim]:
        asked.append(key)
        return []

    conflicts = Conflicts(stored)
    for number in range(5):
        conflicts.check(number, "the limit is", "5", "The limit is 5.")
    assert asked == ["the limit is"]


def test_a_conflict_names_one_place() -> None:
    assert Claim("5", "It is 5.", path="areas/a.html").to_json() == {
        "path": "areas/a.html",
        "batch_index": None,
        "claim": "It is 5.",
    }
    assert Claim("5", "It is 5.", batch_index=2).to_json() == {
        "path": None,
        "batch_index": 2,
        "claim": "It is 5.",
    }
