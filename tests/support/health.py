"""Stores that are committed and indexed, for the tests of `doctor` and `publish`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.support.session import git, make_store

from memhtml.index.database import open_state
from memhtml.index.follow import update
from memhtml.store.repo import Repo


def indexed_store(root: str, files: dict[str, str]) -> str:
    """A store of these files, its index at HEAD."""
    return follow(make_store(root, files))


def land(root: str, files: dict[str, str | None]) -> str:
    """Commit files by hand, None for one that goes; the index follows."""
    for path, text in files.items():
        full = Path(root, path)
        if text is None:
            full.unlink()
        else:
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(text, encoding="utf-8")
    git(root, "add", "-A", "--", *files)
    git(root, "commit", "-qm", "by hand")
    return follow(root)


def follow(root: str, *, dirty: bool = False) -> str:
    """Bring the index to HEAD and, with `dirty`, to the working tree."""
    with closing(Repo(root)) as repo:
        update(root, repo=repo, embedder=None, dirty=dirty)
    return root


def accessed(root: str, *paths: str) -> str:
    """Put down one access of each path."""
    with closing(open_state(root)) as conn:
        rows = [(path,) for path in paths]
        conn.executemany("INSERT INTO access(path, access_count) VALUES(?, 1)", rows)
    return root


def accesses(root: str) -> list[str]:
    """The paths with an access row."""
    with closing(open_state(root)) as conn:
        return [path for (path,) in conn.execute("SELECT path FROM access ORDER BY path")]
