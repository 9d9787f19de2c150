"""`session exec`: run a script over the session's view and append what it changed.

Spec `harvest` §1–§4. The session lock is not held while the script runs, and no read transaction
of the head database is open meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import policy as store_policy
from memhtml.errors import StorageError
from memhtml.execute.mount import mounted
from memhtml.session.bound import open_session
from memhtml.session.log import append, read_log

if TYPE_CHECKING:
    from memhtml.corpus.fold import Folded
    from memhtml.corpus.interface import Corpus
    from memhtml.execute.mount import Mount
    from memhtml.execute.script import Script
    from memhtml.policy import Policy
    from memhtml.session.bound import Identity
    from memhtml.session.evidence import Recorder
    from memhtml.session.judgement import Judged
    from memhtml.session.log import Log
    from memhtml_format.ops import Op
    from memhtml_harvest.seed import Seed
    from memhtml_sandbox.result import Run
    from memhtml_sandbox.spawner import Spawner

CORPUS_MOUNT = "/mnt/memhtml"
NEEDED_AFTER_THE_RUN = (
    "memhtml_sandbox.changes",
    "memhtml.session.judgement",
    "memhtml.store.repo",
    "_sqlite3",
    "memhtml.corpus.head",
)
"""Modules that every call needs once its script has ended; loaded while this process waits."""
NEEDED_WITH_A_LOG = ("memhtml_format.violations", "memhtml.bar.judge", "memhtml_harvest.diff")
"""And those where the session has operations already, which are judged whatever happens."""
RUN_AGAIN = ("session.moved", "session.locked", "session.read")
"""Reasons of an append that another call got in the way of."""


class Executed(NamedTuple):
    """What one exec gives back."""

    payload: dict[str, Any]
    """The payload of `session.exec.report`, without its `server` field."""
    tidy: Callable[[], None]
    """Upkeep of the lower trees, for when the answer is out."""


class Appended(NamedTuple):
    """What became of the harvest: how many operations were added, how many the log holds now."""

    added: int
    total: int
    refusal: str | None = None
    """The `session log:` sentence of an append that another call got in the way of."""


def execute(
    root: str,
    identity: Identity,
    script: Script,
    *,
    recorder: Recorder | None = None,
    spawner: Spawner | None = None,
) -> Executed:
    """Run the script once. `spawner` is one that was started before anything slow was loaded.

    `recorder` keeps what a recording needs, whatever becomes of the append.

    Errors raised: those of `read_log`, `policy.invalid`, `exec.*`, and `ERR_INVALID_MEMORY` when an
    operation of the log no longer applies. Nothing is appended then.
    """
    log, started = open_session(root, identity)
    policy = store_policy.load(root)
    with mounted(root, log.ref, log.base_sha, spawner) as mount:
        mount.lay(folded_over(mount, log))
        with mount.run(script, meanwhile=loads(log)) as run:
            if spawner is not None:
                spawner.let_go()
            judged = judge_run(mount, log, policy, run, identity.run_bound, recorder)
            if recorder is not None:
                recorder.keep(log, policy, run, judged, mount)
    appended = append_harvest(root, log, run, judged)
    payload = report(log, script, run, judged, appended)
    return Executed({**payload, "started": started, "head": mount.loaded}, mount.tidy)


def loads(log: Log) -> list[Callable[[], object]]:
    """Steps that load what is needed once the script has ended."""
    names = NEEDED_AFTER_THE_RUN + (NEEDED_WITH_A_LOG if log.ops else ())
    return [partial(import_module, name) for name in names]


def folded_over(mount: Mount, log: Log) -> Folded | None:
    """The log over the base; None when it is empty, which loads no head editor."""
    if not log.ops:
        return None
    from memhtml.session.view import fold_log, now_second

    return fold_log(log, mount.read, now_second())


def judge_run(
    mount: Mount,
    log: Log,
    policy: Policy,
    run: Run,
    run_bound: bool,
    recorder: Recorder | None,
) -> Judged:
    """Harvest the change set, and judge log and harvest against the head."""
    from memhtml.session.judgement import judge_changes

    run.changes()  # Read before the head is open, however long that takes.
    with mount.head() as head:
        base: Corpus = head if recorder is None else recorder.base(head)
        own = mount.seed(head)
        seed: Seed = own if recorder is None else recorder.seed(own)
        return judge_changes(run, seed, base, log, policy, run_bound=run_bound)


def append_harvest(root: str, log: Log, run: Run, judged: Judged) -> Appended:
    """Append all of the harvest or none of it (spec `harvest` §4)."""
    if run.exit_code != 0 or judged.blocking or not judged.ops:
        return Appended(0, len(log.ops))
    try:
        return Appended(len(judged.ops), len(append(root, log, judged.ops).ops))
    except StorageError as error:
        if error.reason not in RUN_AGAIN:
            raise
        sentence = f"session log: {error}; nothing was appended, run the script again"
        return Appended(0, stored_count(root, log.id), sentence)


def stored_count(root: str, session_id: str) -> int:
    """How many operations the log holds now; none when it is gone or cannot be read."""
    try:
        return len(read_log(root, session_id).ops)
    except StorageError:
        return 0


def report(
    log: Log, script: Script, run: Run, judged: Judged, appended: Appended
) -> dict[str, Any]:
    """The payload of `session.exec.report` up to `blocking` (spec `harvest` §5)."""
    refusal = [] if appended.refusal is None else [appended.refusal]
    return {
        "id": log.id,
        "baseSha": log.base_sha,
        "lang": script.lang,
        "corpusMount": CORPUS_MOUNT,
        "sha": log.base_sha,
        "exitCode": run.exit_code,
        "stdout": run.stdout.decode("utf-8", "replace"),
        "stderr": run.stderr.decode("utf-8", "replace"),
        "durationMs": round(run.duration_ms),
        "timeoutMs": script.timeout_ms,
        "timedOut": run.timed_out,
        "ops": len(judged.ops),
        "appended": appended.added,
        "opsTotal": appended.total,
        "harvested": [short(op) for op in judged.ops],
        "rejected": [{"path": item.path, "reason": item.reason} for item in judged.rejected],
        "violations": shown(judged),
        "blocking": [*judged.blocking, *refusal],
    }


def short(op: Op) -> dict[str, str]:
    """An operation as the payload lists it."""
    from memhtml_format.ops import encode

    return {name: text for name, text in encode(op).items() if name in ("kind", "path", "to")}


def shown(judged: Judged) -> list[dict[str, Any]]:
    """Violations as the payload lists them."""
    if not judged.violations:
        return []
    from memhtml_format.violations import encode

    return [encode(violation) for violation in judged.violations]
