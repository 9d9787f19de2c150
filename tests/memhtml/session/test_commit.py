"""Outcomes of a commit: landed, refused, behind, dirty; and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser
from tests.support.head import dump, dump_file
from tests.support.session import (
    changed_in,
    checkout_state,
    die,
    git,
    in_child,
    land,
    log_subjects,
    make_store,
    page,
    put_op,
    start_log,
    tip,
    who,
)

from memhtml.errors import MemhtmlError, StorageError
from memhtml.session import landing
from memhtml.session.log import read_log, sessions_folder
from memhtml.session.rebase import rebase
from memhtml.store import atomic
from memhtml.store.repo import Repo
from memhtml.store.snapshot_build import build_private
from memhtml_format import html
from memhtml_format.ops import AddLabel, AddLink, Archive, Move, Op, Put

A, B = "areas/inbox/a.html", "areas/inbox/b.html"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with two records."""
    return make_store(str(tmp_path / "store"), {A: page("Fact a holds."), B: page("Fact b holds.")})


def test_commit_lands_the_log_as_one_commit_with_subject_and_trailer(store: str) -> None:
    base = tip(store)
    start_log(store, "s1", [put_op("one"), AddLabel(A, "team:ops"), put_op("two")])
    answer = land(store, "s1")
    assert list(answer) == [
        *("id", "ref", "baseSha", "kind", "sha", "paths", "contradictions", "restatements"),
        *("worktreeSynced", "recovered", "snapshot", "dropped", "via"),
    ]
    assert answer["baseSha"] == base
    assert answer["sha"] == tip(store)
    assert git(store, "rev-parse", "main~1") == base
    assert answer["paths"] == [A, "areas/inbox/one.html", "areas/inbox/two.html"]
    assert changed_in(store, "main") == answer["paths"]
    message = git(store, "log", "-1", "--format=%B", "main")
    assert message == "memhtml(session): land s1\n\nMemhtml-Session: s1\n"[:-1]
    assert answer["snapshot"]["sha"] == answer["sha"]
    assert answer["snapshot"]["rows"] == 4
    assert checkout_state(store) == ""
    log = read_log(store, "s1")
    assert (log.ops, log.base_sha, log.pending) == ((), answer["sha"], None)


def test_commit_of_an_empty_log_is_refused_without_violations(store: str) -> None:
    start_log(store, "s1", [])
    answer = land(store, "s1")
    assert answer["kind"] == "refused"
    assert answer["violations"] == []
    assert answer["snapshot"] is None


def test_commit_behind_its_ref_names_the_overlap_and_lands_after_a_rebase(store: str) -> None:
    start_log(store, "s1", [AddLabel(A, "team:ops")])
    start_log(store, "s2", [AddLabel(A, "team:web"), put_op("two")])
    assert land(store, "s1")["kind"] == "committed"
    behind = land(store, "s2")
    assert behind["kind"] == "rebase-needed"
    assert behind["mainSha"] == tip(store)
    assert behind["overlapping"] == [A]
    assert rebase(store, who("s2"))["moved"]
    assert land(store, "s2")["kind"] == "committed"
    assert git(store, "show", f"main:{A}").count("memhtml-entity") == 3
    assert checkout_state(store) == ""


def test_two_sessions_with_one_fact_end_in_a_duplicate(store: str) -> None:
    start_log(store, "s1", [put_op("one", "The same fact.")])
    start_log(store, "s2", [put_op("other", "The same fact.")])
    assert land(store, "s1")["kind"] == "committed"
    assert land(store, "s2")["kind"] == "rebase-needed"
    rebase(store, who("s2"))
    answer = land(store, "s2")
    assert answer["kind"] == "refused"
    assert answer["violations"] == [
        {"kind": "duplicate", "path": "areas/inbox/other.html", "existing": "areas/inbox/one.html"}
    ]


