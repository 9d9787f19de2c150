"""Building the index anew: what it reads, keeps, refuses, replaces, and leaves alone."""

from __future__ import annotations

import os
import random
import sqlite3
from pathlib import Path

import pytest
from tests.support.embed import Fixed
from tests.support.index import (
    OLD_A,
    A,
    B,
    C,
    anew,
    claims,
    commit,
    content,
    full_text_is_whole,
    refresh,
    state_of,
    write_file,
)
from tests.support.session import git, page, tip

from memhtml.embed.hashed import HashedEmbedder
from memhtml.errors import MemhtmlError
from memhtml.index import bulk, files, follow
from memhtml.index.database import open_index
from memhtml.index.follow import RebuildReport
from memhtml.index.projection import Rows
from memhtml.index.state import bump, read_state
from memhtml.retrieve import scope
from memhtml.retrieve.recall import recall
from memhtml.retrieve.scope import Scope
from memhtml.retrieve.search import search
from memhtml.store.repo import Repo

EMBED = "memhtml index rebuild --embed"


def vectors(root: str) -> list[tuple[str, str]]:
    with open_index(root, state=False) as index:
        query = "SELECT chunk_id, model FROM embeddings ORDER BY chunk_id"
        return index.conn.execute(query).fetchall()


def test_a_rebuild_counts_what_it_indexed_and_lists_what_it_skipped(root: str) -> None:
    write_file(root, C, page("The limit is 11."))
    link = f'<link rel="memhtml-supports" href="/{A}">\n'
    write_file(root, OLD_A, page("The limit is 11.", head=link))
    write_file(root, "areas/none.html", "<p>none</p>")
    commit(root)
    done = anew(root)
    assert done == RebuildReport(tip(root), 3, 3, 1, 0, 0, done.skipped)
    assert [path for path, _reason in done.skipped] == [C, "areas/none.html"]
    assert done.skipped[0][1] == f"duplicate content of {A}"
    assert full_text(root)


def full_text(root: str) -> bool:
    with open_index(root) as index:
        return full_text_is_whole(index.conn)


def test_a_second_rebuild_gives_the_same_rows(root: str) -> None:
    anew(root)
    with open_index(root) as index:
        before = content(index.conn)
    anew(root)
    with open_index(root) as index:
        assert content(index.conn) == before


def test_a_rebuild_reads_the_commit_and_not_the_working_tree(root: str) -> None:
    write_file(root, A, page("The limit is 12."))
    refresh(root)
    anew(root)
    assert claims(root)[A] == "The limit is 11."
    assert state_of(root).dirty_paths == ()


def test_a_rebuild_leaves_indexes_and_triggers_as_the_migrations_make_them(root: str) -> None:
    def schema() -> list[tuple[str, ...]]:
        with open_index(root) as index:
            query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY 1, 2"
            return index.conn.execute(query).fetchall()

    anew(root)
    rebuilt = schema()
    for suffix in ("", "-wal", "-shm"):
        Path(files.index_path(root) + suffix).unlink(missing_ok=True)
    assert rebuilt == schema()


def test_a_rebuild_touches_neither_accesses_nor_conversations(root: str) -> None:
    with open_index(root) as index:
        bump(index.conn, [A], "neutral", 1_790_000_000)
        link = "INSERT INTO memory_session_links VALUES(?, 's', NULL, NULL, 'read', 'then')"
        index.conn.execute(link, (A,))
    anew(root)
    with open_index(root) as index:
        assert index.conn.execute("SELECT path FROM state.access").fetchall() == [(A,)]
        assert index.conn.execute("SELECT path FROM memory_session_links").fetchall() == [(A,)]


def test_a_rebuild_touches_nothing_outside_the_local_folder(root: str) -> None:
    before = git(root, "status", "--porcelain"), tip(root), os.listdir(root)
    anew(root)
    assert (git(root, "status", "--porcelain"), tip(root), os.listdir(root)) == before


def test_mined_edges_go_with_a_rebuild(root: str) -> None:
    with open_index(root) as index:
        index.conn.execute(
            "INSERT INTO edges VALUES(?, 'supports', ?, 'memory', 1, 0.5, 'm', '', '', '')", (A, B)
        )
    assert anew(root).edges_indexed == 0


def test_a_branch_without_a_commit_has_an_empty_index(tmp_path: Path) -> None:
    root = str(tmp_path)
    git(root, "init", "-q")
    assert anew(root) == RebuildReport(None, 0, 0, 0, 0, 0, ())
    with open_index(root) as index:
        assert read_state(index.conn) is None


