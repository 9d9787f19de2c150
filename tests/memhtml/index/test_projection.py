"""What one file becomes in the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.index import AT, content, detail, full_text_is_whole, words_found

from memhtml.index.database import open_index
from memhtml.index.projection import is_indexable, move, place, remove, write_detail
from memhtml_format.record import Detail, read_detail

A, B = "areas/inbox/a.html", "areas/inbox/b.html"
FULL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>The relay</title>
<meta name="memhtml-type" content="procedural">
<meta name="memhtml-status" content="active">
<meta name="memhtml-created" content="2026-01-01T00:00:00Z">
<meta name="memhtml-updated" content="2026-02-01T00:00:00Z">
<meta name="memhtml-confidence" content="0.75">
<meta name="memhtml-importance" content="8">
<meta name="memhtml-author" content="ada">
<meta name="memhtml-session" content="s1">
<meta name="memhtml-prompt" content="p1">
<meta name="memhtml-turn" content="t1">
<meta name="memhtml-valid-from" content="2026-01-02">
<meta name="memhtml-valid-until" content="2027-01-02">
<meta name="memhtml-reprieves" content="2">
<meta name="memhtml-needs-revision" content="true">
<meta name="memhtml-entity" content="system:relay">
<meta name="memhtml-entity" content="bare">
<meta name="memhtml-entity" content="system:relay">
<meta name="memhtml-tag" content=" net ">
<meta name="memhtml-tag" content="net">
<link rel="memhtml-supersedes" href="/areas/inbox/old.html#part">
<link rel="memhtml-blocks" href="/areas/inbox/old.html">
<link rel="memhtml-relates-to" href="/projects/pay/relay.html">
<link rel="memhtml-relates-to" href="/areas/inbox/x.html">
<link rel="memhtml-relates-to" href="/areas/inbox/x.html">
</head>
<body>
<article>
<p><mark>The relay limit is 11.</mark> It is a <dfn>cap</dfn>.</p>
<p><time datetime="2026-01-15">then</time></p>
<dl><dt>limit</dt><dd><data value="11">eleven</data></dd><dt>unit</dt><dd>jobs</dd></dl>
<p><cite>The manual</cite> and <q cite="https://example.org/x">a saying</q></p>
<pre><code data-lang="bash">true</code></pre>
</article>
</body>
</html>
"""


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with open_index(str(tmp_path), state=False) as index:
        yield index.conn


def full(path: str) -> Detail:
    found = read_detail(path, FULL.encode()).detail
    assert found is not None
    return found


def row(conn: sqlite3.Connection, path: str) -> dict[str, object]:
    cursor = conn.execute("SELECT * FROM files WHERE path = ?", (path,))
    names = [column[0] for column in cursor.description]
    return dict(zip(names, cursor.fetchone(), strict=True))


def test_every_column_of_a_file_says_what_the_file_says(conn: sqlite3.Connection) -> None:
    path = "projects/pay/relay.html"
    write_detail(conn, full(path), at=AT)
    found = row(conn, path)
    record = full(path).record
    assert found == {
        "id": 1,
        "path": path,
        "blob_sha": record.blob_sha,
        "content_hash": record.content_hash,
        "memory_type": "procedural",
        "title": "The relay",
        "gist": "The relay limit is 11.",
        "para": "projects",
        "workspace": "pay",
        "confidence": 0.75,
        "importance": 8,
        "archived": 0,
        "origin_path": None,
        "word_count": len(record.body_text.split()),
        "char_count": len(record.body_text),
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-02-01T00:00:00Z",
        "archived_at": None,
        "valid_from": "2026-01-02",
        "valid_until": "2027-01-02",
        "event_at": "2026-01-15",
        "reprieves": 2,
        "needs_revision": 1,
        "author": "ada",
        "session_id": "s1",
        "prompt_id": "p1",
        "turn_uuid": "t1",
        "task_status": None,
        "due_at": None,
        "frame_key": "the relay limit is",
        "indexed_at": AT,
        "disclosure_text": record.disclosure_text,
        "body_text": record.body_text,
        "fts_text": f"The relay\nThe relay limit is 11.\n{record.body_text}",
    }


def test_children_are_trimmed_split_and_deduplicated(conn: sqlite3.Connection) -> None:
    path = "projects/pay/relay.html"
    write_detail(conn, full(path), at=AT)
    found = content(conn)
    assert found["file_tags"] == [(path, "net")]
    assert found["file_entities"] == [
        (path, "concept", "cap"),
        (path, "lang", "bash"),
        (path, "system", "relay"),
        (path, "unknown", "bare"),
    ]
    assert found["file_facets"] == [(path, "limit", "eleven", 11.0), (path, "unit", "jobs", None)]
    assert found["file_citations"] == [
        (path, "The manual", None),
        (path, "a saying", "https://example.org/x"),
    ]


def test_authored_edges_have_their_class_and_none_points_at_its_own_file(
    conn: sqlite3.Connection,
) -> None:
    path = "projects/pay/relay.html"
    write_detail(conn, full(path), at=AT)
    updated = "2026-02-01T00:00:00Z"
    rest = (0, 1.0, "authored", None, None, updated)
    assert content(conn)["edges"] == [
        (path, "blocks", "areas/inbox/old.html", "task", *rest),
        (path, "relates_to", "areas/inbox/x.html", "memory", *rest),
        (path, "supersedes", "areas/inbox/old.html", "memory", *rest),
    ]


