"""Filling in vectors: resumable, in slices, never fatal; and how much is covered."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.support.embed import Fixed
from tests.support.index import AT, detail

from memhtml.embed.port import ModelUnavailable
from memhtml.errors import MemhtmlError
from memhtml.index import vectors
from memhtml.index.database import open_index
from memhtml.index.filling import embed
from memhtml.index.projection import write_detail
from memhtml.index.vectors import coverage, fill, missing, share

if TYPE_CHECKING:
    from memhtml.embed.port import Vector

PATHS = [f"areas/n{number:02}.html" for number in range(10)]


class FailsAfter(Fixed):
    """An embedder that answers some calls and then no more."""

    def __init__(self, calls: int) -> None:
        super().__init__(other=(3.0, 4.0))
        self.left = calls

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.left -= 1
        if self.left < 0:
            raise ModelUnavailable(self.model_id, "gone")
        return super().embed(texts)


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with open_index(str(tmp_path), state=False) as index:
        index.conn.execute("INSERT INTO index_state(id, head_sha) VALUES(1, 'h')")
        for number, path in enumerate(PATHS):
            write_detail(index.conn, detail(path, claim=f"Number {number}."), at=AT)
        yield index.conn


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "SLICE_CHUNKS", 4)
    monkeypatch.setattr(vectors, "_CALL_TEXTS", 2)


def stored(conn: sqlite3.Connection) -> list[str]:
    query = "SELECT chunk_id FROM embeddings ORDER BY rowid"
    return [chunk for (chunk,) in conn.execute(query)]


def test_every_chunk_gets_its_vector_in_the_order_of_ids(conn: sqlite3.Connection) -> None:
    embedder = Fixed(other=(3.0, 4.0))
    assert fill(conn, embedder) == 10
    ids = [chunk for (chunk,) in conn.execute("SELECT chunk_id FROM chunks ORDER BY chunk_id")]
    assert stored(conn) == ids
    assert max(len(texts) for texts in embedder.asked) == 2
    row = conn.execute("SELECT model, dim, vec FROM embeddings").fetchone()
    assert row == ("fixed@2", 2, np.array([3, 4], dtype="<f4").tobytes())
    assert conn.execute("SELECT embed_model, embed_dim FROM index_state").fetchone() == (
        "fixed@2",
        2,
    )


def test_a_second_run_asks_for_nothing(conn: sqlite3.Connection) -> None:
    fill(conn, Fixed())
    embedder = Fixed()
    assert fill(conn, embedder) == 0
    assert embedder.asked == []


def test_a_failure_keeps_what_was_made_and_the_next_run_goes_on(
    conn: sqlite3.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fill(conn, FailsAfter(3)) == 6
    assert "embedding stopped: fixed: gone" in capsys.readouterr().err
    before = stored(conn)
    embedder = FailsAfter(100)
    assert fill(conn, embedder) == 4
    assert stored(conn)[:6] == before
    assert missing(conn, "fixed@2") == 0


def test_each_slice_is_stored_before_the_next_is_embedded(
    conn: sqlite3.Connection, tmp_path: Path
) -> None:
    seen: list[int] = []

    class Watching(Fixed):
        def embed(self, texts: Sequence[str]) -> list[Vector]:
            with open_index(str(tmp_path), state=False) as index:
                seen.append(len(stored(index.conn)))
            return super().embed(texts)

    fill(conn, Watching())
    assert seen == [0, 0, 4, 4, 8]


@pytest.mark.parametrize("answer", [[], [(1.0,)], [(1.0, 2.0), (1.0, 2.0), (1.0, 2.0)]])
def test_vectors_of_another_count_or_width_are_a_failure(
    conn: sqlite3.Connection, answer: list[tuple[float, ...]]
) -> None:
    class Wrong(Fixed):
        def embed(self, texts: Sequence[str]) -> list[Vector]:
            return [np.array(each, dtype=np.float32) for each in answer]

    assert fill(conn, Wrong()) == 0
    assert stored(conn) == []


def test_only_the_given_paths_are_embedded(conn: sqlite3.Connection) -> None:
    embedder = Fixed()
    assert fill(conn, embedder, [PATHS[2], PATHS[3], "areas/unknown.html"]) == 2
    assert sorted(text for texts in embedder.asked for text in texts) == ["Number 2.", "Number 3."]
    assert fill(conn, embedder, []) == 0


def test_more_paths_than_one_statement_takes_are_embedded(
    conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_PATHS", 3)
    assert missing(conn, "fixed@2", PATHS) == 10
    assert fill(conn, Fixed(), PATHS) == 10


def test_progress_counts_up_to_all_there_is(conn: sqlite3.Connection) -> None:
    seen: list[tuple[int, int]] = []
    fill(conn, Fixed(), None, lambda done, total: seen.append((done, total)))
    assert seen == [(2, 10), (4, 10), (6, 10), (8, 10), (10, 10)]


def test_a_text_that_two_files_share_is_embedded_once(conn: sqlite3.Connection) -> None:
    copy = detail("archive/2026/areas/n00.html", claim="Number 0.")
    write_detail(conn, copy, at=AT)
    assert missing(conn, "fixed@2") == 10
    assert fill(conn, Fixed()) == 10
    assert coverage(conn, "fixed@2") == (11, 11)


def test_vectors_of_another_space_are_written_over_only_when_the_index_changed_space(
    conn: sqlite3.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(conn, Fixed())
    assert fill(conn, Fixed(model_id="other")) == 0
    assert "another model" in capsys.readouterr().err
    conn.execute("UPDATE index_state SET embed_model = 'other@2'")
    assert fill(conn, Fixed(model_id="other")) == 10
    assert coverage(conn, "fixed@2") == (10, 0)


def test_coverage_is_of_one_space(conn: sqlite3.Connection) -> None:
    assert coverage(conn, None) == (10, 0)
    fill(conn, FailsAfter(2))
    assert coverage(conn, "fixed@2") == (10, 4)
    assert coverage(conn, "other@2") == (10, 0)
    assert share(10, 4) == 0.4
    assert share(0, 0) == 1.0


def test_a_vector_whose_text_is_gone_covers_nothing(conn: sqlite3.Connection) -> None:
    fill(conn, Fixed())
    conn.execute("DELETE FROM files WHERE path = ?", (PATHS[0],))
    assert coverage(conn, "fixed@2") == (9, 9)


def test_embed_reports_what_there_is_and_what_is_left(
    conn: sqlite3.Connection, tmp_path: Path
) -> None:
    root = str(tmp_path)
    dry = {
        "mode": "embed",
        "headSha": "h",
        "chunks": 10,
        "embeddings": 0,
        "embeddingsWritten": 0,
        "embeddingsRemaining": 10,
    }
    assert embed(root, Fixed(), dry_run=True) == dry
    assert embed(root, None) == dry
    assert embed(root, FailsAfter(1)) == {
        **dry,
        "embeddings": 2,
        "embeddingsWritten": 2,
        "embeddingsRemaining": 8,
    }
    assert embed(root, None)["embeddingsRemaining"] == 8
    assert embed(root, Fixed())["embeddingsRemaining"] == 0
    with pytest.raises(MemhtmlError) as caught:
        embed(root, Fixed(model_id="other"))
    assert caught.value.code == "ERR_EMBED_MODEL_MISMATCH"
