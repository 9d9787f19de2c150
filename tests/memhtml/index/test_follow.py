"""The index goes where git goes: commits, renames, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.index import (
    OLD_A,
    A,
    B,
    C,
    claims,
    commit,
    counts,
    forward,
    index_paths,
    refresh,
    state_of,
    write_file,
)
from tests.support.session import make_store, page, tip

from memhtml.errors import MemhtmlError
from memhtml.index import changes, files, follow
from memhtml.index.database import open_index
from memhtml.index.follow import UpdateReport
from memhtml.index.state import bump
from memhtml.store.repo import Repo

NOW_S = 1_790_000_000


def test_the_first_update_builds_the_index_and_says_so_in_its_own_words(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "s"), {A: page("The limit is 11."), B: "<p>none</p>"})
    done = refresh(root)
    assert done == UpdateReport(tip(root), False, 1, 0, 0, 0, 0, 0, ((B, done.skipped[0][1]),))
    assert "title" in done.skipped[0][1]


def test_a_second_update_changes_nothing_not_even_the_stamp(root: str) -> None:
    before = Path(files.index_path(root)).read_bytes()
    done = refresh(root)
    assert done == UpdateReport(tip(root), True, 0, 0, 0, 0, 0, 0, ())
    assert Path(files.index_path(root)).read_bytes() == before


def test_additions_edits_and_removals_are_followed(root: str) -> None:
    write_file(root, A, page("The limit is 12."))
    write_file(root, C, page("The host is new."))
    commit(root)
    assert counts(refresh(root)) == (1, 1, 0, 0, 0)
    os.unlink(f"{root}/{B}")
    commit(root)
    assert counts(refresh(root)) == (0, 0, 1, 0, 0)
    assert claims(root) == {A: "The limit is 12.", C: "The host is new."}
    assert state_of(root).head_sha == tip(root)


def test_a_commit_without_memories_moves_the_watermark_alone(root: str) -> None:
    write_file(root, "notes.txt", "nothing for an index")
    commit(root)
    done = refresh(root)
    assert done.unchanged
    assert state_of(root).head_sha == tip(root)


def test_a_change_of_mode_alone_is_no_change(root: str) -> None:
    os.chmod(f"{root}/{A}", 0o755)
    commit(root)
    assert refresh(root).unchanged


def test_a_file_that_became_a_link_leaves_the_index(root: str) -> None:
    os.unlink(f"{root}/{A}")
    os.symlink("b.html", f"{root}/{A}")
    commit(root)
    assert counts(refresh(root)) == (0, 0, 1, 0, 0)
    assert index_paths(root) == [B]


def test_a_rename_keeps_the_row_and_the_accesses(root: str) -> None:
    with open_index(root) as index:
        bump(index.conn, [A], "positive", NOW_S)
        number = index.conn.execute("SELECT id FROM files WHERE path = ?", (A,)).fetchone()
    os.makedirs(f"{root}/{os.path.dirname(OLD_A)}")
    os.replace(f"{root}/{A}", f"{root}/{OLD_A}")
    commit(root)
    assert counts(refresh(root)) == (0, 0, 0, 1, 0)
    with open_index(root) as index:
        row = index.conn.execute(
            "SELECT id, archived, origin_path FROM files WHERE path = ?", (OLD_A,)
        ).fetchone()
        assert row == (*number, 1, A)
        accesses = index.conn.execute("SELECT path, access_count FROM state.access").fetchall()
        assert accesses == [(OLD_A, 1)]


def test_the_conversations_of_a_file_move_with_it(root: str) -> None:
    with open_index(root) as index:
        index.conn.execute(
            "INSERT INTO memory_session_links(path, session_id, link_kind, at)"
            " VALUES(?, 's', 'read', 'then')",
            (A,),
        )
    os.replace(f"{root}/{A}", f"{root}/{C}")
    commit(root)
    refresh(root)
    with open_index(root) as index:
        assert index.conn.execute("SELECT path FROM memory_session_links").fetchall() == [(C,)]


def test_a_rename_without_any_state_makes_none(root: str) -> None:
    assert not os.path.exists(files.state_path(root))
    os.replace(f"{root}/{A}", f"{root}/{C}")
    commit(root)
    forward(root)
    assert not os.path.exists(files.state_path(root))


def test_accesses_do_not_go_to_a_file_that_only_looks_alike(root: str) -> None:
    with open_index(root) as index:
        bump(index.conn, [A], "positive", NOW_S)
        index.conn.execute(
            "INSERT INTO memory_session_links(path, session_id, link_kind, at)"
            " VALUES(?, 's', 'read', 'then')",
            (A,),
        )
    os.unlink(f"{root}/{A}")
    other = page("Whales sing below the ice, and nobody up here can say for whom they do it.")
    write_file(root, C, other.replace("system:billing", "animal:whale"))
    commit(root)
    plan = changes.difference(Repo(root), tip(root, "HEAD^"), tip(root))
    likeness = [step.likeness for step in plan.steps if step.kind == "renamed"]
    assert likeness
    assert likeness[0] < 75
    assert refresh(root).renamed == 1
    with open_index(root) as index:
        assert index.conn.execute("SELECT path FROM state.access").fetchall() == [(A,)]
        assert index.conn.execute("SELECT path FROM memory_session_links").fetchall() == [(A,)]


def test_accesses_follow_an_article_whose_head_was_rewritten(root: str) -> None:
    with open_index(root) as index:
        bump(index.conn, [A], "positive", NOW_S)
    os.unlink(f"{root}/{A}")
    tags = "".join(f'<meta name="memhtml-tag" content="tag-{n}">\n' for n in range(6))
    write_file(root, C, page("The limit is 11.", title="Quite another name", head=tags))
    commit(root)
    assert refresh(root).renamed == 1
    with open_index(root) as index:
        assert index.conn.execute("SELECT path FROM state.access").fetchall() == [(C,)]


def test_a_damaged_state_does_not_hold_up_a_rename(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(files.state_path(root)).write_bytes(b"precious " * 100)
    os.replace(f"{root}/{A}", f"{root}/{C}")
    commit(root)
    assert refresh(root).renamed == 1
    assert "stay behind" in capsys.readouterr().err
    assert Path(files.state_path(root)).read_bytes() == b"precious " * 100


def test_a_rename_out_of_the_indexed_folders_deletes_and_one_into_them_adds(root: str) -> None:
    os.makedirs(f"{root}/notes")
    os.replace(f"{root}/{A}", f"{root}/notes/a.html")
    commit(root)
    assert counts(refresh(root)) == (0, 0, 1, 0, 0)
    os.replace(f"{root}/notes/a.html", f"{root}/{C}")
    commit(root)
    assert counts(refresh(root)) == (1, 0, 0, 0, 0)


def test_a_file_that_stops_parsing_keeps_its_last_row_and_is_listed(root: str) -> None:
    write_file(root, A, "<p>no record any more</p>")
    commit(root)
    done = refresh(root)
    assert [path for path, _reason in done.skipped] == [A]
    assert claims(root)[A] == "The limit is 11."
    os.replace(f"{root}/{A}", f"{root}/{C}")
    commit(root)
    assert [path for path, _reason in refresh(root).skipped] == [C]
    assert claims(root)[C] == "The limit is 11."
    os.unlink(f"{root}/{C}")
    commit(root)
    assert counts(refresh(root)) == (0, 0, 1, 0, 0)
    assert index_paths(root) == [B]


def test_an_update_waits_for_another_writer_and_then_says_that_it_is_locked(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "WRITER_WAIT_S", 0.05)
    guard = files.hold(root, files.WRITE_LOCK, exclusive=True, wait_s=0)
    assert guard is not None
    with guard, pytest.raises(MemhtmlError, match=r"index\.locked"):
        refresh(root)


def test_a_rebuild_cut_short_is_stale_and_only_a_rebuild_helps(root: str) -> None:
    with open_index(root) as index:
        index.conn.execute("UPDATE index_state SET head_sha = NULL")
    with pytest.raises(MemhtmlError) as caught:
        refresh(root)
    assert caught.value.code == "ERR_INDEX_STALE"
    assert caught.value.suggestions == ("memhtml index rebuild",)


def test_a_damaged_index_is_refused_by_update_and_left(root: str) -> None:
    Path(files.index_path(root)).write_bytes(b"garbage " * 100)
    with pytest.raises(MemhtmlError, match=r"index\.open"):
        refresh(root)
    assert Path(files.index_path(root)).read_bytes() == b"garbage " * 100


def test_another_programs_index_is_replaced_by_update(root: str) -> None:
    with open_index(root) as index:
        index.conn.execute("UPDATE schema_migrations SET name = '0001_init.sql'")
    assert refresh(root).added == 2
    assert os.path.exists(files.aside_path(root))
