"""The discrimination gate: does every probe outrank its own wrong-fact twins (`retrieval` §19)?

One run is a function of its settings and, with the embedder `live`, of the model that is bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.embed.port import ModelUnavailable

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder
    from memhtml.evaluate.probes import Probe

FAKE, LIVE = "fake", "live"
SEARCH_LIMIT = 40
COVERAGE_FLOOR = 0.95
_DAY_MS = 86_400_000


class Settings(NamedTuple):
    """What a run is asked for. `now_ms` is Unix milliseconds; the corpus sees its UTC day."""

    mode: str
    seed: int
    now_ms: int
    size: int
    probes: int
    mrr_floor: float


def discriminate(settings: Settings) -> dict[str, Any]:
    """Run the gate; the payload of `eval.discrimination`, passed or not (spec `cli` §13).

    Without an embedder that answers nothing is searched: `skipped`, with the reason, and not
    passed. Raises `MemhtmlError` for a bad variable and a temporary folder that fails.
    """
    try:
        embedder = _embedder(settings.mode)
        if embedder is None:
            return _skipped(settings, "no embedder is bound")
        embedder.embed_query("a first word")
        return _run(settings, embedder)
    except ModelUnavailable as error:
        return _skipped(settings, f"the embedder did not answer: {error}")


def failure(report: dict[str, Any]) -> str:
    """The sentence that says why a report did not pass."""
    if report["skipped"]:
        return f"the gate did not run in {report['mode']} mode: {report['skipReason']}"
    if not report["probes"]:
        return f"no probe among {report['corpusSize']} memories; ask for a larger --size"
    figures = (
        f"{len(report['inversions'])} of {report['probes']} probes rank below a twin that states "
        f"a wrong fact; MRR {report['mrr']}, floor {report['mrrFloor']}"
    )
    if not report["inversions"]:
        return figures
    first = report["inversions"][0]
    target = first["targetRank"]
    beaten_by = [
        f"{control['path']} ({control['family']}) at {control['rank'] or 'no rank'}"
        for control in first["controlRanks"]
        if target is None or (control["rank"] is not None and control["rank"] <= target)
    ]
    return (
        f"{figures}; the first, seed {report['seed']} and now {report['now']}: "
        f"{first['query']!r} found {first['targetPath']} at {target or 'no rank'}, "
        f"below {', '.join(beaten_by)}"
    )


def _embedder(mode: str) -> Embedder | None:
    if mode == FAKE:
        from memhtml.embed.hashed import HashedEmbedder

        return HashedEmbedder()
    from memhtml.embed.choose import bound_embedder

    return bound_embedder()


def _run(settings: Settings, embedder: Embedder) -> dict[str, Any]:
    from memhtml.evaluate import fixture, probes, scoring
    from memhtml.evaluate.generator import Writer, generate

    now_s = settings.now_ms // _DAY_MS * _DAY_MS // 1000
    writer = Writer()
    corpus = generate(settings.seed, now_s, settings.size, writer)
    chosen = probes.choose(corpus, settings.probes, writer)
    files = fixture.files_of(corpus, chosen)
    with fixture.built(corpus, files, embedder, now_s) as index:
        answers = [_searched(index, probe, embedder, now_s) for probe in chosen]
    outcomes = [
        scoring.outcome_of(probe, [hit["path"] for hit in answer["hits"]], answer["degraded"])
        for probe, answer in zip(chosen, answers, strict=True)
    ]
    verdict = scoring.verdict_of(outcomes, settings.mrr_floor)
    return {
        "mode": settings.mode,
        "requested": settings.probes,
        "skipped": False,
        "skipReason": None,
        "probes": len(outcomes),
        "discriminated": len(outcomes) - len(verdict.inversions),
        "inversions": [scoring.row(outcome) for outcome in verdict.inversions],
        "mrr": verdict.mrr,
        "corpusMrr": verdict.corpus_mrr,
        "mrrFloor": settings.mrr_floor,
        "passed": verdict.passed,
        "degradedProbes": sum(outcome.degraded for outcome in outcomes),
        "results": [scoring.row(outcome) for outcome in outcomes],
        "seed": settings.seed,
        "now": settings.now_ms,
        "corpusSize": len(corpus.base),
    }


def _searched(index: Any, probe: Probe, embedder: Embedder, now_s: int) -> dict[str, Any]:
    from memhtml.retrieve.scope import Scope
    from memhtml.retrieve.search import search

    return search(
        index,
        probe.query,
        Scope(),
        SEARCH_LIMIT,
        embedder=embedder,
        now_s=now_s,
        floor=COVERAGE_FLOOR,
    )


def _skipped(settings: Settings, reason: str) -> dict[str, Any]:
    return {
        "mode": settings.mode,
        "requested": settings.probes,
        "skipped": True,
        "skipReason": reason,
        "probes": 0,
        "discriminated": 0,
        "inversions": [],
        "mrr": 0.0,
        "corpusMrr": 0.0,
        "mrrFloor": settings.mrr_floor,
        "passed": False,
        "degradedProbes": 0,
        "results": [],
        "seed": settings.seed,
        "now": settings.now_ms,
        "corpusSize": 0,
    }
