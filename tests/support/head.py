"""Small git histories for tests of the head database, and full dumps to compare databases by."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pygit2

from memhtml.corpus.interface import Corpus, FileKind
from memhtml.corpus.layers import Layers
from memhtml.retrieve.neighbours import search_all
from memhtml.store.entries import Tree
from memhtml.store.repo import Repo
from memhtml.store.snapshot_build import build_private
from memhtml_format.vocab import rel_token

MAIN = "refs/heads/main"
FILE = 0o100644
EXECUTABLE = 0o100755
LINK = 0o120000
SUBMODULE = 0o160000

Files = Mapping[str, "bytes | tuple[int, bytes]"]


def page(
    title: str = "A title",
    claim: str = "The limit is 20.",
    *,
    body: str = "",
    kind: str = "semantic",
    entities: Sequence[str] = (),
    tags: Sequence[str] = (),
    links: Sequence[tuple[str, str]] = (),
    updated: str = "2026-03-01T09:00:00Z",
) -> bytes:
    """A memory file; `links` are bare rels and hrefs, `body` is markup behind the claim."""
    head = [
        f"<title>{title}</title>",
        f'<meta name="memhtml-type" content="{kind}">',
        '<meta name="memhtml-status" content="active">',
        '<meta name="memhtml-created" content="2026-03-01T09:00:00Z">',
        f'<meta name="memhtml-updated" content="{updated}">',
        *(f'<meta name="memhtml-entity" content="{value}">' for value in entities),
        *(f'<meta name="memhtml-tag" content="{value}">' for value in tags),
        *(f'<link rel="{rel_token(rel)}" href="{href}">' for rel, href in links),
    ]
    lines = ["<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">', *head]
    lines += ["</head>", "<body>", "<article>", f"<p><mark>{claim}</mark></p>{body}", "</article>"]
    return "\n".join([*lines, "</body>", "</html>", ""]).encode()


class Store:
    """A repository made by hand: commits of whole trees, with no checkout to keep in step."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.git = pygit2.init_repository(root, initial_head="main")
        os.makedirs(self.folder)

    def commit(self, files: Files, *parents: str, ref: str | None = MAIN) -> str:
        """A commit with exactly these files; `ref` is moved to it."""
        tree = self._tree({path: _entry(value) for path, value in files.items()})
        who = pygit2.Signature("A Person", "person@example.org", 1_764_000_000 + len(parents), 0)
        sha = str(self.git.create_commit(None, who, who, "a commit", tree, list(parents)))
        if ref is not None:
            self.git.references.create(ref, sha, force=True)
        return sha

    def repo(self) -> Repo:
        """A fresh handle, as every command has one."""
        return Repo(self.root)

    @property
    def folder(self) -> str:
        """Where the head databases lie."""
        return os.path.join(self.root, ".memhtml", "snapshots")

    def database(self, name: str = "main.db") -> str:
        """The path of one head database."""
        return os.path.join(self.folder, name)

    def _tree(self, files: Mapping[str, tuple[int, bytes]]) -> pygit2.Oid:
        builder = self.git.TreeBuilder()
        folders: dict[str, dict[str, tuple[int, bytes]]] = {}
        for path, value in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(name, {})[rest] = value
            else:
                builder.insert(name, self.git.create_blob(value[1]), value[0])
        for name, below in folders.items():
            builder.insert(name, self._tree(below), 0o040000)
        return builder.write()


def _entry(value: bytes | tuple[int, bytes]) -> tuple[int, bytes]:
    return (FILE, value) if isinstance(value, bytes) else value


def stored(tree: Tree) -> bytes:
    """A tree object with these entries, in this order."""
    return b"".join(mode + b" " + name + b"\0" + oid for name, (mode, oid) in tree.items())


