"""A claim and its negated copy (`memhtml.retrieve.polarity`, spec `retrieval` §10)."""

from __future__ import annotations

import pytest
from tests.support.pool import at_cosine, candidate, scored

from memhtml.retrieve.polarity import demote, is_negated, tokens

DRAIN = "The old address must be drained before the switch."
NOT_DRAIN = "The old address must not be drained before the switch."


@pytest.mark.parametrize(
    "text",
    [
        "It is not so.",
        "NO entry",
        "never on Fridays",
        "You can't.",
        "It cannot be",
        "it isn't",
        "It isn’t.",
        "the run failed",
        "Neither of them",
        "deny access",
        "unsafe",
    ],
)
def test_a_marker_negates_a_text(text: str) -> None:
    assert is_negated(text)


@pytest.mark.parametrize(
    "text", ["", "nothing", "a knot", "notable", "nonempty", "failure", "cant", "Nora"]
)
def test_a_word_that_holds_a_marker_does_not_negate(text: str) -> None:
    assert not is_negated(text)


def test_contractions_are_written_out_and_numbers_stay_whole() -> None:
    assert tokens("Don't, can't, isn't 3.14 v2") == [
        "do", "not", "can", "not", "is", "not", "3.14", "v2",
    ]  # fmt: skip


def _order(query: str, *pool: tuple[str, str, list[float] | None]) -> list[tuple[str, float]]:
    found = demote(query, scored(candidate(path, gist, vector=at) for path, gist, at in pool))
    return [(each.path, round(score, 4)) for each, score in found]


def test_a_negated_copy_falls_below_the_claim_the_query_states() -> None:
    found = _order(
        "must the old address be drained before the switch",
        ("twin", NOT_DRAIN, [1, 0]),
        ("other", "Something else.", [0, 1]),
        ("claim", DRAIN, at_cosine(0.95)),
    )
    assert found == [("other", 0.5), ("claim", 0.3333), ("twin", 0.1667)]


def test_a_negated_query_demotes_the_claim() -> None:
    found = _order(
        "the old address must not be drained before the switch",
        ("claim", DRAIN, [1, 0]),
        ("twin", NOT_DRAIN, at_cosine(0.95)),
    )
    assert found == [("twin", 0.5), ("claim", 0.25)]


@pytest.mark.parametrize(
    ("reason", "gist", "vector"),
    [
        ("far in the space", NOT_DRAIN, at_cosine(0.89)),
        ("no vector", NOT_DRAIN, None),
        ("other words", "Nobody may enter the hall without a badge.", at_cosine(0.99)),
    ],
)
def test_what_is_no_near_copy_keeps_its_place(
    reason: str, gist: str, vector: list[float] | None
) -> None:
    found = _order("must the address be drained", ("a", gist, vector), ("b", DRAIN, [1, 0]))
    assert found == [("a", 1.0), ("b", 0.5)], reason


def test_the_lowest_of_several_copies_counts() -> None:
    found = _order(
        "must the old address be drained",
        ("one", DRAIN, [1, 0]),
        ("twin", NOT_DRAIN, [1, 0]),
        ("two", DRAIN, [1, 0]),
    )
    assert found == [("one", 1.0), ("two", 0.3333), ("twin", 0.1667)]


def test_a_copy_that_stands_lower_already_stays() -> None:
    found = _order("must it be drained", ("claim", DRAIN, [1, 0]), ("twin", NOT_DRAIN, [1, 0]))
    assert found == [("claim", 1.0), ("twin", 0.5)]


def test_without_a_claim_the_start_of_the_body_is_judged() -> None:
    twin = candidate("twin", "", vector=[1, 0], body=NOT_DRAIN)
    claim = candidate("claim", " ", vector=[1, 0], body=DRAIN)
    found = demote("must it be drained", scored([twin, claim]))
    assert [each.path for each, _score in found] == ["claim", "twin"]


def test_equal_scores_are_in_the_order_of_their_paths() -> None:
    pool = [(candidate(path), 0.5) for path in ("b", "c", "a")]
    assert [each.path for each, _score in demote("x", pool)] == ["a", "b", "c"]


def test_nothing_is_demoted_in_an_empty_pool() -> None:
    assert demote("not x", []) == []
