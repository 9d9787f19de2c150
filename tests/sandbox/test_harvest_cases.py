"""Every shared harvest case at the library level: sandbox, harvest and bar, on both back ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.cases import check, parameters, seed_of

from memhtml import policy
from memhtml.corpus.fold import fold
from memhtml.corpus.memory import MemoryCorpus
from memhtml.replay.run import VERSION, MapSource
from memhtml.session.judgement import judge_changes
from memhtml.session.log import Log
from memhtml_format import violations as findings
from memhtml_format.ops import decode, encode
from memhtml_harvest.seed import MapSeed
from memhtml_sandbox.cache import CorpusCache
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.lower import SessionLayer
from memhtml_sandbox.probe import Support, probe
from memhtml_sandbox.sandbox import Sandbox

UID = 65534


@pytest.fixture(scope="module", params=["overlay", "copy"])
def support(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Support]:
    """What this host can do with one back end."""
    folder = str(tmp_path_factory.mktemp("probe"))
    found = probe(backend=request.param, sandbox_uid=UID, cache_dir=folder)
    if found.backend is None:
        pytest.skip(f"no {request.param} back end here: {found.reason}")
    yield found


@pytest.mark.parametrize("case", parameters("harvest.json"))
def test_case_gives_what_it_expects_on_each_back_end(
    case: dict[str, Any], support: Support, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if case["lang"] == "js" and support.node is None:
        pytest.skip("there is no node here")
    root = os.geteuid() == 0
    owner = (UID, UID) if root else (os.geteuid(), os.getegid())
    base = {path: html.encode() for path, html in seed_of(case).items()}
    ops = tuple(decode(op) for op in case.get("prior_ops", ()))
    folded = fold(ops, base.get, "2026-11-30T00:00:00Z")
    view = {p: d for p, d in {**base, **folded.files}.items() if p not in folded.gone}
    cache = CorpusCache(str(tmp_path_factory.mktemp("cache")), uid=owner[0], gid=owner[1])
    lower = cache.ensure(MapSource(base), VERSION)
    store_policy = policy.decode(repr_policy(case))
    run_bound = bool(case.get("run_bound"))
    with Sandbox(support).run(
        lower,
        SessionLayer(folded.files, folded.gone),
        script=case["script"].encode(),
        lang=case["lang"],
        limits=Limits()._replace(timeout_ms=case.get("timeout_ms", 30_000)),
    ) as run:
        log = Log("case", VERSION, "refs/heads/main", ops)
        judged = judge_changes(
            run, MapSeed(view), MemoryCorpus(base), log, store_policy, run_bound=run_bound
        )
        ended = (run.exit_code, run.timed_out, run.stdout.decode())
    lands = ended[0] == 0 and not judged.blocking
    report = {
        "exitCode": ended[0],
        "timedOut": ended[1],
        "stdout": ended[2],
        "appended": len(judged.ops) if lands else 0,
        "rejected": [item._asdict() for item in judged.rejected],
        "violations": [findings.encode(v) for v in judged.violations],
        "blocking": judged.blocking,
    }
    check(case, report, [encode(op) for op in judged.ops])


def repr_policy(case: dict[str, Any]) -> bytes:
    """The policy file of the case, `{}` without one."""
    import json

    return json.dumps(case.get("policy", {})).encode()
