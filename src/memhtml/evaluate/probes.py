"""The probes of the gate: memories to be found again, each among twins that state a wrong fact.

Spec `retrieval` §19. Chooses and words; searches nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memhtml.evaluate.generator import DAY_S, Corpus, Memory, Writer
from memhtml.evaluate.twins import twins_of
from memhtml.retrieve.words import STOP_WORDS

PROBED_TYPES = ("procedural", "semantic")
QUERY_WORDS = 12
_WORD = re.compile(r"[a-z0-9]+(?:\.[0-9]+)?")


class Control(NamedTuple):
    """A wrong-fact twin as it stands in the store."""

    family: str
    memory: Memory


class Probe(NamedTuple):
    """A query, the memory it must find, and the twins that must rank below it."""

    query: str
    target: Memory
    controls: tuple[Control, ...]


def choose(corpus: Corpus, count: int, writer: Writer) -> list[Probe]:
    """At most `count` probes at an even stride; one with no twin that differs is left out."""
    fit = [memory for memory in corpus.base if memory.draft.memory_type in PROBED_TYPES]
    count = min(count, len(fit))
    targets = [fit[at * len(fit) // count] for at in range(count)]
    probes = [_probe(number, target, writer) for number, target in enumerate(targets)]
    return [probe for probe in probes if probe.controls]


def query_of(claim: str) -> str:
    """The words of a claim that tell something, the first twelve."""
    telling = [word for word in _WORD.findall(claim.lower()) if word not in STOP_WORDS]
    return " ".join(telling[:QUERY_WORDS])


def _probe(number: int, target: Memory, writer: Writer) -> Probe:
    controls = [
        Control(twin.family, _control(target, twin.claim, writer))
        for twin in twins_of(target.claim, target.anchor, number)
        if twin.claim not in writer.claims
    ]
    return Probe(query_of(target.claim), target, tuple(controls))


def _control(target: Memory, claim: str, writer: Writer) -> Memory:
    """The target's file with another claim, beside it and one day newer."""
    writer.claims.add(claim)
    at_s = target.at_s + DAY_S
    draft = target.draft._replace(claim=claim, path=None, links=(), valid_from=None)
    path = writer.place(draft, at_s)
    return Memory(path, draft._replace(path=path), at_s, target.anchor)