def test_readers_see_rows_or_none_while_a_rebuild_runs_and_never_a_failure(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BATCH_ROWS", 1)
    seen: list[tuple[int, str | None]] = []
    whole = Rows.insert

    def look() -> None:
        with open_index(root) as index:
            count = index.conn.execute("SELECT count(*) FROM files").fetchone()[0]
            index.conn.execute("SELECT * FROM files_fts WHERE files_fts MATCH 'limit'").fetchall()
            state = read_state(index.conn)
            assert state is not None
            seen.append((count, state.head_sha))

    def insert(self: Rows, conn: sqlite3.Connection) -> None:
        look()
        whole(self, conn)

    monkeypatch.setattr(Rows, "insert", insert)
    anew(root)
    assert seen == [(0, None), (1, None)]
    look()
    assert seen[-1] == (2, tip(root))


@pytest.mark.parametrize("wide", [False, True])
def test_a_search_finds_what_is_there_while_a_rebuild_runs(
    root: str, monkeypatch: pytest.MonkeyPatch, wide: bool
) -> None:
    monkeypatch.setattr(bulk, "BATCH_ROWS", 1)
    if wide:  # As a scope of many files is.
        monkeypatch.setattr(scope, "NARROW", 0)
    found: list[int] = []
    whole = Rows.insert

    def insert(self: Rows, conn: sqlite3.Connection) -> None:
        whole(self, conn)
        for asked in (Scope(), Scope(("semantic", "arc")), Scope(include_archived=True)):
            with open_index(root) as index:
                found.append(len(search(index, "limit", asked, now_s=0.0)["hits"]))
                recall(index, "limit", asked, now_s=0.0)

    monkeypatch.setattr(Rows, "insert", insert)
    anew(root)
    assert found == [0, 0, 0, 1, 1, 1]  # What is committed before each look.


def test_a_commit_that_lands_during_a_rebuild_is_taken_along(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bulk.build

    def build(*given: object, **named: object) -> object:
        done = whole(*given, **named)  # type: ignore[arg-type]
        write_file(root, C, page("Just in time."))
        commit(root)
        return done

    monkeypatch.setattr(bulk, "build", build)
    assert anew(root).head_sha == tip(root)
    assert claims(root)[C] == "Just in time."


# Damage.


def test_garbage_is_moved_aside_and_built_anew(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(files.index_path(root)).write_bytes(b"garbage " * 100)
    assert anew(root).files_indexed == 2
    assert "moved aside" in capsys.readouterr().err
    assert Path(files.aside_path(root)).read_bytes() == b"garbage " * 100
    assert git(root, "status", "--porcelain") == ""


def test_an_index_whose_state_row_does_not_decode_is_built_anew(root: str) -> None:
    with open_index(root) as index:
        index.conn.execute("UPDATE index_state SET dirty_paths = 'no list'")
    assert anew(root).files_indexed == 2
    assert refresh(root).unchanged


def test_whatever_is_flipped_a_rebuild_brings_the_whole_index_back(root: str) -> None:
    anew(root)
    with open_index(root) as index:
        expected = {**content(index.conn), "embeddings": []}
    path = Path(files.index_path(root))
    whole = path.read_bytes()
    chance = random.Random(11)
    for flips in (1, 5, 60) * 10:
        data = bytearray(whole)
        for _ in range(flips):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        path.write_bytes(data)
        anew(root, force=True)
        with open_index(root) as index:
            assert content(index.conn) == expected
            assert full_text_is_whole(index.conn)
            assert index.conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# Vectors.


def test_a_rebuild_embeds_and_a_second_one_keeps_the_vectors(root: str) -> None:
    embedder = HashedEmbedder()
    first, second = anew(root, embedder), anew(root, embedder)
    assert (first.embeddings_written, first.embeddings_preserved) == (2, 0)
    assert (second.embeddings_written, second.embeddings_preserved) == (0, 2)
    assert state_of(root).embed_model == "hash@256"
    assert state_of(root).embed_dim == 256


def test_vectors_of_texts_that_are_gone_are_deleted_by_a_rebuild(root: str) -> None:
    embedder = HashedEmbedder()
    anew(root, embedder)
    write_file(root, A, page("The limit is 12."))
    commit(root)
    refresh(root, embedder)
    assert len(vectors(root)) == 3
    done = anew(root, embedder)
    assert (done.embeddings_written, done.embeddings_preserved) == (0, 2)
    assert len(vectors(root)) == 2


def test_a_moved_file_keeps_its_vector(root: str) -> None:
    anew(root, HashedEmbedder())
    before = vectors(root)
    os.replace(f"{root}/{A}", f"{root}/{C}")
    commit(root)
    assert refresh(root, HashedEmbedder()).embeddings_written == 0
    assert vectors(root) == before


def test_a_rebuild_that_embeds_changes_the_space(root: str) -> None:
    anew(root, HashedEmbedder())
    done = anew(root, Fixed(other=(1.0, 0.0)))
    assert (done.embeddings_written, done.embeddings_preserved) == (2, 0)
    assert state_of(root).embed_model == "fixed@2"
    assert {model for _chunk, model in vectors(root)} == {"fixed@2"}


def test_a_model_that_does_not_answer_changes_no_space_and_costs_no_vector(root: str) -> None:
    anew(root, HashedEmbedder())
    before = vectors(root)
    with pytest.raises(MemhtmlError) as caught:
        anew(root, Fixed(other=(1.0, 0.0), failing="no weights"))
    assert caught.value.code == "ERR_EMBED_MODEL_MISMATCH"
    assert vectors(root) == before
    assert claims(root) != {}


def test_a_failing_model_of_the_same_space_keeps_what_is_there(root: str) -> None:
    anew(root, Fixed(other=(1.0, 0.0)))
    write_file(root, C, page("The host is new."))
    commit(root)
    done = anew(root, Fixed(other=(1.0, 0.0), failing="no weights"))
    assert (done.embeddings_written, done.embeddings_preserved) == (0, 2)


@pytest.mark.parametrize("embedder", [None, HashedEmbedder()])
def test_vectors_are_not_risked_by_a_call_that_can_write_none(
    root: str, embedder: HashedEmbedder | None
) -> None:
    anew(root, HashedEmbedder())
    with pytest.raises(MemhtmlError) as caught:
        anew(root, embedder, embed=False)
    assert caught.value.code == "ERR_REBUILD_NO_EMBED_REFUSED"
    assert caught.value.suggestions == (
        EMBED,
        "memhtml index rebuild --no-embed --force",
        "memhtml index embed",
    )
    done = anew(root, embedder, embed=False, force=True)
    assert done.embeddings_preserved == 2
    assert state_of(root).embed_model == "hash@256"


def test_an_index_without_vectors_is_rebuilt_without_an_embedder(root: str) -> None:
    assert anew(root, None).files_indexed == 2
    assert anew(root, HashedEmbedder(), embed=False).embeddings_written == 0


def test_another_space_is_refused_before_anything_is_emptied(root: str) -> None:
    anew(root, HashedEmbedder())
    for force in (False, True):
        with pytest.raises(MemhtmlError) as caught:
            anew(root, Fixed(), embed=False, force=force)
        assert caught.value.code == "ERR_EMBED_MODEL_MISMATCH"
        assert caught.value.suggestions == (EMBED,)
    assert len(claims(root)) == 2
    assert len(vectors(root)) == 2


def test_an_update_in_another_space_is_refused_with_or_without_vectors_to_write(
    root: str,
) -> None:
    anew(root, HashedEmbedder())
    for embed in (True, False):
        with pytest.raises(MemhtmlError) as caught:
            refresh(root, Fixed(), embed=embed)
        assert caught.value.code == "ERR_EMBED_MODEL_MISMATCH"
        assert caught.value.suggestions == (EMBED,)
    write_file(root, A, page("The limit is 12."))
    commit(root)
    assert refresh(root, None).modified == 1


def test_a_doors_pass_in_another_space_writes_rows_and_no_vector(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    anew(root, HashedEmbedder())
    write_file(root, C, page("The host is new."))
    commit(root)
    follow.bring_forward(root, Repo(root), Fixed())
    assert C in claims(root)
    assert {model for _chunk, model in vectors(root)} == {"hash@256"}
    assert "no vectors are written" in capsys.readouterr().err


def test_vectors_outlive_a_visit_to_a_branch_without_a_commit(root: str) -> None:
    anew(root, HashedEmbedder())
    git(root, "checkout", "-q", "--orphan", "bare")
    git(root, "rm", "-rfq", "--cached", "areas")
    assert refresh(root).head_sha is None
    git(root, "checkout", "-qf", "main")
    assert refresh(root).added == 2
    assert len(vectors(root)) == 2
    assert state_of(root).embed_model == "hash@256"


def test_an_update_embeds_only_what_it_wrote(root: str) -> None:
    embedder = Fixed(other=(1.0, 0.0))
    write_file(root, C, page("The host is new."))
    commit(root)
    assert refresh(root, embedder).embeddings_written == 1
    assert embedder.asked == [["The host is new."]]
    assert state_of(root).embed_model == "fixed@2"
