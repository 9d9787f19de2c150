"""Indexes of a few records for the tests of reads; no git is needed to read an index."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from tests.support.session import page

from memhtml.index.database import Index, open_index
from memhtml.index.projection import write_detail
from memhtml_format.record import read_detail

INDEXED_AT = "2026-06-01T00:00:00Z"


def fill(index: Index, files: Mapping[str, str]) -> None:
    """Write the rows of records as a pass over a commit would."""
    for path, html in files.items():
        reading = read_detail(path, html.encode())
        assert reading.detail is not None, reading.problems
        write_detail(index.conn, reading.detail, at=INDEXED_AT)


def indexed(root: str, files: Mapping[str, str] | None = None, *, state: bool = False) -> Index:
    """An open index that holds `files`; the caller closes it."""
    index = open_index(root, state=state)
    fill(index, files or {})
    return index


def link(rel: str, target: str) -> str:
    """A head line with one typed link."""
    return f'<link rel="memhtml-{rel.replace("_", "-")}" href="/{target}">\n'


def meta(name: str, value: str) -> str:
    """A head line with one meta."""
    return f'<meta name="memhtml-{name}" content="{value}">\n'


def task(title: str, *, status: str = "todo", due: str | None = None, head: str = "") -> str:
    """A task; its claim is its title."""
    lines = meta("task-status", status) + (meta("due", due) if due else "")
    return page(title, kind="task", head=lines + head)


def plan(index: Index, statement: str, values: tuple[object, ...]) -> str:
    """What SQLite says it would do, one step a line."""
    rows = index.conn.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
    return "\n".join(str(row[3]) for row in rows)


_LOADED = """
import sys
from memhtml.cli.main import main
assert main() == 0
print(*sys.modules, file=sys.stderr)
"""


def loaded(*words: str) -> set[str]:
    """The modules that a call loads, which succeeds in a process of its own."""
    ran = subprocess.run([sys.executable, "-c", _LOADED, *words], capture_output=True, check=True)
    return set(ran.stderr.decode().splitlines()[-1].split())
