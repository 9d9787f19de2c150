"""Filling the vector cache: each article once, every slice kept (spec `retrieval` §20.2)."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.embed import Fixed
from tests.support.head import MAIN, Store, page
from tests.support.session import in_child

from memhtml.embed.cache import Filling, cache_path, open_cache
from memhtml.embed.port import ModelUnavailable
from memhtml.errors import StorageError
from memhtml.retrieve import head_fill
from memhtml.retrieve.head_fill import fill
from memhtml.store.snapshot import write_snapshot

if TYPE_CHECKING:
    from memhtml.embed.port import Vector


def pages(numbers: Sequence[int]) -> dict[str, bytes]:
    return {f"areas/n{at:03}.html": page("N", f"Fact number {at}.") for at in numbers}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Thirty live records, ten to a slice."""
    monkeypatch.setattr(head_fill, "TEXTS_A_SLICE", 10)
    made = Store(str(tmp_path))
    sha = made.commit(pages(range(30)))
    write_snapshot(made.root, MAIN, sha, made.repo())
    return made


def tip(store: Store) -> str:
    return str(store.git.references[MAIN].target)


def run(
    store: Store, embedder: Fixed, sha: str = "", progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    return fill(
        store.root,
        MAIN,
        sha or tip(store),
        repo=store.repo(),
        embedder=embedder,
        progress=progress or (lambda _done, _total: None),
    )


def count(store: Store) -> int:
    cache = open_cache(store.root, "fixed", 2)
    if cache is None:
        return 0
    with cache:
        return cache.count


def test_every_live_article_is_embedded_once_in_slices(store: Store) -> None:
    twins = {f"projects/p/{at}.html": page("Twin", "Fact number 3.") for at in range(4)}
    store.commit({**pages(range(30)), **twins, "archive/2026/a.html": page("A", "Archived.")})
    model, seen = Fixed(), []
    found = run(store, model, progress=lambda done, total: seen.append((done, total)))
    assert [len(texts) for texts in model.asked] == [10, 10, 10]
    texts = {text for asked in model.asked for text in asked}
    assert texts == {f"Fact number {at}." for at in range(30)}
    assert seen[-1] == (34, 34) and seen == sorted(seen)
    counts = ("records", "reused", "embedded", "empty", "cached", "written")
    assert [found[name] for name in counts] == [34, 0, 30, 0, 30, True]
    again = run(store, model)
    assert [again[name] for name in counts] == [34, 34, 0, 0, 30, False]
    assert len(model.asked) == 3


def test_only_the_start_of_a_long_article_is_embedded(store: Store) -> None:
    store.commit({"areas/long.html": page("L", "It is long.", body=f"<p>{'word ' * 1000}</p>")})
    model = Fixed()
    run(store, model)
    assert [len(text) for text in model.asked[0]] == [1800]
    assert model.asked[0][0].startswith("It is long. word word")


def test_old_vectors_stay_when_records_go(store: Store) -> None:
    run(store, Fixed())
    store.commit(pages(range(25, 40)))
    found = run(store, Fixed())
    assert (found["reused"], found["embedded"], found["cached"]) == (5, 10, 40)


def test_a_model_that_fails_half_way_leaves_its_slices_and_the_next_run_goes_on(
    store: Store,
) -> None:
    class Tiring(Fixed):
        def embed(self, texts: Sequence[str]) -> list[Vector]:
            if len(self.asked) == 2:
                raise ModelUnavailable(self.model_id, "tired")
            return super().embed(texts)

    with pytest.raises(ModelUnavailable):
        run(store, Tiring())
    assert count(store) == 20
    found = run(store, Fixed())
    assert (found["reused"], found["embedded"]) == (20, 10)


def test_vectors_of_another_width_are_not_stored(store: Store) -> None:
    with pytest.raises(ModelUnavailable):
        run(store, Fixed(documents={"Fact number 7.": (1.0, 2.0, 3.0)}))
    assert count(store) == 0


def test_a_killed_run_leaves_whole_slices_and_the_next_run_goes_on(store: Store) -> None:
    class Killing(Fixed):
        def embed(self, texts: Sequence[str]) -> list[Vector]:
            if len(self.asked) == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().embed(texts)

    def act() -> None:
        run(store, Killing())

    assert in_child(act) == -signal.SIGKILL
    assert count(store) == 10
    assert run(store, Fixed())["embedded"] == 20


def test_two_runs_at_once_store_each_vector_once(store: Store) -> None:
    children = []
    for _child in range(2):
        pid = os.fork()
        if pid == 0:
            run(store, Fixed(pause_s=0.02))
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
    assert count(store) == 30


def test_the_database_is_free_while_the_model_works(store: Store) -> None:
    class Checkpointing(Fixed):
        def embed(self, texts: Sequence[str]) -> list[Vector]:
            conn = sqlite3.connect(store.database(), isolation_level=None)
            conn.execute("CREATE TABLE IF NOT EXISTS scratch(x)")
            busy, _log, _done = conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            conn.close()
            folded.append(busy == 0)
            return super().embed(texts)

    folded: list[bool] = []
    run(store, Checkpointing())
    assert folded == [True, True, True]


def test_a_run_sticks_to_its_version_while_the_branch_moves_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memhtml.store.snapshot_query._PAGE", 12)
    first = tip(store)

    class Moving(Fixed):
        def embed(self, texts: Sequence[str]) -> list[Vector]:
            # Odd ones go, others come; the database follows.
            after = pages([*range(0, 30, 2), *range(100 + len(self.asked), 110)])
            sha = store.commit(after, tip(store))
            write_snapshot(store.root, MAIN, sha, store.repo())
            return super().embed(texts)

    model = Moving()
    found = run(store, model, first)
    assert (found["records"], found["embedded"]) == (30, 30)
    texts = sorted(text for asked in model.asked for text in asked)
    assert texts == sorted(f"Fact number {at}." for at in range(30))


def test_a_store_whose_database_cannot_be_kept_is_read_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memhtml.store import snapshot

    monkeypatch.setattr("memhtml.store.snapshot_query._PAGE", 12)
    monkeypatch.setattr(snapshot, "_settle", lambda *_given, **_named: None)
    built: list[str] = []
    real = snapshot.private_database

    def noted(ref: str, sha: str, repo: Any) -> Any:
        built.append(sha)
        return real(ref, sha, repo)

    monkeypatch.setattr(snapshot, "private_database", noted)
    assert run(store, Fixed())["embedded"] == 30
    assert built == [tip(store)]


def test_a_cache_that_is_none_stops_the_run_before_any_text_is_embedded(store: Store) -> None:
    place = Path(cache_path(store.root, "fixed", 2))
    place.parent.mkdir(parents=True)
    place.write_bytes(b"mine\n")
    model = Fixed()
    with pytest.raises(StorageError) as caught:
        run(store, model)
    assert (caught.value.reason, model.asked) == ("vectors.read", [])


def test_an_article_without_text_is_counted_and_has_no_vector(tmp_path: Path) -> None:
    model = Fixed()
    work = head_fill._Work(model, Filling(str(tmp_path), "fixed", 2))
    work.take([("areas/a.html", b"\x01" * 32, "")], lambda _done: None)
    work.store()
    assert (work.records, work.empty, work.embedded, model.asked) == (1, 1, 0, [])


def test_an_empty_version_makes_no_cache(store: Store) -> None:
    store.commit({"README.html": b"<p>no record</p>"})
    found = run(store, Fixed())
    assert (found["records"], found["cached"], found["bytes"], found["written"]) == (0, 0, 0, False)
    assert not os.path.exists(found["path"])
