"""`session exec`: run a script over the session's view and append what it changed.

Spec `harvest` §1–§4. The session lock is not held while the script runs, and no read transaction
of the head database is open meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import policy as store_policy
from memhtml.errors import StorageError
from memhtml.execute.mount import Mount, mounted
from memhtml.execute.script import Script
from memhtml.session.append import append
from memhtml.session.bound import Identity, open_session
from memhtml.session.evidence import Evidence, Judged, WatchedSeed, keep_evidence
from memhtml.session.log import Log

if TYPE_CHECKING:
    from memhtml.corpus.fold import Folded
    from memhtml.corpus.interface import Corpus
    from memhtml.policy import Policy
    from memhtml_format.ops import Op
    from memhtml_format.violations import Violation
    from memhtml_harvest.seed import Seed
    from memhtml_sandbox.changes import ChangeSet
    from memhtml_sandbox.result import Run
    from memhtml_sandbox.spawner import Spawner

CORPUS_MOUNT = "/mnt/memhtml"


class Executed(NamedTuple):
    """What one exec gives back."""

    payload: dict[str, Any]
    """The payload of `session.exec.report`, without its `server` field."""
    evidence: Evidence | None
    """All that a recording needs, when it was to be kept."""
    tidy: Callable[[], None]
    """Upkeep of the lower trees, for when the answer is out."""


def execute(
    root: str,
    identity: Identity,
    script: Script,
    *,
    keep: bool = False,
    spawner: Spawner | None = None,
) -> Executed:
    """Run the script once. `spawner` is one that was started before anything slow was loaded.

    Errors raised: those of `read_log`, `policy.invalid`, `exec.*`, and `ERR_INVALID_MEMORY` when an
    operation of the log no longer applies. Nothing is run or appended then.
    """
    log, started = open_session(root, identity)
    policy = store_policy.load(root)
    with mounted(root, log.ref, log.base_sha, spawner) as mount:
        mount.lay(folded_over(mount, log))
        seen: set[str] | None = set() if keep else None
        with mount.run(script) as run:
            judged = judge_run(mount, log, policy, run, identity.run_bound, seen)
            evidence = keep_evidence(log, policy, run, judged, mount, seen)
    judged, total = append_harvest(root, log, run, judged)
    appended = total - len(log.ops)
    payload: dict[str, Any] = {
        "id": log.id,
        "baseSha": log.base_sha,
        "lang": script.lang,
        "corpusMount": CORPUS_MOUNT,
        "sha": log.base_sha,
        **run_fields(run, script),
        "ops": len(judged.ops),
        "appended": appended,
        "opsTotal": total,
        "harvested": [short(op) for op in judged.ops],
        "rejected": [{"path": item.path, "reason": item.reason} for item in judged.rejected],
        "violations": shown(judged.violations),
        "blocking": judged.blocking,
        "started": started,
        "head": mount.loaded,
    }
    if evidence is not None:
        evidence = evidence._replace(judged=judged, appended=appended)
    return Executed(payload, evidence, mount.tidy)


def folded_over(mount: Mount, log: Log) -> Folded | None:
    """The log over the base; None when it is empty, which loads no head editor."""
    if not log.ops:
        return None
    from memhtml.session.view import fold_log, now_second

    return fold_log(log, mount.read, now_second())


def run_fields(run: Run, script: Script) -> dict[str, Any]:
    """How the script ended (spec `harvest` §2.2)."""
    return {
        "exitCode": run.exit_code,
        "stdout": run.stdout.decode("utf-8", "replace"),
        "stderr": run.stderr.decode("utf-8", "replace"),
        "durationMs": round(run.duration_ms),
        "timeoutMs": script.timeout_ms,
        "timedOut": run.timed_out,
    }


def short(op: Op) -> dict[str, str]:
    """An operation as the payload lists it."""
    from memhtml_format.ops import encode

    return {name: text for name, text in encode(op).items() if name in ("kind", "path", "to")}


def shown(violations: Sequence[Violation]) -> list[dict[str, Any]]:
    """Violations as the payload lists them."""
    if not violations:
        return []
    from memhtml_format.violations import encode

    return [encode(v) for v in violations]


def judge_run(
    mount: Mount, log: Log, policy: Policy, run: Run, run_bound: bool, seen: set[str] | None
) -> Judged:
    """Harvest the change set and judge log and harvest against the base."""
    changes = run.changes()
    if not changes.changed and not changes.vanished and not log.ops:
        return Judged((), (), [], [])
    with mount.head() as head:
        base: Corpus = head
        own = mount.seed(head)
        seed: Seed = own
        if seen is not None:
            from memhtml.corpus.watched import WatchedCorpus

            base, seed = WatchedCorpus(head, seen), WatchedSeed(own, seen)
        return judge_changes(changes, seed, base, log, policy, run_bound=run_bound)


def judge_changes(
    changes: ChangeSet, seed: Seed, base: Corpus, log: Log, policy: Policy, *, run_bound: bool
) -> Judged:
    """The one place where a change set becomes operations and findings; replay calls it too."""
    from memhtml.bar.judge import judge
    from memhtml.session.view import touched_by
    from memhtml_format.violations import blocking, sentence
    from memhtml_harvest.diff import harvest

    found = harvest(changes.changed, changes.vanished, seed, scope=log.scope)
    violations = judge((*log.ops, *found.ops), base, policy, log.scope)
    blocked = blocking(violations, touched_by(found.ops), run_bound=run_bound)
    sentences = [sentence(v) for v in blocked]
    return Judged(found.ops, found.rejected, violations, sentences)


def append_harvest(root: str, log: Log, run: Run, judged: Judged) -> tuple[Judged, int]:
    """Append all of the harvest or none of it; the log's length afterwards (`harvest` §4)."""
    if run.exit_code != 0 or judged.blocking or not judged.ops:
        return judged, len(log.ops)
    try:
        return judged, len(append(root, log, judged.ops))
    except StorageError as error:
        if error.reason not in ("session.moved", "session.locked", "session.read"):
            raise
        sentence = f"session log: {error}; nothing was appended, run the script again"
        return judged._replace(blocking=[*judged.blocking, sentence]), len(log.ops)
