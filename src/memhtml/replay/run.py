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
from memhtml.execute.mount import storage_errors, support
from memhtml.execute.place import owner
from memhtml.replay.expect import expect_of
from memhtml.session.judgement import judge_changes
from memhtml.session.log import Log
from memhtml.session.view import touched_by
from memhtml_harvest.fixture import (
    Difference,
    Expect,
    Fixture,
    FixtureError,
    differences,
    load,
)
from memhtml_sandbox.limits import Limits, check

if TYPE_CHECKING:
    from memhtml_sandbox.probe import Support

VERSION = "0" * 40
SHOWN_LINES = 40
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


class Case(NamedTuple):
    """One folder, read and checked: nothing in it can fail before its script runs."""

    folder: str
    fixture: Fixture
    policy: store_policy.Policy
    limits: Limits


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
    import tempfile

    cases = [read_case(folder) for folder in folders]
    settings = config.sandbox()
    with tempfile.TemporaryDirectory(prefix="memhtml-replay-") as scratch:
        found = support(scratch, settings)
        results = [replay_one(case, found) for case in cases]
    states = [result.state for result in results]
    return {
        "total": len(results),
        "passed": states.count("passed"),
        "failed": states.count("failed"),
        "skipped": states.count("skipped"),
        "fixtures": [result.to_json() for result in results],
    }


def read_case(folder: str) -> Case:
    """The fixture in a folder. Errors raised: `replay.read`, naming the folder."""
    try:
        fixture = load(folder)
        return Case(folder, fixture, policy_of(fixture), limits_of(fixture))
    except FixtureError as error:
        raise StorageError("replay.read", str(error)) from error
    except (TypeError, ValueError) as error:
        raise StorageError("replay.read", f"{folder}: limits: {error}") from error
    except StorageError as error:
        detail = (error.detail or "").removeprefix(f"{store_policy.FILE_NAME}: ")
        raise StorageError("replay.read", f"{folder}: policy: {detail}") from error


def replay_one(case: Case, found: Support) -> Result:
    """Run one fixture; `skipped` when its language is not to be had here."""
    name = case.fixture.name
    if case.fixture.lang == "js" and found.node is None:
        return Result(case.folder, name, "skipped", 0)
    started = time.monotonic()
    changed = tuple(differences(case.fixture.expect, run_again(case, found)))
    duration_ms = round((time.monotonic() - started) * 1000)
    return Result(case.folder, name, "failed" if changed else "passed", duration_ms, changed)


def run_again(case: Case, found: Support) -> Expect:
    """Seed the view, run the script, harvest and judge, with nothing but the fixture."""
    import shutil

    from memhtml_harvest.seed import MapSeed
    from memhtml_sandbox.cache import CorpusCache
    from memhtml_sandbox.lower import NO_LAYER
    from memhtml_sandbox.sandbox import Sandbox

    fixture = case.fixture
    uid, gid = owner(config.sandbox())
    log = Log("replay", VERSION, REFS[fixture.scope], fixture.ops)
    assert found.cache_dir is not None
    cache = os.path.join(found.cache_dir, "view")
    with storage_errors():
        lower = CorpusCache(cache, uid=uid, gid=gid).ensure(MapSource(fixture.seed), VERSION)
        with Sandbox(found).run(
            lower,
            NO_LAYER,
            script=fixture.script,
            lang="js" if fixture.lang == "js" else "bash",
            limits=case.limits,
        ) as run:
            judged = judge_changes(
                run,
                MapSeed(fixture.seed),
                MemoryCorpus(base_files(fixture)),
                log,
                case.policy,
                run_bound=fixture.run_bound,
            )
            got = expect_of(run, judged)
    shutil.rmtree(cache)
    return got


def policy_of(fixture: Fixture) -> store_policy.Policy:
    """The fixture's policy. Errors raised: `policy.invalid`."""
    if fixture.policy is None:
        return store_policy.DEFAULT
    return store_policy.from_value(fixture.policy)


def limits_of(fixture: Fixture) -> Limits:
    """The limits the fixture names, the defaults for the rest.

    Raises TypeError for a name that is given twice, ValueError for an unknown one or a value out of
    range.
    """
    return check(Limits()._replace(timeout_ms=fixture.timeout_ms, **fixture.limits))


def base_files(fixture: Fixture) -> dict[str, bytes | None]:
    """The base: the view without what the earlier operations did, and what they covered."""
    touched = touched_by(fixture.ops)
    kept = {path: data for path, data in fixture.seed.items() if path not in touched}
    return {**kept, **fixture.base}


def as_text(report: Mapping[str, Any]) -> str:
    """The differences for a person, one paragraph a fixture that changed."""
    lines: list[str] = []
    for result in report["fixtures"]:
        if result["state"] != "failed":
            continue
        lines.append(f"{result['name']} ({result['dir']}) changed:")
        for item in result["differences"]:
            lines.append(f"  {item['field']}")
            lines += [f"    {line}" for line in _changed_lines(item["expected"], item["got"])]
    return "\n".join(lines)


def _changed_lines(expected: object, got: object) -> list[str]:
    """A unified comparison of two values of a field, cut at a readable length."""
    import difflib

    before, after = _as_lines(expected), _as_lines(got)
    found = list(difflib.unified_diff(before, after, "recorded", "now", lineterm=""))
    if len(found) <= SHOWN_LINES:
        return found
    return [*found[:SHOWN_LINES], f"… {len(found) - SHOWN_LINES} more lines"]


def _as_lines(value: object) -> list[str]:
    """A text by its lines, anything else as indented JSON."""
    import json

    if isinstance(value, str):
        lines = value.split("\n")
        # A missing last newline must show as a difference.
        return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]}\\ (no newline)"]
    return json.dumps(value, indent=2, ensure_ascii=False).split("\n")
