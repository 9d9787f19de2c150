"""Our own golden files (`tests/golden`): a stream, a store, and what they must become."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from typing import Any

from tests.support.session import git, make_store

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden")
AT = "2026-11-30T16:09:45Z"
"""The instant of writing in `apply.json`."""
TABLES = (
    "files",
    "file_tags",
    "file_entities",
    "file_facets",
    "file_citations",
    "chunks",
    "edges",
)
_OF_THE_RUN = {"id", "indexed_at"}


def load(name: str) -> Any:
    """A golden JSON file."""
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return json.load(file)


def stream() -> str:
    """The golden lines of `apply`."""
    with open(os.path.join(FOLDER, "apply.jsonl"), encoding="utf-8") as file:
        return file.read()


def golden_store(root: str) -> str:
    """A store whose tree is the golden one, committed on main."""
    make_store(root)
    shutil.copytree(os.path.join(FOLDER, "store"), root, dirs_exist_ok=True)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "golden")
    return root


def rows(conn: sqlite3.Connection) -> dict[str, list[dict[str, Any]]]:
    """The rows of the projected tables as objects, in the order of all their columns."""
    found = {}
    for table in TABLES:
        names = [row[1] for row in conn.execute(f"PRAGMA table_info({table})")]
        kept = [name for name in names if name not in _OF_THE_RUN]
        query = f"SELECT {', '.join(kept)} FROM {table} ORDER BY {', '.join(kept)}"
        found[table] = [dict(zip(kept, row, strict=True)) for row in conn.execute(query)]
    return found