def test_rival_claims_are_linked_and_restated_ones_are_not(store: str) -> None:
    start_log(store, "s1", [put_op("ttl", "The cache ttl is five minutes.")])
    assert land(store, "s1")["contradictions"] == []
    start_log(store, "s2", [put_op("ttl-2", "The cache ttl is ten minutes.")])
    answer = land(store, "s2")
    pair = {"path": "areas/inbox/ttl-2.html", "against": "areas/inbox/ttl.html"}
    assert answer["contradictions"] == [pair]
    shown = git(store, "show", "main:areas/inbox/ttl-2.html")
    assert '<link rel="memhtml-contradicts" href="/areas/inbox/ttl.html">' in shown
    restated = Put("areas/inbox/ttl-3.html", page("The  cache ttl is Five minutes!"))
    start_log(store, "s3", [restated])
    answer = land(store, "s3")
    assert {r["reason"] for r in answer["restatements"]} == {"same-value"}


def test_archive_and_move_land_with_the_source_s_bytes(store: str) -> None:
    html = page("Fact a holds.")
    ops: list[Op] = [
        Archive(A, f"archive/2026/{A}", html),
        Move(B, "projects/p/b.html", page("Fact b holds.")),
    ]
    start_log(store, "s1", ops)
    answer = land(store, "s1")
    assert answer["kind"] == "committed"
    assert sorted(answer["paths"]) == sorted([A, B, f"archive/2026/{A}", "projects/p/b.html"])
    archived = git(store, "show", f"main:archive/2026/{A}")
    assert 'content="archived"' in archived
    assert "memhtml-archived" in archived
    assert git(store, "show", "main:projects/p/b.html") == page("Fact b holds.").rstrip("\n")
    assert not Path(store, A).exists()
    assert checkout_state(store) == ""


def test_a_broken_file_that_was_put_over_and_archived_is_gone_after_the_commit(
    tmp_path: Path,
) -> None:
    root = make_store(str(tmp_path / "store"), {A: "<p>no record</p>", B: page("Fact b holds.")})
    html, to = page("Fact a holds."), f"archive/2026/{A}"
    start_log(root, "s1", [Put(A, html), Archive(A, to, html)])
    answer = land(root, "s1")
    assert answer["kind"] == "committed"
    assert sorted(answer["paths"]) == sorted([A, to])
    assert changed_in(root, "main") == sorted([A, to])
    assert git(root, "ls-tree", "-r", "--name-only", "main", A) == ""
    assert not Path(root, A).exists()
    assert checkout_state(root) == ""


def test_uncommitted_work_at_a_written_path_stops_the_commit(store: str) -> None:
    start_log(store, "s1", [AddLabel(A, "team:ops"), put_op("one")])
    Path(store, A).write_text("mine", encoding="utf-8")
    Path(store, "areas/inbox/one.html").write_text("also mine", encoding="utf-8")
    base = tip(store)
    answer = land(store, "s1")
    assert answer["kind"] == "worktree-dirty"
    assert answer["paths"] == [A, "areas/inbox/one.html"]
    assert tip(store) == base
    assert Path(store, A).read_text(encoding="utf-8") == "mine"
    assert len(read_log(store, "s1").ops) == 2


def test_uncommitted_work_elsewhere_survives_staged_and_not(store: str) -> None:
    Path(store, B).write_text("staged", encoding="utf-8")
    git(store, "add", "--", B)
    Path(store, B).write_text("and changed again", encoding="utf-8")
    Path(store, "notes.txt").write_text("untracked", encoding="utf-8")
    start_log(store, "s1", [put_op("one")])
    assert land(store, "s1")["kind"] == "committed"
    assert git(store, "show", f":{B}") == "staged"
    assert Path(store, B).read_text(encoding="utf-8") == "and changed again"
    assert Path(store, "notes.txt").read_text(encoding="utf-8") == "untracked"
    assert changed_in(store, "main") == ["areas/inbox/one.html"]


def test_commit_on_a_ref_that_is_not_checked_out_moves_no_file(store: str) -> None:
    git(store, "branch", "other")
    start_log(store, "s1", [put_op("one")], ref="refs/heads/other")
    answer = land(store, "s1")
    assert answer["kind"] == "committed"
    assert not answer["worktreeSynced"]
    assert answer["ref"] == "refs/heads/other"
    assert not Path(store, "areas/inbox/one.html").exists()
    assert checkout_state(store) == ""


