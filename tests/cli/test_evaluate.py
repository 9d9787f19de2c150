"""`eval discriminate` at the command line: whole envelopes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.command import memhtml

from memhtml.schema.envelope import validate_envelope

SMALL = ("--seed", "7", "--now", "1796040000000", "--size", "30", "--probes", "4")


def test_a_pass_answers_the_whole_report_and_opens_no_store(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "MEMHTML_REFUSE_ENV_ROOT": "1", "TMPDIR": str(tmp_path)}
    said = memhtml("eval", "discriminate", *SMALL, env=env)
    assert said.status == 0
    validate_envelope(said.envelope)
    assert said.envelope["type"] == "eval.discrimination"
    figures = {key: said.data[key] for key in said.data if key != "results"}
    assert figures == {
        "mode": "fake",
        "requested": 4,
        "skipped": False,
        "skipReason": None,
        "probes": 4,
        "discriminated": 4,
        "inversions": [],
        "mrr": 1,
        "corpusMrr": 1,
        "mrrFloor": 0.85,
        "passed": True,
        "degradedProbes": 0,
        "seed": 7,
        "now": 1796040000000,
        "corpusSize": 30,
    }
    assert [result["discriminationRank"] for result in said.data["results"]] == [1, 1, 1, 1]
    assert list(tmp_path.iterdir()) == []
    assert memhtml("eval", "discriminate", *SMALL, env=env).stdout == said.stdout


def test_a_live_run_without_an_embedder_fails() -> None:
    said = memhtml("eval", "discriminate", "--mode", "live", env={"MEMHTML_EMBED": "off"})
    assert said.status == 1
    assert said.envelope == {
        "apiVersion": "1",
        "error": "the gate did not run in live mode: no embedder is bound",
        "code": "ERR_DISCRIMINATION_FAILED",
        "suggestions": ["memhtml eval discriminate --mode fake"],
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--size", "0"), "--size is 0; it must be 1 or more"),
        (("--probes", "-3"), "--probes is -3; it must be 1 or more"),
        (("--now", "-1"), "--now is -1; it must be from 0 to 253402300799999 milliseconds"),
        (("--mrr-floor", "1.01"), "--mrr-floor is '1.01'; it must be a decimal from 0 to 1"),
        (("--mrr-floor=",), "--mrr-floor is ''; it must be a decimal from 0 to 1"),
        (("--mode", "dead"), "--mode is 'dead'; allowed are fake, live"),
    ],
)
def test_a_value_out_of_range_is_refused(words: tuple[str, ...], sentence: str) -> None:
    said = memhtml("eval", "discriminate", *words)
    assert said.status == 2
    assert (said.envelope["code"], said.envelope["error"]) == ("ERR_INVALID_FLAG", sentence)
    assert said.envelope["suggestions"][-1] == "memhtml help eval discriminate"
