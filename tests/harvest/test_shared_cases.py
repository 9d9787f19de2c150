"""Every shared harvest case, its script run on a temporary folder instead of the mount.

Harvested operations and rejection codes are compared; exit codes, the bar and the commit belong to
the tests of the whole command.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.harvest import AT, GUEST_HELPER, HELPER, read_tree, run_script, without_html

from memhtml.corpus.fold import fold
from memhtml_format.ops import decode
from memhtml_harvest.diff import diff_trees, harvest
from memhtml_harvest.seed import MapSeed

CASES = Path(__file__).parents[3] / "shared/cases/harvest.json"


def _cases() -> list[Any]:
    if not CASES.exists():
        skip = pytest.mark.skip(reason="shared cases are not here")
        return [pytest.param({}, id="shared-cases", marks=skip)]
    return [pytest.param(case, id=case["name"]) for case in json.loads(CASES.read_text())]


def _view(case: dict[str, Any]) -> dict[str, bytes]:
    base = {item["path"]: item["html"].encode() for item in case["seed"]}
    folded = fold([decode(op) for op in case.get("prior_ops", [])], base.get, AT)
    kept = {path: data for path, data in base.items() if path not in folded.gone}
    return {**kept, **folded.files}


@pytest.mark.parametrize("case", _cases())
def test_shared_case_gives_its_operations_and_rejections(
    case: dict[str, Any], tmp_path: Path
) -> None:
    if case["lang"] == "js" and shutil.which("node") is None:
        pytest.skip("no node on this host")
    if HELPER in case["script"] and not GUEST_HELPER.exists():
        pytest.skip("the helper library is not here")
    view = _view(case)
    changes = diff_trees(view, read_tree(run_script(view, case, tmp_path)))

    result = harvest(changes.changed, changes.vanished, MapSeed(view), scope="session")

    expect = case["expect"]
    ops = without_html(result.ops)
    if "harvested" in expect:
        assert ops == expect["harvested"]
    else:
        assert len(ops) == expect["harvestedCount"]
        assert Counter(op["kind"] for op in ops) == expect["harvestedKinds"]
    assert [{"path": r.path, "reason": r.code} for r in result.rejected] == expect["rejected"]
