"""Of texts that differ in a word or two, the one that says what was asked stands first.

A claim, its denial, its variant and its other number are one spot for every model and nearly one
for BM25, so which of them leads is noise. What they differ in decides here (spec `retrieval` §10,
§19): more of the query's words first, then fewer words that the query has not. Texts alone are
read; whatever is no near-copy of anything keeps its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memhtml.retrieve.polarity import MARKERS, judged_text, tokens
from memhtml.retrieve.stems import Stems
from memhtml.retrieve.words import STOP_WORDS, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memhtml.retrieve.pool import Candidate

# The share of the words of both that near-copies have in common (decided here): one of six may be
# another number, or two of seven be a denial put in front.
COPIED = 0.6
# A denial is no word of the sentence to the stop list, and all the difference here.
_SKIPPED = STOP_WORDS - MARKERS


def settle_copies(query: str, order: Sequence[Candidate]) -> list[Candidate]:
    """The order with the places of near-copies dealt out again among them.

    Near-copies share `COPIED` of their telling words with the first of their kind. Equal ones
    keep their order.
    """
    stems = Stems()
    asked = _bag(query, stems)
    bags = [_bag(judged_text(each), stems) for each in order]
    found = list(order)
    for places in _kinds(bags, asked):
        # Marker and number count like any word: what is asked is covered, what is not is too much.
        best = sorted(places, key=lambda at: (-len(bags[at] & asked), len(bags[at] - asked)))
        for place, at in zip(places, best, strict=True):
            found[place] = order[at]
    return found


def _kinds(bags: Sequence[frozenset[str]], asked: frozenset[str]) -> list[list[int]]:
    """The places of each text that has near-copies below it, theirs included, in order.

    A text without a word of the query is of no kind.
    """
    left = [at for at, bag in enumerate(bags) if not bag.isdisjoint(asked)]
    kinds = []
    while left:
        first, rest = left[0], left[1:]
        kind = [at for at in rest if _same(bags[first], bags[at])]
        left = [at for at in rest if at not in kind] if kind else rest
        if kind:
            kinds.append([first, *kind])
    return kinds


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    size = len(one), len(other)
    if min(size) < COPIED * max(size):
        return False
    common = len(one & other)
    return common >= COPIED * (sum(size) - common)


def _bag(text: str, stems: Stems) -> frozenset[str]:
    """The telling words of a text; numbers with their decimals, words of every script."""
    found = tokens(text)
    if not text.isascii():
        found += words(text)
    return frozenset(stems[word] for word in found if word not in _SKIPPED)