def dump(conn: sqlite3.Connection) -> dict[str, Any]:
    """Everything a database holds, row ids replaced by paths; the FTS index term by term."""
    conn.execute("INSERT INTO fts(fts) VALUES('integrity-check')")
    paths = dict(conn.execute("SELECT id, path FROM records"))
    found: dict[str, Any] = {"meta": conn.execute("SELECT * FROM meta").fetchall()}
    found["records"] = sorted(row[1:] for row in conn.execute("SELECT * FROM records"))
    for table in ("links", "entities", "tags", "facets"):
        rows = conn.execute(f"SELECT * FROM {table}").fetchall()
        found[table] = sorted((paths[row[0]], *row[1:]) for row in rows)
    found["others"] = conn.execute("SELECT path, kind FROM others ORDER BY path").fetchall()
    conn.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, fts, 'instance')")
    terms = conn.execute("SELECT doc, term, col, offset FROM temp.terms").fetchall()
    found["terms"] = sorted((paths[row[0]], *row[1:]) for row in terms)
    conn.execute("DROP TABLE temp.terms")
    for word in sorted({row[1] for row in found["terms"]}):
        ranks = conn.execute("SELECT rowid, rank FROM fts WHERE fts MATCH ?", (f'"{word}"',))
        found[f"rank {word}"] = sorted((paths[row[0]], row[1]) for row in ranks)
    found["schema"] = sorted(
        conn.execute("SELECT name, sql FROM sqlite_master").fetchall(), key=str
    )
    return found


def dump_file(path: str) -> dict[str, Any]:
    """The dump of a database file."""
    conn = sqlite3.connect(path, isolation_level=None)
    try:
        return dump(conn)
    finally:
        conn.close()


def dump_built(store: Store, sha: str, ref: str = MAIN) -> dict[str, Any]:
    """The dump of a database built from git at this commit."""
    conn = build_private(ref, sha, store.repo())
    try:
        return dump(conn)
    finally:
        conn.close()


def answers(corpus: Corpus, probes: Iterable[str]) -> dict[str, Any]:
    """What a corpus says to every question, about its own paths and these."""
    held = list(corpus.record_paths())
    paths = sorted({*held, *probes})
    rows = [corpus.record(path) for path in paths]
    found: dict[str, Any] = {"paths": held, "rows": rows}
    for path in paths:
        found[f"links {path}"] = corpus.links(path)
        found[f"entities {path}"] = corpus.entities(path)
        found[f"holders {path}"] = corpus.holders(path)
    folders = {path[:at] for path in paths for at, sign in enumerate(path) if sign == "/"}
    for folder in sorted({*folders, *paths}):
        found[f"under {folder}"] = (corpus.record_under(folder), corpus.paths_under(folder))
    for row in rows:
        if row is not None:
            found[f"hash {row.content_hash}"] = corpus.live_with_hash(row.content_hash)
            if row.frame_key is not None:
                found[f"rivals {row.frame_key}"] = corpus.rivals(row.frame_key)
            found[f"bytes {row.path}"] = corpus.read(row.path)
    return found


def kinds(corpus: Corpus, probes: Iterable[str]) -> dict[str, FileKind | None]:
    """What a corpus says the tree has at these paths, in their folders and beside them."""
    return {name: corpus.file_kind(name) for name in _around(probes)}


def kinds_in(files: Files, probes: Iterable[str]) -> dict[str, FileKind | None]:
    """The same from the plain files: an independent second reading."""

    def kind(name: str) -> FileKind | None:
        if name in files:
            return "other" if _entry(files[name])[0] in (LINK, SUBMODULE) else "file"
        return "folder" if any(path.startswith(f"{name}/") for path in files) else None

    return {name: kind(name) for name in _around(probes)}


def _around(probes: Iterable[str]) -> list[str]:
    paths = list(probes)
    names = {path[:at] for path in paths for at, sign in enumerate(path) if sign == "/"}
    return sorted({*names, *paths, *(f"{path}/x" for path in paths), "areas/none", "area"})


def searches(view: Layers, queries: Sequence[str]) -> list[Any]:
    """The hits of some queries."""
    return search_all(view, queries, 40)
