"""The gate over a real index: zero inversions is the bar, and what stops it from passing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from memhtml.embed.port import ModelUnavailable
from memhtml.errors import StorageError
from memhtml.evaluate import gate

NOON_MS = 1_796_040_000_000
DEFAULT = gate.Settings("fake", 20260802, NOON_MS, 200, 36, 0.85)


class Deaf:
    """A bound model that cannot answer."""

    model_id = "deaf"
    dim = 8

    def embed(self, texts: object) -> list[Any]:
        raise ModelUnavailable(self.model_id, "nobody is there")

    def embed_query(self, text: str) -> Any:
        raise ModelUnavailable(self.model_id, "nobody is there")


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.parametrize("seed", [20260802, 1, 2, 3, 4])
def test_no_fact_ranks_below_its_own_twins(seed: int) -> None:
    report = gate.discriminate(DEFAULT._replace(seed=seed))
    assert report["inversions"] == []
    assert (report["passed"], report["probes"], report["discriminated"]) == (True, 36, 36)
    assert (report["mrr"], report["degradedProbes"]) == (1.0, 0)
    assert report["corpusMrr"] > 0.95
    assert report["corpusSize"] == 200


def test_the_same_seed_and_now_give_the_same_report(tmp_path: Path) -> None:
    small = DEFAULT._replace(size=60, probes=12)
    first = gate.discriminate(small)
    assert gate.discriminate(small) == first
    later = gate.discriminate(small._replace(now_ms=NOON_MS + 11 * 3_600_000))
    assert later == first | {"now": NOON_MS + 11 * 3_600_000}
    assert os.listdir(tmp_path) == []


def test_a_live_model_that_does_not_answer_is_no_silent_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate, "_embedder", lambda mode: Deaf())
    report = gate.discriminate(DEFAULT._replace(mode="live"))
    assert (report["skipped"], report["passed"], report["probes"]) == (True, False, 0)
    assert report["skipReason"] == "the embedder did not answer: deaf: nobody is there"
    assert "did not run in live mode: the embedder did not answer" in gate.failure(report)


def test_no_bound_model_is_no_silent_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "off")
    report = gate.discriminate(DEFAULT._replace(mode="live"))
    assert (report["skipped"], report["passed"]) == (True, False)
    assert report["skipReason"] == "no embedder is bound"


def test_the_bound_model_is_the_one_of_a_live_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "hash")
    small = DEFAULT._replace(size=40, probes=6)
    live = gate.discriminate(small._replace(mode="live"))
    assert live == gate.discriminate(small) | {"mode": "live"}


def test_an_inversion_fails_the_run_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def twin_first(_index: Any, probe: Any, *_rest: Any) -> dict[str, Any]:
        paths = [probe.controls[0].memory.path, probe.target.path]
        return {"hits": [{"path": path} for path in paths], "degraded": True}

    monkeypatch.setattr(gate, "_searched", twin_first)
    report = gate.discriminate(DEFAULT._replace(size=10, probes=2))
    assert (report["passed"], report["mrr"], report["degradedProbes"]) == (False, 0.5, 2)
    first = report["inversions"][0]
    assert first == report["results"][0]
    said = gate.failure(report)
    assert said.startswith("2 of 2 probes rank below a twin that states a wrong fact; MRR 0.5")
    assert f"{first['targetPath']} at 2, below {first['controlRanks'][0]['path']}" in said
    assert "seed 20260802 and now 1796040000000" in said


def test_a_floor_that_is_not_reached_is_named() -> None:
    report = gate.discriminate(DEFAULT._replace(size=10, probes=2)) | {
        "passed": False,
        "mrr": 0.5,
        "inversions": [],
    }
    assert gate.failure(report).endswith("MRR 0.5, floor 0.85")


def test_a_run_without_a_temporary_folder_is_a_storage_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(StorageError, match="write: no temporary folder: No such file"):
        gate.discriminate(DEFAULT._replace(size=2))


def test_a_corpus_without_a_fact_to_probe_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memhtml.evaluate.probes.PROBED_TYPES", ("arc",))
    report = gate.discriminate(DEFAULT._replace(size=4))
    assert (report["passed"], report["probes"]) == (False, 0)
    assert gate.failure(report).startswith("no probe among 4 memories")
