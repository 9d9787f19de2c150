"""Wrong-fact twins of a claim, and the predicates that see how two claims diverge (§18, §19).

Pure text. A twin differs from its claim in one family only; one that its own predicate does not
see is dropped by who asks.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memhtml.retrieve.polarity import is_negated

NEGATION, NUMERIC, VARIANT = "negation", "numeric", "variant"
FAMILIES = (NEGATION, NUMERIC, VARIANT)
VARIANT_WORDS = frozenset(
    ("pro", "max", "beta", "alpha", "rc", "preview", "legacy", "deprecated", "experimental")
)
QUALIFIERS = ("legacy", "beta", "pro", "preview", "experimental")
_SMALL = 100
_STEP = 10
_AUXILIARY = re.compile(r" (?:should|must|will|does|was|were|are|can|is|do)(?= )")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_WORD = re.compile(r"[a-z0-9]+")


class Twin(NamedTuple):
    """A claim that states the wrong fact, and what was changed."""

    family: str
    claim: str


def twins_of(claim: str, anchor: str, ordinal: int) -> list[Twin]:
    """Up to three twins, each seen by its own predicate; `ordinal` picks the qualifier."""
    qualifier = QUALIFIERS[ordinal % len(QUALIFIERS)]
    wrong = (
        (NEGATION, negated(claim)),
        (NUMERIC, renumbered(claim)),
        (VARIANT, qualified(claim, anchor, qualifier)),
    )
    return [Twin(family, text) for family, text in wrong if diverges(family, claim, text)]


def diverges(family: str, one: str, other: str) -> bool:
    """Whether two texts differ in a family: in negation, in their numbers, in variant words."""
    if family == NEGATION:
        return is_negated(one) != is_negated(other)
    if family == NUMERIC:
        return set(_NUMBER.findall(one)) != set(_NUMBER.findall(other))
    return _variants(one) != _variants(other)


def negated(claim: str) -> str:
    """The claim denied: after its first auxiliary, else as a whole."""
    found = _AUXILIARY.search(claim)
    if found is None:
        return f"It is not true that {claim[:1].lower()}{claim[1:]}"
    return f"{claim[: found.end()]} not{claim[found.end() :]}"


def renumbered(claim: str) -> str:
    """The claim with another first number; a claim without one is given back as it is."""
    found = _NUMBER.search(claim)
    if found is None:
        return claim
    return f"{claim[: found.start()]}{_other_number(found[0])}{claim[found.end() :]}"


def qualified(claim: str, anchor: str, qualifier: str) -> str:
    """The claim about another variant of the anchor; one without the anchor is given back."""
    return re.sub(rf"\b{re.escape(anchor)}\b", f"{anchor} {qualifier}", claim, count=1)


def _other_number(text: str) -> str:
    if "." not in text:
        value = int(text)
        return str(value + _STEP if value < _SMALL else value * 2)
    return f"{float(text) * 2:.10g}"


def _variants(text: str) -> frozenset[str]:
    return VARIANT_WORDS.intersection(_WORD.findall(text.lower()))
