"""Memories, vectors and statements for the tests of search and recall."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from tests.support.reads import indexed

from memhtml.index.database import Index

NOW_S = 1_796_083_200.0
"""2026-12-01T00:00:00Z."""
TRACE_TABLES = ("traces", "trace_prompts", "trace_watermarks", "traces_fts")


def memory(
    claim: str,
    *,
    title: str | None = None,
    kind: str = "semantic",
    created: str | None = None,
    updated: str = "2026-05-04T09:00:00Z",
    head: str = "",
    more: str = "",
) -> str:
    """A record; `more` is markup behind the claim's paragraph, `head` further head lines.

    A task is still to be done.
    """
    if kind == "task":
        head = f'<meta name="memhtml-task-status" content="todo">\n{head}'
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title or claim}</title>\n"
        f'<meta name="memhtml-type" content="{kind}">\n'
        '<meta name="memhtml-status" content="active">\n'
        f'<meta name="memhtml-created" content="{created or updated}">\n'
        f'<meta name="memhtml-updated" content="{updated}">\n'
        f"{head}</head>\n<body>\n<article>\n<p><mark>{claim}</mark></p>\n{more}</article>\n"
        "</body>\n</html>\n"
    )


def happened(day: str) -> str:
    """Markup that says when an episode happened."""
    return f'<p><time datetime="{day}">{day}</time></p>\n'


def give_vectors(
    index: Index, name: str, vectors: Mapping[str, Sequence[float] | Sequence[Sequence[float]]]
) -> None:
    """Store the vectors of files' chunks in the space `name`: one of a file, or one a chunk."""
    for path, given in vectors.items():
        chunks = np.array(given, dtype="<f4").reshape(-1, np.array(given).shape[-1])
        ids = index.conn.execute(
            "SELECT chunk_id FROM chunks WHERE path = ? ORDER BY ordinal", (path,)
        ).fetchall()
        for (chunk_id,), vector in zip(ids, chunks, strict=False):
            index.conn.execute(
                "INSERT OR REPLACE INTO embeddings(chunk_id, model, dim, vec, created_at)"
                " VALUES(?, ?, ?, ?, '2026-06-01T00:00:00Z')",
                (chunk_id, name, len(vector), vector.tobytes()),
            )


def accessed(index: Index, path: str, *, count: int, at: str | None, outcome: float = 0.0) -> None:
    """Write a row of the access plane."""
    index.conn.execute(
        "INSERT INTO state.access(path, access_count, outcome_score, last_accessed_at)"
        " VALUES(?, ?, ?, ?)",
        (path, count, outcome, at),
    )


@contextmanager
def statements(index: Index) -> Iterator[list[str]]:
    """Every statement that runs meanwhile, as SQLite saw it, its values filled in."""
    seen: list[str] = []

    def note(sql: str) -> None:
        # What a virtual table runs by itself begins as a comment.
        if not sql.startswith("--"):
            seen.append(sql)

    index.conn.set_trace_callback(note)
    try:
        yield seen
    finally:
        index.conn.set_trace_callback(None)


def plan_of(conn: sqlite3.Connection, sql: str, values: Mapping[str, object]) -> list[str]:
    """The steps of a plan."""
    return [row[3] for row in conn.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def store(root: str, files: Mapping[str, str]) -> Index:
    """An open index of these records with its access plane; the caller closes it."""
    return indexed(root, files, state=True)
