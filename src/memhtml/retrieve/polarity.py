"""The polarity step: a claim and its negated near-copy do not swap places (spec `retrieval` §10).

Judges the texts alone. Without vectors it changes nothing and imports no numpy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memhtml.retrieve.pool import Candidate

_MARKER_TEXT = (
    "not no never none cannot without neither nor avoid disallow disallowed forbidden unsafe"
    " invalid false fail fails failed deny denied reject rejected"
)
MARKERS = frozenset(_MARKER_TEXT.split())
NEAR_COPY = 0.9
DEMOTION = 0.5
# Decided here: how many words of the shorter text the other has to share, markers left out. In a
# space where all texts of one subject have a cosine of 0.9, that alone would bury a right answer
# that happens to say "no" below whatever else is said of its subject.
SAME_WORDS = 0.8
_TOKEN = re.compile(r"[a-z0-9]+(?:\.[0-9]+)*")
_CONTRACTION = re.compile(r"\b(?:can't|cannot)\b|n't\b")


def tokens(text: str) -> list[str]:
    """Lower-case ASCII words and numbers, contractions of `not` written out."""
    if not text.isascii():
        import unicodedata

        text = unicodedata.normalize("NFC", text).replace("’", "'")
    expanded = _CONTRACTION.sub(_written_out, text.lower())
    return _TOKEN.findall(expanded)


def is_negated(text: str) -> bool:
    """Whether a text has a negation marker."""
    return not MARKERS.isdisjoint(tokens(text))


def judged_text(each: Candidate) -> str:
    """What the step reads of a candidate: the gist, or the start of the body without one."""
    return each.gist if each.gist.strip() else each.body_text


def demote(query: str, scored: Sequence[tuple[Candidate, float]]) -> list[tuple[Candidate, float]]:
    """Lower each candidate that disagrees with the query below its agreeing near-copies.

    A candidate disagrees when exactly one of query and text is negated. One with a vector whose
    score is above that of an agreeing near-copy gets half of the lowest such score. The result is
    in the order of score, then path.
    """
    asked = is_negated(query)
    words = [frozenset(tokens(judged_text(each))) for each, _score in scored]
    agreeing: list[int] = []
    others: list[int] = []
    for place, (each, _score) in enumerate(scored):
        if each.vector is not None:
            agrees = MARKERS.isdisjoint(words[place]) != asked
            (agreeing if agrees else others).append(place)
    found = list(scored)
    if agreeing and others:
        for place, lowest in _lowest_copies(scored, words, agreeing, others).items():
            each, score = scored[place]
            if score > lowest:
                found[place] = (each, lowest * DEMOTION)
    return sorted(found, key=lambda pair: (-pair[1], pair[0].path))


def _lowest_copies(
    scored: Sequence[tuple[Candidate, float]],
    words: Sequence[frozenset[str]],
    agreeing: Sequence[int],
    others: Sequence[int],
) -> dict[int, float]:
    """For each of `others` that has agreeing near-copies, the lowest score of these."""
    from memhtml.retrieve.similarity import cosines

    near = cosines([each.vector for each, _score in scored])
    found: dict[int, float] = {}
    for place in others:
        for other in agreeing:
            if near[place, other] >= NEAR_COPY and _share(words[place], words[other]) >= SAME_WORDS:
                score = scored[other][1]
                found[place] = min(found.get(place, score), score)
    return found


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the shorter text's words the other has, markers aside."""
    common = len((one & other) - MARKERS)
    return common / max(1, min(len(one - MARKERS), len(other - MARKERS)))


def _written_out(match: re.Match[str]) -> str:
    return " not" if match[0] == "n't" else "can not"
