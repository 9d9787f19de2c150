"""Wrong-fact twins, family by family, and what each predicate sees."""

from __future__ import annotations

import pytest

from memhtml.evaluate import twins


@pytest.mark.parametrize(
    ("claim", "denied"),
    [
        ("The valve must be flushed.", "The valve must not be flushed."),
        ("Rates are kept and can grow.", "Rates are not kept and can grow."),
        ("The pump was reset, as pumps are.", "The pump was not reset, as pumps are."),
        ("Drain the relay.", "It is not true that drain the relay."),
        ("It is.", "It is not true that it is."),
    ],
)
def test_a_claim_is_denied_after_its_first_auxiliary_or_as_a_whole(claim: str, denied: str) -> None:
    assert twins.negated(claim) == denied


@pytest.mark.parametrize(
    ("claim", "other"),
    [
        ("It holds 9 lines.", "It holds 19 lines."),
        ("It holds 99 lines of 7.", "It holds 109 lines of 7."),
        ("It holds 100 lines.", "It holds 200 lines."),
        ("It takes 1.5 hours.", "It takes 3 hours."),
        ("It takes 35.2 hours.", "It takes 70.4 hours."),
        ("It holds lines.", "It holds lines."),
    ],
)
def test_the_first_number_is_replaced(claim: str, other: str) -> None:
    assert twins.renumbered(claim) == other


def test_a_qualifier_follows_the_anchor_word_once() -> None:
    assert twins.qualified("The relay feeds a relay.", "relay", "beta") == (
        "The relay beta feeds a relay."
    )
    assert twins.qualified("The relays run.", "relay", "beta") == "The relays run."


def test_a_claim_gets_one_twin_of_each_family() -> None:
    found = twins.twins_of("The relay limit is 11.", "relay", 1)
    assert [(twin.family, twin.claim) for twin in found] == [
        ("negation", "The relay limit is not 11."),
        ("numeric", "The relay limit is 21."),
        ("variant", "The relay beta limit is 11."),
    ]


@pytest.mark.parametrize(
    ("claim", "families"),
    [
        ("The relay must never run above 11.", ["numeric", "variant"]),
        ("The relay comes from the works.", ["negation", "variant"]),
        ("The pump is slow.", ["negation"]),
    ],
)
def test_a_twin_that_its_own_predicate_does_not_see_is_dropped(
    claim: str, families: list[str]
) -> None:
    assert [twin.family for twin in twins.twins_of(claim, "relay", 0)] == families


@pytest.mark.parametrize("family", twins.FAMILIES)
def test_a_text_does_not_diverge_from_itself(family: str) -> None:
    text = "The relay beta does not hold 11 lines."
    assert not twins.diverges(family, text, text)
