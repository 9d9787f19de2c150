"""The full-text expressions of a query (spec `retrieval` §5).

A query is prose; the only syntax is the ASCII double quote. Whatever it holds, the expressions are
legal FTS5: every term stands in quotes, and no term makes no expression.
"""

from __future__ import annotations

from typing import NamedTuple

from memhtml.retrieve.words import STOP_WORDS, words

# A page pasted as a query would otherwise read the whole full-text index, a list a word.
MOST_TERMS = 256


class Match(NamedTuple):
    """The two forms of a query: `every` term, and `any` of them. Equal with one term."""

    every: str
    any: str


def match_of(query: str) -> Match | None:
    """The expressions of a query, or None when it has no term."""
    terms = [f'"{term}"' for term in terms_of(query)]
    if not terms:
        return None
    return Match(" AND ".join(terms), " OR ".join(terms))


def terms_of(query: str) -> list[str]:
    """The distinct terms in order: words outside quotes, phrases of a balanced pair of quotes.

    Stop words outside quotes are left out when another term remains. At most `MOST_TERMS`
    (decided here).
    """
    pieces = query.split('"')
    if len(pieces) % 2 == 0:
        # An odd quote means no phrase at all.
        pieces = [" ".join(pieces)]
    terms: dict[str, bool] = {}
    for place, piece in enumerate(pieces):
        found = words(piece)
        if place % 2 == 0:
            for word in found:
                terms[word] = terms.get(word, False) or word not in STOP_WORDS
        elif found:
            terms[" ".join(found)] = True
    telling = [term for term, tells in terms.items() if tells]
    return (telling or list(terms))[:MOST_TERMS]
