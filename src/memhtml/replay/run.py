"""Run fixtures again in the real sandbox and compare (spec `cli` §10, `replay`). Opens no store."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import config
from memhtml import policy as store_policy
from memhtml.corpus.memory import MemoryCorpus
from memhtml.errors import StorageError
from memhtml.execute.mount import owner, storage_errors, support
from memhtml.session.exec import judge_changes
from memhtml.session.log import Log
from memhtml.session.view import touched_by
from memhtml_format import violations as bar_findings

if TYPE_CHECKING:
    from memhtml.session.evidence import Judged
    from memhtml_harvest.fixture import Difference, Expect, Fixture
    from memhtml_sandbox.limits import Limits
    from memhtml_sandbox.probe import Support
    from memhtml_sandbox.result import Run

VERSION = "0" * 40
REFS = {"session": "refs/heads/main", "curate": "refs/heads/curate/replay"}


class MapSource:
    """The one version a fixture seeds."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.all = files

    def files(self, sha: str) -> Iterator[tuple[str, bytes]]:
        """Every seeded file."""
        return iter(self.all.items())

    def difference(self, old: str, new: str) -> Iterator[tuple[str, bytes | None]]:
        """There is no other version."""
        raise LookupError(f"no commit {old}")


class Result(NamedTuple):
    """What replaying one folder gave."""

    folder: str
    name: str
    state: str
    duration_ms: int
    differences: tuple[Difference, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """One entry of `fixtures`."""
        return {
            "dir": self.folder,
            "name": self.name,
            "state": self.state,
            "durationMs": self.duration_ms,
            "differences": [d._asdict() for d in self.differences],
        }


def replay(folders: Sequence[str]) -> dict[str, Any]:
    """The payload of `replay.report`.

    Errors raised: `replay.read` for a folder that is no fixture (all are read before the first
    runs), `exec.sandbox-load` on a host that cannot confine.
    """
    import tempfile  # 9 ms, and only this command needs it.

    from memhtml_harvest.fixture import FixtureError, load

    try:
        fixtures = [(folder, load(folder)) for folder in folders]
    except FixtureError as error:
        raise StorageError("replay.read", str(error)) from error
    settings = config.sandbox()
    with tempfile.TemporaryDirectory(prefix="memhtml-replay-") as scratch:
        found = support(scratch, settings)
        results = [replay_one(folder, fixture, found) for folder, fixture in fixtures]
    states = [result.state for result in results]
    return {
        "total": len(results),
        "passed": states.count("passed"),
        "failed": states.count("failed"),
        "skipped": states.count("skipped"),
        "fixtures": [result.to_json() for result in results],
    }


def replay_one(folder: str, fixture: Fixture, found: Support) -> Result:
    """Run one fixture; `skipped` when its language is not to be had here."""
    from memhtml_harvest.fixture import differences

    if fixture.lang == "js" and found.node is None:
        return Result(folder, fixture.name, "skipped", 0)
    started = time.monotonic()
    got = run_again(fixture, found)
    changed = tuple(differences(fixture.expect, got))
    state = "failed" if changed else "passed"
    return Result(folder, fixture.name, state, round((time.monotonic() - started) * 1000), changed)


def run_again(fixture: Fixture, found: Support) -> Expect:
    """Seed the view, run the script, harvest and judge, with nothing but the fixture."""
    import shutil

    from memhtml_harvest.seed import MapSeed
    from memhtml_sandbox.cache import CorpusCache
    from memhtml_sandbox.lower import NO_LAYER
    from memhtml_sandbox.sandbox import Sandbox

    uid, gid = owner(config.sandbox())
    log = Log("replay", VERSION, REFS[fixture.scope], fixture.ops)
    policy = policy_of(fixture)
    assert found.cache_dir is not None
    cache = os.path.join(found.cache_dir, "view")
    with storage_errors():
        lower = CorpusCache(cache, uid=uid, gid=gid).ensure(MapSource(fixture.seed), VERSION)
        with Sandbox(found).run(
            lower,
            NO_LAYER,
            script=fixture.script,
            lang="js" if fixture.lang == "js" else "bash",
            limits=limits_of(fixture),
        ) as run:
            changes = run.changes()
            judged = judge_changes(
                changes,
                MapSeed(fixture.seed),
                MemoryCorpus(base_files(fixture)),
                log,
                policy,
                run_bound=fixture.run_bound,
            )
            got = expect_of(run, judged)
    shutil.rmtree(cache)
    return got


def policy_of(fixture: Fixture) -> store_policy.Policy:
    """The fixture's policy, decoded as the store's file would be."""
    import json

    if fixture.policy is None:
        return store_policy.DEFAULT
    return store_policy.decode(json.dumps(fixture.policy).encode())


def limits_of(fixture: Fixture) -> Limits:
    """The limits the fixture names, the defaults for the rest. `replay.read` for an unknown one."""
    from memhtml_sandbox.limits import Limits

    try:
        return Limits()._replace(timeout_ms=fixture.timeout_ms, **fixture.limits)
    except (TypeError, ValueError) as error:
        raise StorageError("replay.read", f"{fixture.name}: limits: {error}") from error


def base_files(fixture: Fixture) -> dict[str, bytes]:
    """The base: the view without what the earlier operations did, and what they covered."""
    touched = touched_by(fixture.ops)
    kept = {path: data for path, data in fixture.seed.items() if path not in touched}
    return {**kept, **fixture.base}


def expect_of(run: Run, judged: Judged) -> Expect:
    """What this run answers, in the form the fixture keeps."""
    from memhtml_harvest import fixture

    blocked = run.exit_code != 0 or bool(judged.blocking)
    return fixture.Expect(
        exit_code=run.exit_code,
        timed_out=run.timed_out,
        stdout=run.stdout.decode("utf-8", "replace"),
        stderr=run.stderr.decode("utf-8", "replace"),
        harvested=fixture.harvested_json(judged.ops),
        rejected=tuple({"path": r.path, "reason": r.reason} for r in judged.rejected),
        violations=tuple(bar_findings.encode(v) for v in judged.violations),
        blocking=tuple(judged.blocking),
        appended=0 if blocked else len(judged.ops),
    )


def as_text(report: Mapping[str, Any]) -> str:
    """The differences for a person, one paragraph a fixture that changed."""
    import json

    lines: list[str] = []
    for result in report["fixtures"]:
        if result["state"] != "failed":
            continue
        lines.append(f"{result['name']} ({result['dir']}) changed:")
        for item in result["differences"]:
            lines.append(f"  {item['field']}")
            lines.append(f"    - {json.dumps(item['expected'], ensure_ascii=False)}")
            lines.append(f"    + {json.dumps(item['got'], ensure_ascii=False)}")
    return "\n".join(lines)
