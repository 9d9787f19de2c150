"""`doctor`: the whole store looked over, and on request mended (spec `cli` §11).

Three things go beyond the table there. `supersededLive` lists memories that a live one supersedes
and that are still live: worth a look, and no illness, because search ranks them below. Active
content of old files (spec `format` §3.7) is among `warnings`. A file that never was a memory is
`unparseable` like one that stopped being one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from memhtml import config
from memhtml.doctor import findings, switches
from memhtml.doctor.health import asking_dirty, is_fresh
from memhtml.errors import StorageError
from memhtml.store import refs
from memhtml.store.repo import Repo
from memhtml.store.worktree import WorkTree
from memhtml_format.instants import second

if TYPE_CHECKING:
    from memhtml.index.database import Index
    from memhtml.index.report import Health

DAY_CHARS = len("2026-11-30")
FILL, REBUILD = "memhtml index embed", "memhtml index rebuild --embed"


def examine(root: str, *, fix: bool = False) -> dict[str, Any]:
    """The payload of `doctor.report`; it describes the store as found, also after a repair.

    Errors raised: `StorageError` `index.*`, `state.*` and `read`, `ERR_GIT`, `ERR_INVALID_FLAG` for
    a bad variable, and with `fix` those of `repair`.
    """
    from memhtml.embed.choose import bound_embedder
    from memhtml.index.database import open_index
    from memhtml.index.report import health

    floor, embedder = config.coverage_floor(), bound_embedder()
    with WorkTree(root) as files, asking_dirty(root) as dirty:
        with open_index(root) as index:
            found = health(index, embedder)
            edges, rows = findings.dangling(index.conn, files), _rows(index, files)
        head, changed = refs.head_commit(root), dirty()
        contents = _contents(root, files, head, changed)
    report = {
        "root": root,
        "healthy": False,
        "dangling": [edge.to_json() for edge in edges],
        **rows,
        **contents,
        "indexFresh": is_fresh(found, head),
        "indexHeadSha": found.head_sha,
        "headSha": head,
        **_vectors(found, floor, bound=embedder is not None),
        "dirty": changed,
        "policy": switches.policy_state(root),
        "hooks": switches.hooks_state(root),
        "repaired": None,
    }
    report["healthy"] = is_healthy(report)
    if fix:
        from memhtml.doctor.repair import repair

        report["repaired"] = repair(root, edges, rows["orphanAccessRows"], changed)
    return report


def is_healthy(report: dict[str, Any]) -> bool:
    """Whether nothing of what counts was found (spec `cli` §11)."""
    bad = ("dangling", "orphanAccessRows", "warnings", "unparseable")
    worse = ("inboxCrowded", "inboxTasksCrowded", "vectorCoverageLow")
    good = ("indexFresh", "embedModelMatches")
    return (
        not any(report[name] for name in (*bad, *worse))
        and all(report[name] for name in good)
        and report["policy"]["ok"]
        and report["hooks"]["ok"]
    )


def _rows(index: Index, files: WorkTree) -> dict[str, Any]:
    """The fields that rows of the databases give, from `orphanAccessRows` on."""
    conn = index.conn
    today = second(time.time())[:DAY_CHARS]
    entities, total = findings.untyped_entities(conn)
    orphans = findings.orphan_access_rows(conn, files) if index.has_state else []
    return {
        "orphanAccessRows": orphans,
        **findings.inbox(conn),
        "overdueTasks": findings.overdue_tasks(conn, today),
        "staleBlockers": findings.stale_blockers(conn, files),
        "untypedEntities": entities,
        "untypedEntityTotal": total,
        "warnings": [],
        "unparseable": [],
        "supersededLive": findings.superseded_live(conn),
    }


def _contents(root: str, files: WorkTree, head: str | None, dirty: Sequence[str]) -> dict[str, Any]:
    """The fields that the files themselves give."""
    from memhtml.doctor.contents import read_all

    try:
        with closing(Repo(root)) as repo:
            found = read_all(repo, files, head, dirty)
    except OSError as error:
        raise StorageError("read", f"{error.filename}: {error.strerror}") from error
    return {"warnings": found.warnings, "unparseable": found.unparseable}


def _vectors(found: Health, floor: float, *, bound: bool) -> dict[str, Any]:
    """The fields about vectors. Without an embedder and without a vector there is nothing low."""
    low = (bound or found.embeddings > 0) and found.vector_coverage < floor
    way = FILL if found.spaces_match else REBUILD
    return {
        "embedModelMatches": found.spaces_match,
        "storedEmbedModel": found.stored_space,
        "configuredEmbedModel": found.configured_space,
        "vectorCoverage": found.vector_coverage,
        "vectorCoverageFloor": floor,
        "vectorCoverageLow": low,
        "vectorCoverageRemedy": way if low else None,
        "chunks": found.chunks,
        "embeddings": found.embeddings,
    }
