"""`link`: one typed edge from a memory to another (spec `cli` §10 `link`, `format` §3.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memhtml.doors.change import Change
from memhtml.doors.opening import Door, now
from memhtml.doors.records import Named, href_of, linked, live, named, stamped
from memhtml.doors.refusals import invalid, shown
from memhtml.store.commit import message
from memhtml_format import vocab
from memhtml_format.paths import normalise

_CLASSES = frozenset({"memory", "task"})
RELS: tuple[str, ...] = tuple(rel for rel, kind in vocab.RELS.items() if kind in _CLASSES)
"""The rels that this door authors."""


def link(root: str, src: str, rel: str, dst: str) -> dict[str, Any]:
    """The payload of `memory.linked`; an edge that is there already makes no commit.

    Errors raised: `ERR_INVALID_MEMORY`, `ERR_PATH_NOT_FOUND`, and those of a door
    (`opening.Door`).
    """
    with Door(root) as door:
        with door.landing() as land:
            change = plan(src, rel, dst, land.read, now())
            sha = None if change is None else door.commit(land, change)
        door.finish()
    return {"commitSha": sha, "srcPath": normalise(src), "dstPath": normalise(dst), "rel": rel}


def plan(
    src: str, rel: str, dst: str, read: Callable[[str], bytes | None], at: str
) -> Change | None:
    """The change that adds the edge, or None when it is there.

    Raises `MemhtmlError` as `link` does. `read` gives a working-tree file.
    """
    if rel not in RELS:
        raise invalid(f"{shown(rel)!r} is no rel that can be linked; allowed are {', '.join(RELS)}")
    if normalise(src) == normalise(dst):
        raise invalid(f"{shown(normalise(src))} cannot be linked to itself")
    source = live(named(src, read), "states no new links")
    target = named(dst, read)
    _refuse_class(source, rel, target)
    href = href_of(target.path)
    if (rel, href) in source.detail.record.links:
        return None
    data = linked(source, stamped(source, [("updated", at)]), rel, href)
    text = message("link", f"{rel} {source.path} -> {target.path}", [])
    return Change(text, {source.path: data})


def _refuse_class(source: Named, rel: str, target: Named) -> None:
    """A task rel ties tasks, a memory rel anything else."""
    tasks = [end.path for end in (source, target) if end.memory_type == "task"]
    if vocab.RELS[rel] == "task" and len(tasks) < 2:
        raise invalid(f"{rel} links a task to a task")
    if vocab.RELS[rel] == "memory" and tasks:
        raise invalid(f"{rel} links no tasks, and {shown(tasks[0])} is one")
