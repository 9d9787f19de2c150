"""What `eval discriminate` answers (spec `cli` §13)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from memhtml.schema.base import Count, Model, RecordPath

Rank = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class ControlRank(Model):
    """Where a twin that states a wrong fact ranks; null when the answer lacks it."""

    path: RecordPath
    family: Literal["negation", "numeric", "variant"]
    rank: Rank | None


class ProbeResult(Model):
    """One probe as it was answered. `discriminationRank` is 1 plus the twins that beat it."""

    query: str
    target_path: Annotated[RecordPath, Field(alias="targetPath")]
    target_rank: Annotated[Rank | None, Field(alias="targetRank")]
    discrimination_rank: Annotated[Rank, Field(alias="discriminationRank")]
    control_ranks: Annotated[list[ControlRank], Field(alias="controlRanks")]
    discriminated: bool
    reciprocal_rank: Annotated[Share, Field(alias="reciprocalRank")]
    corpus_reciprocal_rank: Annotated[Share, Field(alias="corpusReciprocalRank")]
    degraded: bool


class Discrimination(Model):
    """`eval.discrimination`: always a pass, as anything else is a failure."""

    mode: Literal["fake", "live"]
    requested: Count
    skipped: Literal[False]
    skip_reason: Annotated[None, Field(alias="skipReason")]
    probes: Count
    discriminated: Count
    inversions: list[ProbeResult]
    mrr: Share
    corpus_mrr: Annotated[Share, Field(alias="corpusMrr")]
    mrr_floor: Annotated[Share, Field(alias="mrrFloor")]
    passed: Literal[True]
    degraded_probes: Annotated[Count, Field(alias="degradedProbes")]
    results: list[ProbeResult]
    seed: int
    now: Count
    corpus_size: Annotated[Count, Field(alias="corpusSize")]


PAYLOADS: dict[str, type[BaseModel]] = {"eval.discrimination": Discrimination}
"""Response type → the model of its `data`."""