def test_absent_metas_have_their_defaults(conn: sqlite3.Connection) -> None:
    write_detail(conn, detail(A), at=AT)
    found = row(conn, A)
    names = ("confidence", "importance", "reprieves", "needs_revision", "author", "workspace")
    assert [found[name] for name in names] == [1.0, 5, 0, 0, "agent", None]


def test_writing_again_replaces_everything_but_the_id(conn: sqlite3.Connection) -> None:
    write_detail(conn, detail(B, claim="First."), at=AT)
    write_detail(conn, full(A), at=AT)
    number = row(conn, A)["id"]
    write_detail(conn, detail(A, claim="The port is 8080."), at=AT)
    assert row(conn, A)["id"] == number
    found = content(conn)
    assert found["file_facets"] == found["edges"] == found["file_citations"] == []
    assert next(chunk for chunk in found["chunks"] if chunk[0] == A)[4] == "The port is 8080."
    assert words_found(conn, "relay") == []
    assert words_found(conn, "port") == [A]
    assert full_text_is_whole(conn)


def test_derived_edges_stay_and_an_authored_one_takes_the_place_of_its_twin(
    conn: sqlite3.Connection,
) -> None:
    mined = "INSERT INTO edges VALUES(?, ?, ?, 'memory', 1, 0.5, 'mined', 'h', 'h', 'then')"
    conn.execute(mined, (A, "supports", B))
    conn.execute(mined, (A, "relates_to", "areas/inbox/x.html"))
    write_detail(conn, full(A), at=AT)
    kept = conn.execute("SELECT rel, derived, provenance, src_hash FROM edges ORDER BY rel")
    assert kept.fetchall() == [
        ("blocks", 0, "authored", None),
        ("relates_to", 0, "authored", None),
        ("relates_to", 0, "authored", None),
        ("supersedes", 0, "authored", None),
        ("supports", 1, "mined", "h"),
    ]


def test_removing_takes_children_and_outgoing_edges_but_not_incoming_ones(
    conn: sqlite3.Connection,
) -> None:
    write_detail(conn, full(A), at=AT)
    conn.execute(
        "INSERT INTO edges(src_path, rel, dst_path, edge_class, created_at)"
        " VALUES(?, 'supports', ?, 'memory', 'then')",
        (B, A),
    )
    remove(conn, A)
    remove(conn, "areas/inbox/never-there.html")
    found = content(conn)
    assert [edge[:3] for edge in found.pop("edges")] == [(B, "supports", A)]
    assert all(rows == [] for rows in found.values())
    assert full_text_is_whole(conn)


def test_moving_keeps_id_children_and_edges(conn: sqlite3.Connection) -> None:
    write_detail(conn, full(A), at=AT)
    number = row(conn, A)["id"]
    new = "archive/2026.2/areas/inbox/a.html"
    write_detail(conn, detail(new, claim="In the way."), at=AT)
    move(conn, A, new)
    found = row(conn, new)
    names = ("id", "para", "workspace", "archived", "origin_path", "gist")
    assert [found[name] for name in names] == [
        number,
        "archive",
        None,
        1,
        A,
        "The relay limit is 11.",
    ]
    every = content(conn)
    assert {child[0] for table in ("file_tags", "chunks", "edges") for child in every[table]} == {
        new
    }
    assert len(every["files"]) == 1
    assert words_found(conn, "relay") == [new]
    assert full_text_is_whole(conn)


def test_moving_a_path_without_a_row_leaves_the_target(conn: sqlite3.Connection) -> None:
    write_detail(conn, detail(B), at=AT)
    move(conn, A, B)
    assert [file[0] for file in content(conn)["files"]] == [B]


def test_an_edge_to_where_a_file_moves_would_point_at_itself_and_goes(
    conn: sqlite3.Connection,
) -> None:
    write_detail(conn, full(A), at=AT)
    move(conn, A, "areas/inbox/old.html")
    assert [edge[2] for edge in content(conn)["edges"]] == [
        "areas/inbox/x.html",
        "projects/pay/relay.html",
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("projects/pay/x.html", ("projects", "pay", False, None)),
        ("projects/x.html", ("projects", None, False, None)),
        ("areas/pay/x.html", ("areas", None, False, None)),
        ("archive/2026/areas/x.html", ("archive", None, True, "areas/x.html")),
        ("archive/2026.12/projects/p/x.html", ("archive", None, True, "projects/p/x.html")),
        ("archive/12026/areas/x.html", ("archive", None, True, "areas/x.html")),
        ("archive/26/areas/x.html", ("archive", None, True, None)),
        ("archive/2026.x/areas/x.html", ("archive", None, True, None)),
    ],
)
def test_a_path_says_bucket_workspace_and_origin(path: str, expected: tuple[object, ...]) -> None:
    assert tuple(place(path)) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("areas/x.html", True),
        ("archive/2026/areas/x.html", True),
        ("areas/index.html", False),
        ("areas/sitemap.xml", False),
        ("README.html", False),
        ("notes/x.html", False),
        ("areas/x.htm", False),
    ],
)
def test_only_pages_below_a_bucket_are_indexed(path: str, expected: bool) -> None:
    assert is_indexable(path) is expected
