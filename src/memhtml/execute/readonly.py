"""`exec`: run a script over one commit of the corpus that it cannot change (spec `cli` §10).

No session, no log, no harvest: the mount is read-only (spec `sandbox` §4.2), so no head database is
opened either unless the commit's tree is still to be built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.errors import MemhtmlError, StorageError
from memhtml.execute.mount import mounted
from memhtml.store import refs
from memhtml_sandbox.plan import MOUNT

if TYPE_CHECKING:
    from memhtml.execute.script import Script
    from memhtml_sandbox.result import Run
    from memhtml_sandbox.spawner import Spawner

HEAD = "HEAD"
SHOWN_CHARS = 80


class Executed(NamedTuple):
    """What one run gives back."""

    payload: dict[str, Any]
    """The payload of `exec.report`."""
    tidy: Callable[[], None]
    """Upkeep of the lower trees, for when the answer is out."""


def execute(
    root: str, script: Script, *, commit: str = HEAD, spawner: Spawner | None = None
) -> Executed:
    """Run the script once over the tree of a commit, under any name git knows it by.

    Errors raised: `ERR_INVALID_MEMORY` for a name of no commit and for a repository without one,
    and the `exec.*` reasons of `Mount.run`.
    """
    sha = commit_of(root, commit)
    # The database of the branch in the checkout is the one that every command keeps warm; what
    # the commit has otherwise is laid over it, so an older or a foreign one costs the difference.
    ref = refs.checked_out(root) or HEAD
    try:
        with (
            mounted(root, ref, sha, spawner) as mount,
            mount.run(script, read_only=True) as run,
        ):
            if spawner is not None:
                spawner.let_go()
            return Executed(report(sha, script, run), mount.tidy)
    except StorageError as error:
        if error.reason != "exec.node-missing":
            raise
        ways = ("memhtml exec --lang bash <<'SH'",)
        raise StorageError(error.reason, error.detail, suggestions=ways) from error


def commit_of(root: str, name: str) -> str:
    """The commit that a name stands for. Errors raised: `ERR_INVALID_MEMORY` when there is none."""
    # HEAD is a file or two, anything else is asked of a git child.
    sha = refs.head_commit(root) if name == HEAD else refs.named(root, name)
    if sha is not None:
        return sha
    if refs.head_commit(root) is None:
        raise MemhtmlError(
            "ERR_INVALID_MEMORY",
            "the repository has no commit, so there is nothing to run a script over",
            suggestions=("memhtml init",),
        )
    shown = name if len(name) <= SHOWN_CHARS else f"{name[:SHOWN_CHARS]}…"
    raise MemhtmlError(
        "ERR_INVALID_MEMORY",
        f"git knows no commit by the name {shown!r}",
        suggestions=("memhtml exec --sha HEAD",),
    )


def report(sha: str, script: Script, run: Run) -> dict[str, Any]:
    """The payload of `exec.report`."""
    return {
        "lang": script.lang,
        "corpusMount": MOUNT,
        "sha": sha,
        "exitCode": run.exit_code,
        "stdout": run.stdout.decode("utf-8", "replace"),
        "stderr": run.stderr.decode("utf-8", "replace"),
        "durationMs": round(run.duration_ms),
        "timeoutMs": script.timeout_ms,
        "timedOut": run.timed_out,
    }
