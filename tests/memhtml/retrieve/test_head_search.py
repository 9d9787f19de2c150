"""Head search with both arms, and why the vector arm may not run (spec `retrieval` §20)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.embed import Fixed, vector
from tests.support.head import MAIN, Store, page

from memhtml.corpus.head import Head, open_head
from memhtml.corpus.layers import Layers
from memhtml.embed.cache import Filling, cache_path, open_cache
from memhtml.retrieve.head_search import Searched, search, search_near, unused
from memhtml.retrieve.nearest import nearest
from memhtml.store.snapshot import write_snapshot

LIVE = {
    "areas/relay.html": page("Relay", "The relay sends eleven at a time."),
    "areas/roses.html": page("Gardens", "Roses need water."),
    "areas/fence.html": page("Painting", "Fences are painted.", updated="2026-04-01T00:00:00Z"),
}
FILES = {**LIVE, "archive/2026/areas/old.html": page("Relay", "The relay was slow.")}
EAST, NORTH, WEST = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)
NORTH_EAST = (1.0, 1.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(str(tmp_path))
    sha = made.commit(FILES)
    write_snapshot(made.root, MAIN, sha, made.repo())
    return made


def opened(store: Store) -> Head:
    sha = str(store.git.references[MAIN].target)
    return open_head(store.root, MAIN, sha, repo=store.repo())


def digest(data: bytes) -> bytes:
    from memhtml_format.record import read

    record = read("areas/x.html", data).record
    assert record is not None
    return bytes.fromhex(record.content_hash.removeprefix("sha256:"))


def cached(store: Store, vectors: dict[str, Sequence[float]], files: Any = FILES) -> None:
    hashes = [digest(files[path]) for path in vectors]
    rows = [vector(*numbers) for numbers in vectors.values()]
    Filling(store.root, "fixed", len(rows[0])).append(hashes, rows)


def run(store: Store, view: Layers, query: str, embedder: Fixed | None, **more: Any) -> Searched:
    given: dict[str, Any] = {"deadline_ms": 0, "limit": 10, **more}
    return search(store.root, view, query, embedder=embedder, **given)


def paths(found: Searched) -> list[str]:
    return [hit.path for hit in found.hits[0]]


def test_without_an_embedder_words_alone_rank(store: Store) -> None:
    with opened(store) as head:
        found = run(store, head, "relay", None)
    assert paths(found) == ["areas/relay.html"]
    assert found.vector == {
        "used": False,
        "reason": "embedder-off",
        "detail": None,
        "cached": None,
        "coverage": None,
        "loadMs": None,
        "embedMs": None,
    }


def test_without_a_cache_the_model_is_not_asked(store: Store) -> None:
    model = Fixed()
    with opened(store) as head:
        found = run(store, head, "relay", model)
    assert (paths(found), model.asked) == (["areas/relay.html"], [])
    assert found.vector == unused("no-cache")


def test_meaning_finds_what_words_do_not(store: Store) -> None:
    cached(store, {"areas/relay.html": EAST, "areas/roses.html": NORTH_EAST})
    model = Fixed({"size of a batch": EAST})
    with opened(store) as head:
        found = run(store, head, "size of a batch", model)
    assert [(hit.path, hit.score, hit.arms) for hit in found.hits[0]] == [
        ("areas/relay.html", 1 / 61, ("vector",)),
        ("areas/roses.html", 1 / 62, ("vector",)),
    ]
    assert found.hits[0][0].claim == "The relay sends eleven at a time."
    report = found.vector
    assert (report["used"], report["reason"], report["cached"]) == (True, None, 2)
    assert report["coverage"] == pytest.approx(2 / 3)
    assert report["loadMs"] >= 0 and report["embedMs"] >= 0


def test_both_arms_add_up(store: Store) -> None:
    cached(store, {"areas/relay.html": EAST, "areas/roses.html": NORTH})
    with opened(store) as head:
        found = run(store, head, "roses relay", Fixed({"roses relay": NORTH_EAST}))
        only = run(store, head, "roses", Fixed({"roses": NORTH}))
    assert {(hit.path, hit.arms) for hit in found.hits[0]} == {
        ("areas/relay.html", ("lexical", "vector")),
        ("areas/roses.html", ("lexical", "vector")),
    }
    assert only.hits[0][0].score == 2 / 61


def test_a_vector_with_nothing_in_common_ranks_nothing(store: Store) -> None:
    cached(store, {"areas/relay.html": WEST, "areas/roses.html": NORTH, "areas/fence.html": (0, 0)})
    with opened(store) as head:
        assert paths(run(store, head, "zz", Fixed({"zz": EAST}))) == []
        assert paths(run(store, head, "zz", Fixed({"zz": (0.0, 0.0)}))) == []


def test_archived_and_forgotten_articles_are_not_found_by_their_vectors(store: Store) -> None:
    cached(store, {path: EAST for path in FILES})
    Filling(store.root, "fixed", 2).append([b"\x00" * 32, b"\xff" * 32], [vector(1, 0)] * 2)
    with opened(store) as head:
        found = run(store, head, "zz", Fixed({"zz": EAST}))
    assert set(paths(found)) == set(LIVE)
    assert (found.vector["cached"], found.vector["coverage"]) == (6, 1.0)


def test_records_with_one_article_share_its_vector(store: Store) -> None:
    twin = {**FILES, "projects/p/twin.html": LIVE["areas/relay.html"]}
    store.commit(twin)
    cached(store, {"areas/relay.html": EAST})
    with opened(store) as head:
        found = run(store, head, "zz", Fixed({"zz": EAST}))
    assert paths(found) == ["areas/relay.html", "projects/p/twin.html"]
    assert {hit.score for hit in found.hits[0]} == {1 / 61}
    assert found.vector["coverage"] == 0.5


def test_the_log_of_a_session_is_ranked_by_its_vectors_too(store: Store) -> None:
    new = page("New", "A new fact about something.")
    cached(store, {"areas/relay.html": EAST, "areas/roses.html": EAST})
    cached(store, {"areas/new.html": NORTH_EAST}, {"areas/new.html": new})
    model = Fixed({"zz": EAST})
    with opened(store) as head:
        view = head.view({"areas/new.html": new}, ["areas/relay.html"])
        found = run(store, view, "zz", model)
        assert paths(found) == ["areas/roses.html", "areas/new.html"]
        assert found.vector["coverage"] == pytest.approx(2 / 3)
        assert paths(run(store, head, "zz", model)) == ["areas/relay.html", "areas/roses.html"]


def test_forty_are_kept_lowest_paths_first_when_all_tie(store: Store) -> None:
    files = {f"areas/t{at:02}.html": page("Tie", f"Zebra number {at}.") for at in range(50)}
    store.commit(files)
    cached(store, {path: EAST for path in reversed(files)}, files)
    with opened(store) as head:
        found = run(store, head, "zz", Fixed({"zz": NORTH_EAST}), limit=100)
        assert paths(run(store, head, "zz", Fixed({"zz": EAST}), limit=-1)) == []
    assert paths(found) == sorted(files)[:40]
    assert {(hit.score, hit.arms) for hit in found.hits[0]} == {(1 / 61, ("recency", "vector"))}


@pytest.mark.parametrize(
    ("model", "detail"),
    [
        (Fixed(failing="the endpoint answered 503"), "the endpoint answered 503"),
        (Fixed({"relay": (1.0, 0.0, 0.0)}), "it gave vectors of another number or width"),
        (Fixed({"relay": (float("nan"), 1.0)}), "it gave a number that is not finite"),
    ],
)
def test_a_model_that_fails_costs_the_arm_and_not_the_search(
    model: Fixed, detail: str, store: Store
) -> None:
    cached(store, {"areas/relay.html": EAST})
    with opened(store) as head:
        found = run(store, head, "relay", model)
    assert paths(found) == ["areas/relay.html"]
    assert found.hits[0][0].arms == ("lexical",)
    embed_ms = found.vector["embedMs"]
    assert found.vector == unused("embed-failed", detail, embed_ms=embed_ms)
    assert embed_ms >= 0


def test_a_query_vector_is_not_waited_for_past_the_deadline(store: Store) -> None:
    cached(store, {"areas/relay.html": EAST})
    with opened(store) as head:
        started = time.monotonic()
        found = run(store, head, "relay", Fixed(pause_s=5.0), deadline_ms=30)
        assert time.monotonic() - started < 3
    assert paths(found) == ["areas/relay.html"]
    assert found.vector["reason"] == "embed-timeout"
    assert found.vector["detail"] == "no vector within 30 ms"
    assert found.vector["embedMs"] >= 30


@pytest.mark.parametrize("deadline_ms", [0, 10_000, 10**18 - 1])
def test_a_vector_in_time_is_used(deadline_ms: int, store: Store) -> None:
    cached(store, {"areas/relay.html": EAST})
    with opened(store) as head:
        model = Fixed({"zz": EAST}, pause_s=0.01)
        found = run(store, head, "zz", model, deadline_ms=deadline_ms)
    assert paths(found) == ["areas/relay.html"]


def test_a_process_ends_although_its_model_never_answers(tmp_path: Path) -> None:
    program = (
        "import time; from memhtml.embed.bounded import *\n"
        "class Stuck:\n    def embed_query(self, text): time.sleep(600)\n"
        "try: embed_query(Stuck(), 'a', 20)\n"
        "except DeadlinePassed as e: print(e)\n"
    )
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, timeout=60, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, "no vector within 20 ms\n")


def test_a_cache_that_is_none_is_named_and_not_read(store: Store) -> None:
    place = Path(cache_path(store.root, "fixed", 2))
    place.parent.mkdir(parents=True)
    place.write_bytes(b"not a cache\n")
    with opened(store) as head:
        found = run(store, head, "relay", Fixed())
    assert paths(found) == ["areas/relay.html"]
    assert found.vector["reason"] == "cache-unreadable"
    assert str(place) in found.vector["detail"]


def test_a_foreign_cache_with_odd_numbers_breaks_nothing(store: Store) -> None:
    odd: dict[str, Sequence[float]] = {
        "areas/relay.html": (float("nan"), 1.0),
        "areas/roses.html": (float("inf"), 1.0),
        "areas/fence.html": (3e38, 3e38),
    }
    cached(store, odd)
    with opened(store) as head:
        found = run(store, head, "relay", Fixed({"relay": NORTH_EAST}))
    assert paths(found)[0] == "areas/relay.html"
    assert found.vector["used"] is True


def test_neighbours_are_near_the_text_of_the_new_record(store: Store) -> None:
    cached(store, {"areas/relay.html": EAST, "areas/roses.html": NORTH})
    texts = ["A batch has eleven messages.", "Plants drink." + "x" * 3000]
    model = Fixed(documents={texts[0]: EAST, texts[1][:1800]: NORTH})
    with opened(store) as head:
        found = search_near(store.root, head, ["one", "two"], texts, 1, embedder=model)
    assert [[hit.path for hit in hits] for hits in found.hits] == [
        ["areas/relay.html"],
        ["areas/roses.html"],
    ]
    assert model.asked == [[texts[0], texts[1][:1800]]]
    assert found.vector["used"] is True


def test_no_new_record_has_no_neighbours(store: Store) -> None:
    cached(store, {"areas/relay.html": EAST})
    with opened(store) as head:
        assert search_near(store.root, head, [], [], 3, embedder=Fixed()).hits == []
        assert search_near(store.root, head, [], [], 3, embedder=None).hits == []


def test_slices_and_stale_vectors_change_no_result(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"areas/n{at:03}.html": page("N", f"Fact number {at}.") for at in range(120)}
    store.commit(files)
    numbers = np.random.default_rng(7).normal(size=(120, 2))
    cached(store, {path: row for path, row in zip(files, numbers, strict=True)}, files)
    stale = [os.urandom(32) for _ in range(300)]
    Filling(store.root, "fixed", 2).append(stale, [vector(1, 0.1)] * 300)
    with opened(store) as head:
        cache = open_cache(store.root, "fixed", 2)
        assert cache is not None
        with cache:
            whole = nearest(head, cache, [vector(1, 0.2)])
            monkeypatch.setattr("memhtml.embed.cache.SLICE_BYTES", 40 * 7)
            assert nearest(head, cache, [vector(1, 0.2)]) == whole
    unit = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    wanted = np.array([1, 0.2]) / np.linalg.norm([1, 0.2])
    order = np.argsort(-(unit @ wanted), kind="stable")[:40]
    assert [match.path for match in whole.matches[0]] == [list(files)[at] for at in order]
    assert whole.coverage == 1.0


NAMES = st.sampled_from([f"areas/{name}.html" for name in "abcdef"])
CLAIMS = st.integers(0, 5)


@given(
    base=st.dictionaries(NAMES, CLAIMS, min_size=1),
    log=st.dictionaries(NAMES, CLAIMS),
    gone=st.sets(NAMES),
    known=st.sets(CLAIMS),
)
def test_coverage_and_candidates_are_those_of_the_view(
    base: dict[str, int],
    log: dict[str, int],
    gone: set[str],
    known: set[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    store = Store(str(tmp_path_factory.mktemp("view")))
    pages = {number: page("T", f"Claim {number}.") for number in range(6)}
    store.commit({path: pages[number] for path, number in base.items()})
    Filling(store.root, "fixed", 2).append(
        [digest(pages[number]) for number in known], [vector(1, number) for number in known]
    )
    Filling(store.root, "fixed", 2).append([b"\x07" * 32], [vector(1, 0)])
    with opened(store) as head:
        view = head.view({path: pages[number] for path, number in log.items()}, gone)
        cache = open_cache(store.root, "fixed", 2)
        assert cache is not None
        with cache:
            found = nearest(view, cache, [vector(1, 0)])
    there = {path: n for path, n in base.items() if path not in gone} | log
    having = sorted((n, path) for path, n in there.items() if n in known)
    assert [match.path for match in found.matches[0]] == [path for _number, path in having]
    assert found.coverage == (len(having) / len(there) if there else 0.0)