def test_curate_ref_writes_arcs_under_its_own_subject(store: str) -> None:
    git(store, "branch", "curate/today")
    op = Put("areas/arcs/arc.html", page("The arc holds.", kind="arc"))
    start_log(store, "c1", [op], ref="refs/heads/curate/today")
    assert land(store, "c1")["kind"] == "committed"
    assert log_subjects(store, "curate/today")[0] == "memhtml(curate): land c1"


def test_drop_refused_takes_out_what_is_refused_and_lands_the_rest(store: str) -> None:
    ops: list[Op] = [
        put_op("good"),
        Put("areas/inbox/dup.html", page("Fact a holds.")),
        AddLink("areas/inbox/good.html", "supports", "/areas/inbox/dup.html"),
        AddLabel(A, "team:ops"),
    ]
    start_log(store, "s1", ops)
    assert land(store, "s1")["kind"] == "refused"
    answer = land(store, "s1", drop=True)
    assert next(item["path"] for item in answer["dropped"]) == "areas/inbox/dup.html"
    assert answer["kind"] == "committed"
    assert A in answer["paths"]
    trail = Path(sessions_folder(store), "s1.dropped.jsonl").read_text(encoding="utf-8")
    assert len(trail.splitlines()) == len(answer["dropped"])


def test_drop_refused_of_everything_answers_refused_with_an_empty_log(store: str) -> None:
    start_log(store, "s1", [Put("areas/inbox/dup.html", page("Fact a holds."))])
    answer = land(store, "s1", drop=True)
    assert answer["kind"] == "refused"
    assert [item["kind"] for item in answer["dropped"]] == ["put"]
    assert read_log(store, "s1").ops == ()


def test_operation_whose_record_vanished_after_a_rebase_is_refused(store: str) -> None:
    start_log(store, "s1", [AddLabel(A, "team:ops")])
    git(store, "rm", "-q", A)
    git(store, "commit", "-qm", "gone")
    rebase(store, who("s1"))
    answer = land(store, "s1")
    assert answer["kind"] == "refused"
    assert answer["violations"][0]["kind"] == "format"


def test_typo_in_the_id_fails_and_leaves_no_lock(store: str) -> None:
    start_log(store, "s1", [put_op("one")])
    with pytest.raises(StorageError) as caught:
        land(store, "s2")
    assert caught.value.reason == "session.read"
    assert not os.path.exists(os.path.join(sessions_folder(store), "s2.lock"))


