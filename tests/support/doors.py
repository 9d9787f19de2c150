"""Stores, lines and looks around for the tests of the direct writes."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.session import git

from memhtml.doors.provenance import NOWHERE, Provenance
from memhtml.errors import MemhtmlError
from memhtml_format.record import Detail, read_detail
from memhtml_format.render import Draft

AT = "2026-05-04T09:00:00Z"


def line(title: str, body: str | None = None, **fields: object) -> str:
    """One line of a batch."""
    given: dict[str, object] = {"op": "write", "title": title, "type": "semantic"}
    if body is not None:
        given["body"] = body
    return json.dumps(given | fields)


def fact(number: int, **fields: object) -> str:
    """A line whose title and text no other number has."""
    return line(f"Fact {number}", f"The fact number {number} holds.", **fields)


def draft(title: str, claim: str, memory_type: str = "semantic", **fields: Any) -> Draft:
    """A draft as the flags of a command make it."""
    return Draft(title, memory_type, claim=claim, **fields)


def put(root: str, *drafts: Draft, ids: Provenance = NOWHERE) -> list[str]:
    """Write drafts in one batch; their paths."""
    from memhtml.doors.apply import Wishes, apply

    results = apply(root, iter(drafts), Wishes(), ids)["results"]
    assert all(each["ok"] for each in results), results
    return [each["path"] for each in results]


def detail(root: str, path: str) -> Detail:
    """What the file in the working tree says."""
    found = read_detail(path, Path(root, path).read_bytes()).detail
    assert found is not None
    return found


def refused(act: Callable[[], object]) -> tuple[str, str]:
    """The code and the sentence of the failure."""
    try:
        act()
    except MemhtmlError as error:
        return error.code, str(error)
    raise AssertionError("nothing was refused")


def rows(root: str, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Rows of the index as it is on disk."""
    conn = sqlite3.connect(os.path.join(root, ".memhtml", "index.db"))
    try:
        return conn.execute(query, values).fetchall()
    finally:
        conn.close()


def indexed(root: str) -> dict[str, str]:
    """Path and blob of every row of the index."""
    return dict(rows(root, "SELECT path, blob_sha FROM files"))


def committed(root: str, commit: str = "HEAD") -> dict[str, str]:
    """Path and blob of every memory of a commit."""
    found = {}
    for entry in git(root, "ls-tree", "-r", "-z", commit).split("\0"):
        head, _, path = entry.partition("\t")
        if path.endswith(".html") and path != "README.html":
            found[path] = head.split()[2]
    return found


def head(root: str) -> str:
    """The commit HEAD stands at."""
    return git(root, "rev-parse", "HEAD")


def changes(root: str, commit: str = "HEAD") -> list[str]:
    """What a commit changed, renames followed as `git log --follow` does."""
    text = git(root, "show", "--format=", "--name-status", "-M", "-z", commit)
    words = [word for word in text.split("\0") if word]
    found = []
    while words:
        status = words.pop(0)
        many = 2 if status[0] in "RC" else 1
        found.append(" ".join([status[0], *words[:many]]))
        del words[:many]
    return found


def said(root: str, commit: str = "HEAD") -> str:
    """The message of a commit."""
    return git(root, "log", "-1", "--format=%B", commit)


def state(root: str) -> dict[str, object]:
    """What a person would call the state of the checkout."""
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(Path(root).rglob("*"))
        if path.is_file() and not {".git", ".memhtml"} & set(path.parts)
    }
    return {"head": head(root), "index": git(root, "ls-files", "-s"), "files": files}
