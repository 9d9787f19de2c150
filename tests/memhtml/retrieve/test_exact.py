"""Of near-copies the one that says what was asked stands first (`memhtml.retrieve.exact`)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.pool import candidate, paths, placed

from memhtml.retrieve.exact import settle_copies

CLAIM = "The relay of the harbour crane should wait 12 seconds before a retry."
TWINS = {
    "negated": "The relay of the harbour crane should not wait 12 seconds before a retry.",
    "number": "The relay of the harbour crane should wait 22 seconds before a retry.",
    "variant": "The relay of the legacy harbour crane should wait 12 seconds before a retry.",
}
QUERY = "relay harbour crane should wait 12 seconds before retry"


def _order(query: str, claims: Mapping[str, str]) -> list[str]:
    pool = placed(candidate(path, claim) for path, claim in claims.items())
    return paths(settle_copies(query, pool))


@pytest.mark.parametrize("twin", TWINS)
def test_the_claim_takes_the_place_of_its_twin(twin: str) -> None:
    claims = {"other": "Cranes rest on Sunday.", twin: TWINS[twin], "claim": CLAIM}
    assert _order(QUERY, claims) == ["other", "claim", twin]


@pytest.mark.parametrize("twin", TWINS)
def test_a_twin_stands_first_when_it_is_what_was_asked(twin: str) -> None:
    assert _order(TWINS[twin], {"claim": CLAIM, **TWINS})[0] == twin


def test_copies_that_differ_in_what_was_not_asked_keep_their_order() -> None:
    claims = {
        "second": "Vera works as a tutor in the old town near the river.",
        "first": "Vera works as a baker in the old town near the river.",
    }
    assert _order("what does vera work as", claims) == ["second", "first"]


def test_what_is_no_copy_keeps_its_place_however_well_it_fits() -> None:
    claims = {"far": "The relay rests.", "near": "A crane of the harbour waits 12 seconds."}
    assert _order(QUERY, claims) == ["far", "near"]


def test_words_of_every_script_tell_copies_apart() -> None:
    claims = {
        "b": "Σύνδεση με τον διακομιστή κάθε πρωί στις δέκα ώρα πόλης",
        "a": "Σύνδεση με τον διακομιστή κάθε πρωί στις εννέα ώρα πόλης",
    }
    assert _order("σύνδεση διακομιστή πρωί εννέα", claims) == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "first", "second"),
    [
        ("лимит 11", "Кран на причале поднимает 11 тонн.", "Лимит смены равен 11 часам."),
        ("制限 11", "港のクレーンは 11 です。", "中継の制限は 11 です。"),
    ],
)
def test_a_number_in_common_makes_no_copies(query: str, first: str, second: str) -> None:
    assert _order(query, {"first": first, "second": second}) == ["first", "second"]


def test_a_decimal_is_one_number() -> None:
    claims = {
        "twin": "It takes 15 hours to flush the valve.",
        "claim": "It takes 1.5 hours to flush the valve.",
    }
    assert _order("take 1.5 hours flush valve", claims) == ["claim", "twin"]


@given(st.lists(st.text("ab not12", max_size=14), max_size=12), st.text("ab not12", max_size=14))
def test_nothing_is_lost_and_a_second_time_changes_nothing(claims: list[str], query: str) -> None:
    pool = placed(candidate(str(at), claim) for at, claim in enumerate(claims))
    once = settle_copies(query, pool)
    assert sorted(paths(once)) == sorted(paths(pool))
    assert paths(settle_copies(query, once)) == paths(once)
