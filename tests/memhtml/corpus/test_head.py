"""A head and its views: bytes, kinds of files, layers over layers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.head import LINK, MAIN, SUBMODULE, Store, dump_built, dump_file, page, stored

from memhtml.corpus.head import open_head
from memhtml.corpus.interface import Corpus, RecordRow
from memhtml.store.commit import create
from memhtml.store.entries import TREE_MODE
from memhtml.store.repo import Repo
from memhtml.store.snapshot import write_snapshot
from memhtml_format.record import Link

A = "areas/inbox/a.html"
B = "areas/inbox/b.html"
OLD = "archive/2026/areas/inbox/old.html"
PAGES = {
    A: page("A", "The ttl is 5.", entities=["system:a", "plain"], links=[("supports", f"/{B}")]),
    B: page("B", "The ttl is 6.", body="<p><dfn>term</dfn></p>"),
    OLD: page("Old", "The ttl is 5.", links=[("supports", f"/{B}")]),
}
FILES: dict[str, bytes | tuple[int, bytes]] = {
    **PAGES,
    "areas/inbox/broken.html": b"<p>no memory</p>",
    "areas/notes.txt": b"text",
    "areas/link.html": (LINK, b"a.html"),
    "areas/module": (SUBMODULE, b"stands for a commit"),
    "README.html": b"<p>store</p>",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(str(tmp_path))
    made.commit(FILES)
    return made


def tip(store: Store) -> str:
    return str(store.git.references[MAIN].target)


def test_a_head_answers_about_records_files_and_folders(store: Store) -> None:
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        corpus: Corpus = head
        assert corpus.sha == tip(store)
        row = corpus.record(A)
        assert isinstance(row, RecordRow)
        assert (row.title, row.claim, row.archived) == ("A", "The ttl is 5.", False)
        assert (row.frame_key, row.frame_value) == ("the ttl is", "5")
        assert corpus.live_with_hash(row.content_hash) == A
        assert corpus.live_with_hash("sha256:no hex") is None
        assert [rival.path for rival in corpus.rivals("the ttl is")] == [A, B]
        assert corpus.links(A) == [Link("supports", f"/{B}")]
        assert corpus.entities(A) == ["system:a", "plain"]
        assert corpus.entities(B) == []
        assert corpus.holders(B) == [(A, Link("supports", f"/{B}"))]
        assert corpus.record_under("archive")
        assert not corpus.record_under("areas/inbox/a.html")
        assert corpus.paths_under("areas") == [A, B]
        assert list(corpus.record_paths()) == [OLD, A, B]
        assert corpus.read(A) == FILES[A]
        assert corpus.read("areas/inbox/broken.html") is None
        kinds = {path: corpus.file_kind(path) for path in (*FILES, "areas", "areas/none")}
        assert (kinds.pop("areas"), kinds.pop("areas/none")) == ("folder", None)
        assert kinds.pop("areas/link.html") == kinds.pop("areas/module") == "other"
        assert set(kinds.values()) == {"file"}


def test_odd_text_finds_nothing_and_raises_nothing(store: Store) -> None:
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        odd = "areas/\udcff.html"
        assert head.record(odd) is None
        assert head.read(odd) is None
        assert not head.record_under(odd)
        assert not any((head.paths_under(odd), head.links(odd), head.holders(odd)))
        assert not any((head.rivals(odd), head.entities(odd)))
        assert head.file_kind(odd) is None
        assert head.file_kind(f"{odd}/below") is None


def test_kinds_of_files_are_told_without_git(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write_snapshot(store.root, MAIN, tip(store), store.repo())

    def refuse(*_args: object) -> None:
        raise AssertionError("git was asked")

    for name in ("_read_typed", "objects"):
        monkeypatch.setattr(Repo, name, refuse)
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        view = head.view({"projects/p/new.html": page("N", "It is new.")}, [A])
        for corpus in (head, view):
            assert corpus.file_kind("areas/notes.txt") == "file"
            assert corpus.file_kind("areas/inbox") == "folder"
            assert corpus.file_kind("areas/none") is None


def test_a_folder_is_told_by_what_is_left_in_it(store: Store) -> None:
    base = tip(store)
    files = {path: value for path, value in FILES.items() if not path.startswith("areas/inbox/")}
    later = store.commit({**files, "areas/inbox/deep/x.txt": b"text"}, base)
    write_snapshot(store.root, MAIN, base, store.repo())
    emptied = store.commit(files, base, ref=None)
    write_snapshot(store.root, MAIN, emptied, store.repo())
    for sha, inbox, deep in (
        (base, "folder", None),
        (later, "folder", "folder"),
        (emptied, None, None),
    ):
        with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
            assert head.file_kind("areas/inbox") == inbox
            assert head.file_kind("areas/inbox/deep") == deep
            assert head.view({}, ["areas/inbox/deep/x.txt"]).file_kind("areas/inbox/deep") is None


def test_only_memory_paths_count_as_reparsed(store: Store) -> None:
    base = tip(store)
    changed = {**FILES, A: page("A2"), "areas/notes.txt": b"more", "areas/link.html": (LINK, b"b")}
    later = store.commit(changed, base)
    write_snapshot(store.root, MAIN, later, store.repo())
    with open_head(store.root, MAIN, base, repo=store.repo()) as head:
        assert (head.report.reparsed, head.report.records) == (1, 3)
    # The other way the difference is written, and counted alike.
    write_snapshot(store.root, MAIN, base, store.repo())
    with open_head(store.root, MAIN, later, repo=store.repo()) as head:
        assert (head.report.reparsed, head.report.source) == (1, "snapshot+advance")


def test_names_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    odd = os.fsdecode(b"\xff/x.txt")
    repo = store.repo()
    plain = store.commit({A: PAGES[A]}, ref=None)
    inner = {b"x.txt": (b"100644", bytes.fromhex(repo.write_object("blob", b"text")))}
    below = repo.write_object("tree", stored(inner))
    entries = {
        **repo.tree_entries(repo.root_tree(plain)),
        b"\xff": (TREE_MODE, bytes.fromhex(below)),
    }
    sha = create(repo, repo.write_object("tree", stored(entries)), [plain], "odd", 1_764_000_000)
    store.git.references.create(MAIN, sha)
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        assert head.file_kind(A) == "file"
        assert head.file_kind(odd) is None
    assert dump_file(store.database())["others"] == []
    write_snapshot(store.root, MAIN, plain, repo)
    write_snapshot(store.root, MAIN, sha, repo)
    assert dump_file(store.database()) == dump_built(store, sha)


def test_a_view_replaces_hides_and_adds(store: Store) -> None:
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        new = "projects/p/new.html"
        moved = {"projects/p/a.html": PAGES[A], B: b"broken now", new: page("N", "The ttl is 7.")}
        view: Corpus = head.view(moved, [A])
        assert list(view.record_paths()) == [OLD, "projects/p/a.html", new]
        assert view.record(A) is None
        assert view.read(A) is None
        assert view.record(B) is None
        assert view.read(B) == b"broken now"
        row = view.record("projects/p/a.html")
        assert row is not None
        assert view.live_with_hash(row.content_hash) == "projects/p/a.html"
        assert [r.path for r in view.rivals("the ttl is")] == ["projects/p/a.html", new]
        assert view.holders(B) == [("projects/p/a.html", Link("supports", f"/{B}"))]
        assert view.record_under("projects")
        assert not view.record_under("areas")
        assert view.file_kind("projects/p") == "folder"
        assert view.file_kind(new) == "file"
        assert view.file_kind(A) is None
        assert view.file_kind("areas/notes.txt") == "file"
        assert [r.path for r in head.rivals("the ttl is")] == [A, B]


def test_a_view_over_a_head_that_is_itself_laid_prefers_the_topmost(store: Store) -> None:
    base = tip(store)
    later = store.commit({**FILES, A: page("A2", "The ttl is 8."), B: page("B2", "It is.")}, base)
    write_snapshot(store.root, MAIN, base, store.repo())
    write_snapshot(store.root, MAIN, later, store.repo())
    with open_head(store.root, MAIN, base, repo=store.repo()) as head:
        assert head.report.source == "snapshot+advance"
        view = head.view({A: page("A3", "The ttl is 9.")}, [B])
        row = view.record(A)
        assert row is not None
        assert row.title == "A3"
        assert [r.title for r in view.rivals("the ttl is")] == ["A3"]
        assert list(view.record_paths()) == [OLD, A]
        assert head.read(B) == FILES[B]
        assert view.read(B) is None


def test_a_view_parses_nothing_until_a_question_needs_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def refuse(path: str, data: bytes) -> None:
        parsed.append(path)
        raise AssertionError("parsed too early")

    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        monkeypatch.setattr("memhtml_format.record.read", refuse)
        view = head.view({"projects/n.html": page("N")}, [A])
        assert view.read("projects/n.html") == page("N")
        assert view.record(B) is not None
        assert view.record(A) is None
        assert parsed == []


def test_a_closed_head_refuses_questions(store: Store) -> None:
    import sqlite3

    head = open_head(store.root, MAIN, tip(store), repo=store.repo())
    head.close()
    head.close()
    with pytest.raises(sqlite3.ProgrammingError):
        head.record(A)
