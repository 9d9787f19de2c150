"""`read`: what of a file is answered, which paths hold none, and what a read leaves behind."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.reads import link, meta, task
from tests.support.session import page

from memhtml.errors import MemhtmlError, StorageError
from memhtml.index import sqlite as index_sqlite
from memhtml.retrieve import read as subject
from memhtml.retrieve.read import Reader, read

PATH = "areas/inbox/relay.html"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A working tree with one record."""
    store = str(tmp_path / "store")
    put(store, PATH, page("The relay batch limit is 11.", title="Relay"))
    return store


def put(root: str, path: str, html: str) -> None:
    place = Path(root, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(html, encoding="utf-8", newline="")


def rows(root: str, name: str, statement: str) -> list[tuple[Any, ...]]:
    conn = sqlite3.connect(f"{root}/.memhtml/{name}")
    try:
        return conn.execute(statement).fetchall()
    finally:
        conn.close()


def accesses(root: str) -> list[tuple[Any, ...]]:
    return rows(root, "state.db", "SELECT path, access_count, reinforcement_count FROM access")


def links(root: str) -> list[tuple[Any, ...]]:
    columns = "path, session_id, prompt_id, turn_uuid, link_kind"
    return rows(root, "index.db", f"SELECT {columns} FROM memory_session_links ORDER BY rowid")


def refused(root: str, path: str) -> MemhtmlError:
    with pytest.raises(MemhtmlError) as caught:
        read(root, path)
    return caught.value


# What is answered.


def test_a_record_is_answered_with_every_field_in_order(root: str) -> None:
    answer = read(root, PATH)
    assert list(answer) == [
        *("path", "title", "metas", "entities", "tags", "links", "gist", "body", "html"),
        *("archived", "warnings"),
    ]
    assert answer == {
        "path": PATH,
        "title": "Relay",
        "metas": {
            "memoryType": "semantic",
            "status": "active",
            "createdAt": "2026-05-04T09:00:00Z",
            "updatedAt": "2026-05-04T09:00:00Z",
        },
        "entities": ["system:billing"],
        "tags": [],
        "links": [],
        "gist": "The relay batch limit is 11.",
        "body": "The relay batch limit is 11.",
        "html": "<p><mark>The relay batch limit is 11.</mark></p>",
        "archived": False,
        "warnings": [],
    }


def test_every_stated_meta_is_answered_in_the_order_of_the_contract(root: str) -> None:
    stated = {
        "confidence": "0.5",
        "importance": "7",
        "content-hash": "sha256:as-written",
        "author": "agent:m",
        "session": "s1",
        "prompt": "p1",
        "turn": "t1",
        "valid-from": "2026-01-01",
        "valid-until": "2027-01-01T00:00:00Z",
        "reprieves": "2",
        "archived": "2026-06-01",
        "superseded-by": "/areas/new.html",
        "needs-revision": "Yes",
        "due": "2026-12-24",
    }
    head = "".join(meta(name, value) for name, value in reversed(stated.items()))
    put(root, "areas/t.html", task("Do it.", status="doing", head=head))
    metas = read(root, "areas/t.html")["metas"]
    assert list(metas.items())[4:] == [
        ("confidence", 0.5),
        ("importance", 7),
        ("contentHash", "sha256:as-written"),
        ("author", "agent:m"),
        ("sessionId", "s1"),
        ("promptId", "p1"),
        ("turnUuid", "t1"),
        ("validFrom", "2026-01-01"),
        ("validUntil", "2027-01-01T00:00:00Z"),
        ("reprieves", 2),
        ("archivedAt", "2026-06-01"),
        ("supersededBy", "/areas/new.html"),
        ("needsRevision", True),
        ("taskStatus", "doing"),
        ("dueAt", "2026-12-24"),
    ]


def test_a_bad_optional_value_is_left_out_and_named(root: str) -> None:
    head = meta("confidence", "1.50") + meta("importance", "often") + meta("reprieves", "-1")
    put(root, PATH, page("The limit is 11.", head=head))
    answer = read(root, PATH)
    assert set(answer["metas"]) == {"memoryType", "status", "createdAt", "updatedAt"}
    assert answer["warnings"] == [
        "memhtml-confidence is '1.50', not a number from 0 to 1; it is left out",
        "memhtml-importance is 'often', not a whole number from 1 to 10; it is left out",
        "memhtml-reprieves is '-1', not a whole number from 0; it is left out",
    ]


def test_a_blank_optional_value_is_absent_and_no_fault(root: str) -> None:
    put(root, PATH, page("The limit is 11.", head=meta("confidence", " ") + meta("author", "")))
    answer = read(root, PATH)
    assert "confidence" not in answer["metas"]
    assert answer["warnings"] == []


def test_a_revision_mark_that_says_no_is_false_and_not_absent(root: str) -> None:
    put(root, PATH, page("The limit is 11.", head=meta("needs-revision", "no")))
    assert read(root, PATH)["metas"]["needsRevision"] is False


def test_labels_links_and_format_warnings_are_answered_as_written(root: str) -> None:
    head = meta("tag", "b") + meta("tag", "A") + link("relates_to", "areas/x.html")
    put(root, PATH, page("The limit is 11.", head=head).replace("</p>", " <blink>!</blink></p>"))
    answer = read(root, PATH)
    assert answer["tags"] == ["b", "A"]
    assert answer["links"] == [{"rel": "relates_to", "href": "/areas/x.html"}]
    assert answer["warnings"] == ["blink is outside the element vocabulary"]


def test_the_working_tree_is_read_and_not_the_index(root: str) -> None:
    read(root, PATH)
    put(root, PATH, page("The limit is 12."))
    assert read(root, PATH)["gist"] == "The limit is 12."


def test_an_archived_file_reads_normally_and_its_status_decides_the_flag(root: str) -> None:
    twin = f"archive/2026/{PATH}"
    put(
        root,
        twin,
        page("The limit was 9.").replace('status" content="active', 'status" content="archived'),
    )
    assert read(root, twin)["archived"] is True
    put(root, twin, page("The limit was 9."))
    assert read(root, twin)["archived"] is False


@pytest.mark.parametrize("written", [f"/{PATH}", f"//{PATH}/", PATH.replace("/", "//")])
def test_slashes_around_and_between_are_dropped(root: str, written: str) -> None:
    assert read(root, written)["path"] == PATH


# Which paths hold none.


@pytest.mark.parametrize(
    "path",
    [
        "areas/inbox/none.html",
        "areas/inbox",
        "areas",
        "",
        "/",
        "..",
        "../outside.html",
        "areas/../areas/inbox/relay.html",
        "areas/./inbox/relay.html",
        f"{PATH}/more.html",
        "areas/inbox/" + "x" * 300 + ".html",
        "x/" * 3000 + "x.html",
        "areas/\udce9.html",
        "areas/inbox/relay.html\0",
        ".git/config",
        ".GIT/config",
        ".memhtml/index.db",
    ],
)
def test_what_is_no_file_of_the_tree_is_not_found(root: str, path: str) -> None:
    put(root, "../outside.html", page("Outside."))
    put(root, ".git/config", page("Git's own."))
    error = refused(root, path)
    assert (error.code, error.exit_status) == ("ERR_PATH_NOT_FOUND", 1)
    assert error.suggestions[0].startswith("memhtml resolve ")
    assert error.suggestions[1].startswith("memhtml search ")
    assert error.suggestions[2:] == ("memhtml list",)


def test_a_link_is_not_followed_to_a_file_elsewhere(root: str) -> None:
    # A cloned store must not be able to show a file of its reader's machine.
    put(root, "../secret.html", page("The secret."))
    os.symlink("../../secret.html", Path(root, "areas/link.html"))
    os.symlink("..", Path(root, "areas/up"))
    assert refused(root, "areas/link.html").code == "ERR_PATH_NOT_FOUND"
    assert refused(root, "areas/up/areas/inbox/relay.html").code == "ERR_PATH_NOT_FOUND"


def test_a_pipe_is_not_waited_for(root: str) -> None:
    os.mkfifo(Path(root, "areas/pipe.html"))
    assert refused(root, "areas/pipe.html").code == "ERR_PATH_NOT_FOUND"


def test_the_words_of_the_name_are_what_to_search_for(root: str) -> None:
    error = refused(root, "areas/inbox/the-relay's limit (old).html")
    assert (
        error.suggestions[0] == "memhtml resolve 'areas/inbox/the-relay'\"'\"'s limit (old).html'"
    )
    assert error.suggestions[1] == "memhtml search 'the relay s limit old'"


def test_a_file_that_is_no_record_is_refused_with_its_violations(root: str) -> None:
    put(root, PATH, page("The limit is 11.").replace("<mark>", "").replace("</mark>", ""))
    put(root, "notes.txt", "plain")
    error = refused(root, PATH)
    assert error.code == "ERR_INVALID_MEMORY"
    assert str(error) == f"{PATH}: the article needs exactly one mark, there are 0"
    several = refused(root, "notes.txt")
    assert (several.code, "; " in str(several)) == ("ERR_INVALID_MEMORY", True)


def test_bytes_that_are_no_text_are_refused(root: str) -> None:
    Path(root, PATH).write_bytes(b"\xff\xfe")
    assert refused(root, PATH).code == "ERR_INVALID_MEMORY"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_a_storage_failure(root: str) -> None:
    os.chmod(Path(root, PATH), 0)
    error = refused(root, PATH)
    assert isinstance(error, StorageError)
    assert error.reason == "read"


def test_a_disk_that_fails_is_a_storage_failure_that_names_the_path(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memhtml.store.worktree import WorkTree

    def fail(self: WorkTree, path: str) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(WorkTree, "read", fail)
    error = refused(root, PATH)
    assert str(error) == f"storage operation failed: read: {PATH}: Input/output error"


@given(st.text(max_size=40))
def test_no_path_is_answered_with_another_kind_of_failure(
    tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    assert refused(str(tmp_path_factory.getbasetemp()), path).code == "ERR_PATH_NOT_FOUND"


# What a read leaves behind.


def test_a_read_is_counted_once_within_the_cooldown(root: str) -> None:
    read(root, PATH)
    read(root, f"/{PATH}")
    assert accesses(root) == [(PATH, 1, 0)]
    assert links(root) == []


def test_a_conversation_leaves_one_link_per_place_it_reads_from(root: str) -> None:
    for _ in range(2):
        read(root, PATH, Reader("s1", "p1", "t1"))
    read(root, PATH, Reader("s1", "p2", " "))
    assert links(root) == [(PATH, "s1", "p1", "t1", "read"), (PATH, "s1", "p2", None, "read")]


def test_a_blank_conversation_is_none(root: str) -> None:
    read(root, PATH, Reader("  ", "p1"))
    assert links(root) == []


def test_a_file_outside_the_buckets_is_not_counted(root: str) -> None:
    put(root, "README.html", page("What this is."))
    assert read(root, "README.html")["gist"] == "What this is."
    assert not os.path.exists(f"{root}/.memhtml/state.db")


@pytest.mark.parametrize("name", ["index.db", "state.db"])
def test_a_damaged_database_is_a_warning_and_the_record_is_answered(
    root: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(root, f".memhtml/{name}", "no database at all " * 100)
    assert read(root, PATH)["title"] == "Relay"
    assert f"WARN: the read of {PATH} was not counted: storage operation failed: " in (
        capsys.readouterr().err
    )
    assert Path(root, ".memhtml", name).read_text().startswith("no database")


def test_a_locked_state_is_a_warning_and_the_record_is_answered(
    root: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read(root, PATH)
    monkeypatch.setattr(index_sqlite, "RETRY_S", 0.05)
    monkeypatch.setattr(index_sqlite, "BUSY_S", 0.05)
    holder = sqlite3.connect(f"{root}/.memhtml/state.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    holder.execute("UPDATE access SET last_accessed_at = NULL")
    assert read(root, PATH)["title"] == "Relay"
    holder.execute("ROLLBACK")
    holder.close()
    assert "state.locked" in capsys.readouterr().err


def test_an_index_that_is_being_rebuilt_is_not_waited_for(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    read(root, PATH)
    holder = sqlite3.connect(f"{root}/.memhtml/index.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    assert read(root, PATH, Reader("s1"))["title"] == "Relay"
    assert time.monotonic() - started < index_sqlite.BUSY_S
    holder.execute("ROLLBACK")
    holder.close()
    assert "was not counted: storage operation failed: index.locked" in capsys.readouterr().err
    assert links(root) == []


def test_the_checks_of_values_name_metas_of_the_format() -> None:
    from memhtml_format.vocab import METAS

    assert set(subject._CHECKED) < set(METAS)
