"""Every shared harvest case through the command line, on a store of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import check, kinds, parameters, seed_of
from tests.support.command import memhtml
from tests.support.session import make_store, tip

from memhtml.schema.envelope import validate_envelope
from memhtml.session.bound import create
from memhtml.session.log import Log, read_log, update
from memhtml_format.ops import decode, encode


@pytest.mark.parametrize("case", parameters("harvest.json"))
def test_case_gives_what_it_expects_through_the_command(
    case: dict[str, Any], tmp_path: Path
) -> None:
    if case["lang"] == "js" and shutil.which("node") is None:
        pytest.skip("there is no node here")
    root = make_store(str(tmp_path / "store"), seed_of(case))
    if "policy" in case:
        Path(root, "memhtml.config.json").write_text(json.dumps(case["policy"]), encoding="utf-8")
    create(root, Log("case", tip(root), "refs/heads/main"))
    prior = tuple(decode(op) for op in case.get("prior_ops", ()))
    update(root, "case", (), lambda log: log._replace(ops=prior))
    words = ["session", "exec", "--repo", root, "--lang", case["lang"]]
    if "timeout_ms" in case:
        words += ["--timeout-ms", str(case["timeout_ms"])]
    env = {"MEMHTML_SESSION": "case"} if case.get("run_bound") else {}
    words += [] if env else ["--id", "case"]
    said = memhtml(*words, text=case["script"], env=env)
    assert said.status == 0, said
    validate_envelope(said.envelope)
    tail = [encode(op) for op in read_log(root, "case").ops[len(prior) :]]
    listed = tail or said.data["harvested"]
    if not tail:
        case = shortened(case)
    check(case, said.data, listed)
    if "commit" in case["expect"]:
        check_commit(case["expect"]["commit"], root)


def shortened(case: dict[str, Any]) -> dict[str, Any]:
    """The case as the payload alone can show it: kind, path and destination."""
    expect = dict(case["expect"])
    if "harvested" in expect:
        expect["harvested"] = [
            {key: op[key] for key in ("kind", "path", "to") if key in op}
            for op in expect["harvested"]
        ]
    return {**case, "expect": expect}


def check_commit(expect: dict[str, Any], root: str) -> None:
    """What `session commit` answers afterwards."""
    said = memhtml("session", "commit", "--repo", root, "--id", "case", "--message", "case")
    assert said.status == 0, said
    validate_envelope(said.envelope)
    assert said.data["kind"] == expect["kind"]
    if "violations" in expect:
        assert kinds(said.data["violations"]) == sorted(expect["violations"])
