"""When a twin beats its target, and what a run is worth."""

from __future__ import annotations

import pytest

from memhtml.evaluate.generator import Memory
from memhtml.evaluate.probes import Control, Probe
from memhtml.evaluate.scoring import Outcome, outcome_of, row, verdict_of
from memhtml_format.render import Draft


def memory(path: str) -> Memory:
    return Memory(path, Draft("T", "semantic", claim="C."), 0, "relay")


PROBE = Probe(
    "relay limit",
    memory("target.html"),
    (Control("negation", memory("not.html")), Control("numeric", memory("number.html"))),
)


@pytest.mark.parametrize(
    ("ranked", "target", "controls", "rank"),
    [
        (["target.html", "not.html", "number.html"], 1, (2, 3), 1),
        (["other.html", "target.html"], 2, (None, None), 1),
        (["not.html", "target.html", "number.html"], 2, (1, 3), 2),
        (["not.html", "number.html", "target.html"], 3, (1, 2), 3),
        (["number.html"], None, (None, 1), 3),
        ([], None, (None, None), 3),
    ],
)
def test_a_twin_beats_a_target_that_is_absent_or_below_it(
    ranked: list[str], target: int | None, controls: tuple[int | None, ...], rank: int
) -> None:
    outcome = outcome_of(PROBE, ranked, degraded=False)
    assert outcome == Outcome(PROBE, target, controls, rank, degraded=False)
    assert outcome.discriminated == (rank == 1)


def test_a_row_says_where_everything_ranks() -> None:
    assert row(outcome_of(PROBE, ["a", "b", "target.html", "not.html"], degraded=True)) == {
        "query": "relay limit",
        "targetPath": "target.html",
        "targetRank": 3,
        "discriminationRank": 1,
        "controlRanks": [
            {"path": "not.html", "family": "negation", "rank": 4},
            {"path": "number.html", "family": "numeric", "rank": None},
        ],
        "discriminated": True,
        "reciprocalRank": 1.0,
        "corpusReciprocalRank": 0.3333,
        "degraded": True,
    }


def test_a_run_passes_without_an_inversion_and_at_the_floor() -> None:
    good = outcome_of(PROBE, ["target.html"], degraded=False)
    bad = outcome_of(PROBE, ["not.html", "target.html"], degraded=False)
    assert verdict_of([good, good], 1.0).passed
    mixed = verdict_of([good, bad, good], 0.5)
    assert (mixed.passed, mixed.inversions) == (False, (bad,))
    assert (mixed.mrr, mixed.corpus_mrr) == (0.8333, 0.8333)


def test_a_run_without_a_probe_does_not_pass() -> None:
    empty = verdict_of([], 0.0)
    assert (empty.passed, empty.mrr, empty.corpus_mrr) == (False, 0.0, 0.0)
