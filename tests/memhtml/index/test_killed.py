"""A writer of the index that is killed at any moment leaves what the next one puts right."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support.embed import Fixed
from tests.support.index import (
    anew,
    commit,
    content,
    full_text_is_whole,
    index_paths,
    refresh,
    write_file,
)
from tests.support.session import make_store, page

from memhtml.errors import MemhtmlError
from memhtml.index import bulk, database, files, follow
from memhtml.index.database import open_index, open_state
from memhtml.index.state import bump, read_state

FILES = 240
ROUNDS = 12


def texts(version: int) -> dict[str, str]:
    """Version by version a third of the files is edited, and some are moved or equal."""
    found = {}
    for number in range(FILES):
        folder = f"areas/v{version if number % 7 == 0 else 0}"
        said = number // 2 if number % 11 == 0 else number
        claim = f"Fact {said} is {version if number % 3 == 0 else 0}."
        found[f"{folder}/n{number}.html"] = page(claim)
    return found


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with two commits, its index at the first and some accesses counted."""
    root = make_store(str(tmp_path_factory.mktemp("killed") / "store"), texts(0))
    refresh(root)
    with open_index(root) as index:
        bump(index.conn, index_paths(root), "neutral", 1_790_000_000)
    shutil.rmtree(f"{root}/areas")
    for path, text in texts(1).items():
        write_file(root, path, text)
    commit(root)
    return root


@pytest.fixture
def store(versions: str, tmp_path: Path) -> Callable[[], str]:
    """Makes a fresh copy at each call."""
    places = iter(range(1000))

    def copy() -> str:
        target = str(tmp_path / f"store{next(places)}")
        return str(shutil.copytree(versions, target, symlinks=True))

    return copy


@pytest.fixture(autouse=True)
def many_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "BATCH_STEPS", 5)
    monkeypatch.setattr(bulk, "BATCH_ROWS", 5)


def killed(act: Callable[[], object], after_s: float) -> bool:
    """Run `act` in a child that is killed after a while; whether it was still at work."""
    child = multiprocessing.get_context("fork").Process(target=act)
    child.start()
    time.sleep(after_s)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    return child.exitcode == -signal.SIGKILL


def duration_s(act: Callable[[], object]) -> float:
    began = time.monotonic()
    child = multiprocessing.get_context("fork").Process(target=act)
    child.start()
    child.join()
    return time.monotonic() - began


def whole_content(root: str) -> dict[str, list[tuple[object, ...]]]:
    with open_index(root) as index:
        assert full_text_is_whole(index.conn)
        return content(index.conn)


def accesses(root: str) -> list[str]:
    state = open_state(root)
    found = [path for (path,) in state.execute("SELECT path FROM access ORDER BY path")]
    state.close()
    return found


def test_a_killed_update_is_caught_up_with_and_no_access_is_lost(
    store: Callable[[], str],
) -> None:
    first = store()
    whole_s = duration_s(lambda: refresh(first))
    anew(first)
    expected, counted = whole_content(first), accesses(first)
    assert any("/v1/" in path for path in counted)
    chance, hits = random.Random(3), 0
    for _ in range(ROUNDS):
        root = store()
        hits += killed(partial(refresh, root), chance.uniform(0.0, whole_s))
        readable(root)
        refresh(root)
        assert whole_content(root) == expected
        assert accesses(root) == counted
    assert hits


def test_a_killed_rebuild_is_stale_or_whole_and_a_rebuild_puts_it_right(
    store: Callable[[], str],
) -> None:
    root = store()
    whole_s = duration_s(lambda: anew(root))
    expected = whole_content(root)
    chance, stale = random.Random(4), 0
    for _ in range(ROUNDS):
        killed(lambda: anew(root), chance.uniform(0.0, whole_s))
        readable(root)
        try:
            refresh(root)
        except MemhtmlError as error:
            assert error.code == "ERR_INDEX_STALE"
            stale += 1
            anew(root)
        assert whole_content(root) == expected
    assert stale


def test_a_killed_first_open_leaves_a_database_that_opens(store: Callable[[], str]) -> None:
    root = store()
    whole_s = duration_s(lambda: open_index(root).close())
    chance = random.Random(5)
    for _ in range(ROUNDS):
        for name in ("index.db", "index.db-wal", "index.db-shm"):
            Path(f"{root}/.memhtml/{name}").unlink(missing_ok=True)
        killed(lambda: open_index(root).close(), chance.uniform(0.0, whole_s))
        with open_index(root) as index:
            assert read_state(index.conn) is None


def test_a_killed_embedding_goes_on_where_it_was(
    store: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memhtml.index.vectors.SLICE_CHUNKS", 10)
    root = store()
    refresh(root)
    slow = Fixed(other=(1.0, 0.0), pause_s=0.1)
    assert killed(lambda: anew(root, slow), 1.0)
    if stale(root):
        anew(root)
    with open_index(root) as index:
        before = index.conn.execute("SELECT count(*) FROM embeddings").fetchone()[0]
        chunks = index.conn.execute("SELECT count(DISTINCT chunk_id) FROM chunks").fetchone()[0]
    done = anew(root, Fixed(other=(1.0, 0.0)))
    assert (done.embeddings_preserved, done.embeddings_written) == (before, chunks - before)


def stale(root: str) -> bool:
    with open_index(root) as index:
        state = read_state(index.conn)
    return state is not None and state.head_sha is None


def readable(root: str) -> None:
    """Whatever happened, a read answers rows or none."""
    with open_index(root) as index:
        content(index.conn)
        index.conn.execute("SELECT count(*) FROM files_fts WHERE files_fts MATCH 'fact'").fetchone()


def test_a_writer_that_was_killed_keeps_nobody_out(store: Callable[[], str]) -> None:
    root = store()

    def hold() -> None:
        guard = files.hold(root, files.WRITE_LOCK, exclusive=True, wait_s=0)
        assert guard is not None
        with open_index(root) as index:
            index.conn.execute("BEGIN IMMEDIATE")
            time.sleep(60)

    assert killed(hold, 0.3)
    began = time.monotonic()
    refresh(root)
    database.replace(root, "a test")
    assert time.monotonic() - began < follow.WRITER_WAIT_S
