"""Every shared harvest case judged: what an exec reports, appends, and the commit then answers.

The script runs on a temporary folder with the host's own shell; the sandbox has tests of its own.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.harvest import AT, GUEST_HELPER, HELPER, read_tree, run_script

from memhtml.bar.judge import judge
from memhtml.corpus.fold import fold
from memhtml.corpus.memory import MemoryCorpus
from memhtml.policy import DEFAULT, Policy, from_value
from memhtml_format.ops import Op, decode, touched
from memhtml_format.violations import Violation, blocking, sentence
from memhtml_harvest.diff import diff_trees, harvest
from memhtml_harvest.seed import MapSeed

CASES = Path(__file__).parents[4] / "shared/cases/harvest.json"


def _cases() -> list[Any]:
    if not CASES.exists():
        skip = pytest.mark.skip(reason="shared cases are not here")
        return [pytest.param({}, id="shared-cases", marks=skip)]
    return [pytest.param(case, id=case["name"]) for case in json.loads(CASES.read_text())]


def _view(base: dict[str, bytes], log: Sequence[Op]) -> dict[str, bytes]:
    folded = fold(log, base.get, AT)
    kept = {path: data for path, data in base.items() if path not in folded.gone}
    return {**kept, **folded.files}


def _codes(found: Sequence[Violation]) -> Counter[str]:
    return Counter(violation.kind for violation in found)


@pytest.mark.parametrize("case", _cases())
def test_shared_case_is_judged_as_expected(case: dict[str, Any], tmp_path: Path) -> None:
    if case["lang"] == "js" and shutil.which("node") is None:
        pytest.skip("no node on this host")
    if HELPER in case["script"] and not GUEST_HELPER.exists():
        pytest.skip("the helper library is not here")
    expect = case["expect"]
    base = {item["path"]: item["html"].encode() for item in case["seed"]}
    corpus = MemoryCorpus(base)
    policy = from_value(case["policy"]) if case.get("policy") is not None else DEFAULT
    log = [decode(op) for op in case.get("prior_ops", [])]
    view = _view(base, log)
    changes = diff_trees(view, read_tree(run_script(view, case, tmp_path)))
    ops = list(harvest(changes.changed, changes.vanished, MapSeed(view), scope="session").ops)

    found = judge([*log, *ops], corpus, policy, "session")

    paths = {path for op in ops for path in touched(op)}
    blocked = blocking(found, paths, run_bound=case.get("run_bound", False))
    assert _codes(found) == Counter(expect["violations"])
    assert _codes(blocked) == Counter(expect["blocking"])
    text = " ".join(sentence(violation) for violation in blocked)
    for mention in expect.get("blockingMentions", []):
        assert mention in text
    appended = [] if blocked or expect["exitCode"] else ops
    assert len(appended) == expect["appended"]
    if "commit" in expect:
        _commits_as_expected([*log, *appended], corpus, policy, expect["commit"])


def _commits_as_expected(
    log: Sequence[Op], corpus: MemoryCorpus, policy: Policy, expect: dict[str, Any]
) -> None:
    found = judge(log, corpus, policy, "session")
    assert ("refused" if found or not log else "committed") == expect["kind"]
    assert _codes(found) == Counter(expect.get("violations", []))
