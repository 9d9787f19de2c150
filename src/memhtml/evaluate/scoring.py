"""What a ranking is worth: the place of each target among its own twins (spec `retrieval` §19).

Pure arithmetic over paths and ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from memhtml.evaluate.probes import Probe


class Outcome(NamedTuple):
    """One probe as it was answered. Ranks count from 1; None is a path the answer lacks.

    `discrimination_rank` is 1 plus the number of twins that beat the target.
    """

    probe: Probe
    target_rank: int | None
    control_ranks: tuple[int | None, ...]
    discrimination_rank: int
    degraded: bool

    @property
    def discriminated(self) -> bool:
        """Whether no twin beats the target."""
        return self.discrimination_rank == 1


class Verdict(NamedTuple):
    """The figures of a whole run; means are rounded to 4 decimals."""

    outcomes: tuple[Outcome, ...]
    mrr: float
    corpus_mrr: float
    passed: bool

    @property
    def inversions(self) -> tuple[Outcome, ...]:
        """The probes that a twin beats."""
        return tuple(outcome for outcome in self.outcomes if not outcome.discriminated)


def outcome_of(probe: Probe, ranked: Sequence[str], degraded: bool) -> Outcome:
    """Judge one answer; `ranked` are its paths, best first."""
    ranks = {path: at for at, path in enumerate(ranked, start=1)}
    target = ranks.get(probe.target.path)
    controls = tuple(ranks.get(control.memory.path) for control in probe.controls)
    beaten = sum(beats(rank, target) for rank in controls)
    return Outcome(probe, target, controls, 1 + beaten, degraded)


def beats(control: int | None, target: int | None) -> bool:
    """Whether a twin beats a target that is absent or ranks at or below it."""
    return target is None or (control is not None and control <= target)


def verdict_of(outcomes: Sequence[Outcome], mrr_floor: float) -> Verdict:
    """The figures of all probes. No probe at all is no pass."""
    mrr = _mean([1 / outcome.discrimination_rank for outcome in outcomes])
    corpus = _mean([_reciprocal(outcome.target_rank) for outcome in outcomes])
    clean = all(outcome.discriminated for outcome in outcomes)
    return Verdict(tuple(outcomes), mrr, corpus, bool(outcomes) and clean and mrr >= mrr_floor)


def row(outcome: Outcome) -> dict[str, Any]:
    """One element of `results` and `inversions`."""
    controls = zip(outcome.probe.controls, outcome.control_ranks, strict=True)
    return {
        "query": outcome.probe.query,
        "targetPath": outcome.probe.target.path,
        "targetRank": outcome.target_rank,
        "discriminationRank": outcome.discrimination_rank,
        "controlRanks": [
            {"path": control.memory.path, "family": control.family, "rank": rank}
            for control, rank in controls
        ],
        "discriminated": outcome.discriminated,
        "reciprocalRank": round(1 / outcome.discrimination_rank, 4),
        "corpusReciprocalRank": round(_reciprocal(outcome.target_rank), 4),
        "degraded": outcome.degraded,
    }


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / rank


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
