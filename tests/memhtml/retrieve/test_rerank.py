"""The last step over the pool (`memhtml.retrieve.rerank`), alone and inside a search."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.pool import candidate, paths, placed
from tests.support.retrieve import NOW_S, memory, store

from memhtml.embed.hashed import HashedEmbedder
from memhtml.index import vectors
from memhtml.index.database import Index
from memhtml.retrieve.evidence import Evidence, weigh
from memhtml.retrieve.feedback import closeness
from memhtml.retrieve.rerank import rerank
from memhtml.retrieve.scope import Scope
from memhtml.retrieve.search import search
from memhtml.retrieve.stems import stem
from memhtml.retrieve.words import words


@pytest.mark.parametrize("query", ["", "   ", "?!", '""'])
def test_a_query_without_a_word_keeps_the_fused_order(query: str) -> None:
    pool = placed([candidate("b", "x", lexical=1.0), candidate("a", "y", lexical=9.0)])
    assert paths(rerank(query, pool[::-1])) == ["b", "a"]


def test_a_query_that_matches_nothing_keeps_the_fused_order() -> None:
    pool = placed([candidate("b", "one"), candidate("c", "two"), candidate("a", "three")])
    assert paths(rerank("zebra", pool)) == ["b", "c", "a"]


def test_a_clear_winner_of_the_words_beats_what_is_only_new() -> None:
    new = [candidate(f"n{number}", f"Note {number} on lunch.") for number in range(9)]
    pool = placed([*new, candidate("hit", "The relay limit is 11.", lexical=7.0)])
    assert paths(rerank("relay limit", pool))[0] == "hit"


def test_a_best_match_with_one_word_of_many_does_not_beat_the_nearest_meaning() -> None:
    rest = [
        candidate(f"r{number}", f"Filler {number}.", cosine=0.8 - number / 1_000)
        for number in range(8)
    ]
    pool = placed(
        [
            candidate("word", "Mara owns a red kite.", lexical=4.0, cosine=0.81),
            candidate("meaning", "Mara adopted a spaniel from the shelter.", cosine=0.9),
            *rest,
        ]
    )
    assert paths(rerank("which kind of pet lives with mara", pool))[0] == "meaning"


def test_a_name_in_the_query_counts_against_whoever_is_somebody_else() -> None:
    pool = placed(
        [
            candidate("other", "Tomas ran the marathon in Turin.", lexical=5.0),
            candidate("right", "Mara finished her first marathon.", lexical=4.9),
        ]
    )
    assert paths(rerank("how did mara do in the marathon", pool))[0] == "right"


def test_an_entity_makes_a_lower_case_word_a_name() -> None:
    pool = [
        candidate("a", "quill listens on 7070", entities=("project:quill",)),
        candidate("b", "basalt listens on 8443"),
    ]
    assert [each.named for each in weigh("where does quill listen", pool)] == [1.0, 0.0]


def test_evidence_is_a_share_of_the_query() -> None:
    pool = [candidate("a", "The relay batches were limited.", title="Relay")]
    assert weigh("limit of the relay batch", pool) == [Evidence(1.0, 1.0, 0.5)]
    assert weigh("the", pool) == [Evidence(1.0, 1.0, 0.0)]
    assert weigh("zebra crossing", pool) == [Evidence(0.0, 1.0, 0.0)]


def test_the_claim_outranks_its_twins_when_the_query_states_it() -> None:
    claims = {
        "number": "The relay batch limit is 22 per call.",
        "negated": "The relay batch limit is not 11 per call.",
        "variant": "The legacy relay batch limit is 11 per call.",
        "right": "The relay batch limit is 11 per call.",
    }
    pool = placed(candidate(path, claim, lexical=5.0) for path, claim in claims.items())
    assert paths(rerank("the relay batch limit is 11 per call", pool))[0] == "right"


def test_equal_candidates_keep_their_fused_order() -> None:
    pool = placed(candidate(path, "same words", lexical=2.0) for path in ("c", "a", "b"))
    assert paths(rerank("same words", pool)) == ["c", "a", "b"]


_CANDIDATES = st.builds(
    lambda gist, lexical, cosine, vector: candidate(
        "p", gist, lexical=lexical, cosine=cosine, vector=vector
    ),
    st.text("ab cdE", max_size=12),
    st.none() | st.floats(0, 40),
    st.none() | st.floats(-1, 1) | st.just(float("-inf")),
    st.none() | st.lists(st.floats(-1, 1), min_size=2, max_size=2),
)


@given(st.lists(_CANDIDATES, max_size=45), st.text("ab cdE", max_size=12), st.randoms())
def test_the_result_holds_each_candidate_once_in_whatever_order_they_came(
    pool: list[object], query: str, chance: object
) -> None:
    named = placed(each._replace(path=f"p{at}") for at, each in enumerate(pool))  # type: ignore[attr-defined]
    found = paths(rerank(query, named))
    assert sorted(found) == sorted(paths(named))
    shuffled = list(named)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert paths(rerank(query, shuffled)) == found


def test_a_text_that_is_near_everything_is_not_near_this_query() -> None:
    # Thirty texts in different directions, and one that lies between all of them.
    rows = np.random.default_rng(5).normal(size=(30, 24))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    hub = rows.mean(axis=0) / np.linalg.norm(rows.mean(axis=0))
    query = rows[0] + 1.05 * hub
    pool = [
        candidate(str(place), cosine=float(row @ query / np.linalg.norm(query)), vector=row)
        for place, row in enumerate([*rows, hub])
    ]
    assert max(pool, key=lambda each: each.cosine or 0.0).path == "30"
    near = closeness(pool, [True] * len(pool))
    assert near.index(max(near)) == 0


def test_closeness_is_one_for_the_nearest_and_the_mean_for_the_unknown() -> None:
    pool = [candidate("a", cosine=0.9), candidate("b", cosine=0.8), candidate("c", cosine=0.7)]
    assert closeness(pool, [True] * 3) == pytest.approx([1.0, 0.5, 0.0])
    assert closeness([*pool, candidate("d")], [True] * 4)[3] == pytest.approx(0.5)
    assert closeness([candidate("e", cosine=0.3)] * 2, [True] * 2) == [1.0, 1.0]
    assert closeness([candidate("f", cosine=float("-inf"))], [True]) == [0.0]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("running", "run"), ("runs", "run"), ("batches", "batch"), ("cities", "citi"),
        ("city", "citi"), ("as", "as"), ("2026s", "2026s"), ("limited", "limit"), ("bus", "bus"),
    ],
)  # fmt: skip
def test_forms_of_a_word_share_a_stem(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_a_pool_of_a_hundred_costs_little_more_than_reading_its_texts() -> None:
    chance = np.random.default_rng(3)
    text = "Mara told the harbour team that the relay batch limit is eleven since the audit. " * 2
    pool = placed(
        candidate(
            str(number),
            f"{text}{number}",
            lexical=float(number),
            cosine=float(chance.uniform(0.7, 0.9)),
            vector=chance.normal(size=384).tolist(),
        )
        for number in range(100)
    )
    reading, whole = [], []
    for _ in range(15):
        started = time.thread_time()
        for each in pool:
            words(each.gist)
        reading.append(time.thread_time() - started)
        started = time.thread_time()
        rerank("what is the relay batch limit", pool)
        whole.append(time.thread_time() - started)
    # Measured: 4 times, which is 1.5 ms.
    assert min(whole) < 25 * min(reading)


def _old_and_new(count: int) -> dict[str, str]:
    files = {
        "areas/inbox/old.html": memory(
            "The north gate of the depot opens with the brass key.",
            updated="2024-01-05T00:00:00Z",
        )
    }
    for number in range(count):
        files[f"areas/inbox/n{number:04}.html"] = memory(
            f"Gate {number} of depot {number % 7} was oiled; the key hangs at post {number}.",
            updated=f"2026-{number % 9 + 1:02}-11T00:{number % 60:02}:00Z",
        )
    return files


@pytest.mark.parametrize("with_vectors", [False, True], ids=["words", "words-and-vectors"])
def test_an_old_exact_match_stays_among_the_first_three(tmp_path: Path, with_vectors: bool) -> None:
    with store(str(tmp_path), _old_and_new(3_000)) as index:
        embedder = HashedEmbedder() if with_vectors else None
        if embedder is not None:
            vectors.fill(index.conn, embedder, None, None)
        answer = search(
            index,
            "The north gate of the depot opens with the brass key.",
            Scope(),
            10,
            embedder=embedder,
            now_s=NOW_S,
        )
    assert answer["degraded"] is not with_vectors
    assert "areas/inbox/old.html" in [hit["path"] for hit in answer["hits"][:3]]


def _first(index: Index, query: str, embedder: HashedEmbedder | None) -> str:
    answer = search(index, query, Scope(), 10, embedder=embedder, now_s=NOW_S)
    return str(answer["hits"][0]["path"])


@pytest.mark.parametrize("with_vectors", [False, True], ids=["words", "words-and-vectors"])
def test_a_claim_is_found_before_its_newer_twins(tmp_path: Path, with_vectors: bool) -> None:
    claims = {
        "a-right": "The checkout relay should retry failed calls 12 times.",
        "b-negated": "The checkout relay should not retry failed calls 12 times.",
        "c-number": "The checkout relay should retry failed calls 22 times.",
        "d-variant": "The checkout beta relay should retry failed calls 12 times.",
    }
    files = {
        f"areas/inbox/{name}.html": memory(
            claim, title=name[2:], updated=f"2026-05-0{place}T00:00:00Z"
        )
        for place, (name, claim) in enumerate(claims.items(), 1)
    }
    with store(str(tmp_path), files) as index:
        embedder = HashedEmbedder() if with_vectors else None
        if embedder is not None:
            vectors.fill(index.conn, embedder, None, None)
        for name, claim in claims.items():
            query = claim.lower().rstrip(".")
            assert _first(index, query, embedder) == f"areas/inbox/{name}.html"
