"""`status`: what the store holds, and whether its index and its checkout are as committed.

Counts and one question to git; whether a finding is a fault is the doctor's to say. Writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memhtml import config
from memhtml.store import refs
from memhtml.store.child import asking, git_failed
from memhtml.store.trust import LOCAL, SHARED

if TYPE_CHECKING:
    from memhtml.index.report import Health

_DIRTY = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
_CODE_BYTES = 3


def status(root: str) -> dict[str, Any]:
    """The payload of `status.health` (spec `cli` §10). An index that is behind is also logged.

    The embedder counts as up when it has embedded one word, which loads a local model and asks a
    remote one; without a bound embedder no model and no numpy is loaded. Raises `StorageError`
    `index.*` and `state.*`, `MemhtmlError` `ERR_GIT`, and `ERR_INVALID_FLAG` for a bad variable.
    """
    from memhtml.embed.choose import bound_embedder
    from memhtml.index.database import open_index
    from memhtml.index.report import embedder_answers, health
    from memhtml.retrieve.freshness import warn_unless_current

    floor, embedder = config.coverage_floor(), bound_embedder()
    # Git looks through the working tree while the rows are counted.
    with asking_dirty(root) as dirty:
        with open_index(root) as index:
            warn_unless_current(index.conn, root)
            found = health(index, embedder)
        up = embedder_answers(embedder)
        head, changed = refs.head_commit(root), dirty()
    fresh = is_fresh(found, head)
    return {
        "root": root,
        "headSha": head,
        "dirty": bool(changed),
        "dirtyPaths": changed,
        "countsByType": found.counts_by_type,
        "archivedCount": found.archived_count,
        "edges": found.edges,
        "derivedEdges": found.derived_edges,
        "chunks": found.chunks,
        "embeddings": found.embeddings,
        "traces": found.traces,
        "indexFresh": fresh,
        "indexHeadSha": found.head_sha,
        "embedModel": found.stored_space,
        "embedderUp": up,
        "vectorCoverage": found.vector_coverage,
        "vectorCoverageFloor": floor,
        "hasState": found.has_state,
    }


def is_fresh(found: Health, head: str | None) -> bool:
    """Whether the index stands at HEAD, and no update of it was cut short."""
    return found.head_sha == head and not found.unfinished


def dirty_paths(root: str) -> list[str]:
    """Every path with an uncommitted change, sorted. Raises `MemhtmlError` `ERR_GIT`."""
    with asking_dirty(root) as answer:
        return answer()


@contextmanager
def asking_dirty(root: str) -> Iterator[Callable[[], list[str]]]:
    """Start `dirty_paths`; what is given waits for its answer."""
    with asking(root, *_DIRTY) as answer:

        def paths() -> list[str]:
            run = answer()
            if run.status != 0:
                raise git_failed("status", run)
            # Local state is no change of the store, also where no pattern ignores it yet.
            names = (entry[_CODE_BYTES:] for entry in run.stdout.split(b"\0") if entry)
            return sorted(os.fsdecode(name) for name in names if not _is_local(name))

        yield paths


def _is_local(name: bytes) -> bool:
    return name.startswith(LOCAL + b"/") and not name.startswith(SHARED)