def test_held_index_lock_is_an_error_that_moves_nothing(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memhtml.store import index

    monkeypatch.setattr(index, "LOCK_WAIT_S", 0.2)
    start_log(store, "s1", [put_op("one")])
    held = Path(store, ".git", "index.lock")
    held.touch()
    base = tip(store)
    with pytest.raises(MemhtmlError) as caught:
        land(store, "s1")
    assert caught.value.code == "ERR_GIT"
    assert "index.lock" in str(caught.value)
    assert held.exists()
    assert tip(store) == base
    assert not Path(store, "areas/inbox/one.html").exists()
    held.unlink()
    assert land(store, "s1")["kind"] == "committed"
    assert checkout_state(store) == ""


@pytest.mark.parametrize("nth", range(1, 5))
def test_full_disk_at_any_log_write_loses_no_operation(
    store: str, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    start_log(store, "s1", [put_op("one")])
    real, calls = atomic.write_all, 0

    def failing(descriptor: int, data: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError(28, "No space left on device")
        real(descriptor, data)

    monkeypatch.setattr(atomic, "write_all", failing)
    try:
        land(store, "s1")
    except MemhtmlError as error:
        assert error.code in ("ERR_STORAGE", "ERR_GIT")
    monkeypatch.undo()
    land(store, "s1")
    assert git(store, "log", "--format=%s", "--", "areas/inbox/one.html") == (
        "memhtml(session): land s1"
    )
    assert read_log(store, "s1").ops == ()
    assert checkout_state(store) == ""


def test_edit_between_the_look_and_the_move_is_dirty_and_stays(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_log(store, "s1", [AddLabel(A, "team:ops"), put_op("one")])

    def intrude(step: str) -> None:
        if step == "pending":
            Path(store, A).write_text("mine", encoding="utf-8")

    monkeypatch.setattr(landing, "on_step", intrude)
    answer = land(store, "s1")
    assert answer["kind"] == "worktree-dirty"
    assert answer["paths"] == [A]
    assert Path(store, A).read_text(encoding="utf-8") == "mine"
    assert read_log(store, "s1").pending is None
    assert not Path(store, "areas/inbox/one.html").exists()


def test_swap_lost_to_another_writer_is_rolled_back(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_log(store, "s1", [put_op("one"), AddLabel(A, "team:ops")])

    def intrude(step: str) -> None:
        if step == "pending":
            git(store, "update-ref", "refs/heads/main", other)

    git(store, "checkout", "-q", "--detach")
    git(store, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    other = tip(store, "HEAD")
    git(store, "checkout", "-q", "main")
    monkeypatch.setattr(landing, "on_step", intrude)
    answer = land(store, "s1")
    assert answer["kind"] == "rebase-needed"
    assert answer["mainSha"] == other
    assert read_log(store, "s1").pending is None
    assert checkout_state(store) == ""
    monkeypatch.undo()
    rebase(store, who("s1"))
    assert land(store, "s1")["kind"] == "committed"


def test_commit_needs_no_git_identity(store: str) -> None:
    assert subprocess.run(["git", "config", "user.name"], capture_output=True).stdout == b""
    start_log(store, "s1", [put_op("one")])
    assert land(store, "s1")["kind"] == "committed"
    assert git(store, "log", "-1", "--format=%an <%ae>") == "memhtml <memhtml@localhost>"


def test_the_head_database_after_a_commit_equals_one_built_from_git(store: str) -> None:
    text = page("Fact c holds.")
    ops: list[Op] = [
        put_op("ttl", "The cache ttl is five minutes."),
        Put("projects/p/one.html", page("A claim <dfn>term</dfn> stands.", kind="procedural")),
        Put("areas/inbox/c.html", text),
        Archive("areas/inbox/c.html", "archive/2026/areas/inbox/c.html", text),
        put_op("labelled"),
        AddLabel("areas/inbox/labelled.html", "team:ops"),
        AddLink(A, "relates_to", f"/{B}"),
    ]
    start_log(store, "s1", [put_op("old", "The cache ttl is ten minutes.")])
    start_log(store, "s2", ops)
    assert land(store, "s1")["kind"] == "committed"
    rebase(store, who("s2"))
    answer = land(store, "s2")
    assert answer["contradictions"]
    assert answer["snapshot"]["sha"] == tip(store)
    built = build_private("refs/heads/main", tip(store), Repo(store))
    assert dump_file(answer["snapshot"]["path"]) == dump(built)
    built.close()


def test_a_commit_parses_each_text_once(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    real = html.parse

    def counted(text: str) -> LexborHTMLParser:
        texts.append(text)
        return real(text)

    start_log(store, "s1", [put_op(f"n{n}") for n in range(5)])
    monkeypatch.setattr(html, "parse", counted)
    assert land(store, "s1")["snapshot"] is not None
    assert len(texts) == len(set(texts)) == 7  # The two of the base, for the first database.


def test_texts_beyond_a_few_mebibytes_are_not_kept_for_the_head_database(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memhtml.bar import readings

    monkeypatch.setattr(readings, "WHOLE_CHARS", len(page("Fact n0 holds.")))
    start_log(store, "s1", [put_op(f"n{n}") for n in range(3)])
    answer = land(store, "s1")
    built = build_private("refs/heads/main", tip(store), Repo(store))
    assert dump_file(answer["snapshot"]["path"]) == dump(built)
    built.close()


def test_a_commit_takes_back_what_a_killed_direct_write_left(store: str) -> None:
    from memhtml.store import land as direct

    def killed() -> None:
        direct.on_step = lambda name: die() if name == "staged" else None
        with direct.landing(store) as hold:
            hold.commit({"areas/inbox/c.html": b"left\n"}, (), "memhtml(write): c\n")

    in_child(killed)
    start_log(store, "s1", [put_op("one")])
    assert land(store, "s1")["kind"] == "committed"
    assert git(store, "status", "--porcelain") == ""
    assert not os.path.exists(os.path.join(store, "areas/inbox/c.html"))
