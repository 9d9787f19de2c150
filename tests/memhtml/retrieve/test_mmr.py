"""Near duplicates go down, everything else stays (`memhtml.retrieve.mmr`)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.pool import at_cosine, candidate, paths, scored

from memhtml.retrieve.mmr import NEAR_DUPLICATE, pick


def _picked(*vectors: list[float] | None, limit: int = 10) -> list[str]:
    pool = [candidate(str(place), vector=each) for place, each in enumerate(vectors, 1)]
    return paths(each for each, _score in pick(scored(pool), limit))


def test_an_exact_duplicate_is_demoted_below_a_hit_that_adds_something() -> None:
    assert _picked([1, 0], [1, 0], [0, 1]) == ["1", "3", "2"]


def test_a_duplicate_keeps_its_score() -> None:
    pool = scored(candidate(name, vector=each) for name, each in (("a", [1, 0]), ("b", [1, 0])))
    assert [(each.path, score) for each, score in pick(pool, 2)] == [("a", 1.0), ("b", 0.5)]


@pytest.mark.parametrize("cosine", [0.75, 0.85, 0.91])
def test_hits_on_one_subject_keep_their_order(cosine: float) -> None:
    # Every two of these ten have the same cosine, as the texts of one subject nearly do.
    matrix = np.full((10, 10), cosine) + (1 - cosine) * np.eye(10)
    vectors = np.linalg.cholesky(matrix).tolist()
    assert _picked(*vectors) == [str(place) for place in range(1, 11)]


def test_a_nearer_duplicate_is_demoted_further() -> None:
    # 1/4 of a duplicate falls below 1/6, of a slight one it stays above 1/5.
    others = [[0.0, 0.0, *row] for row in np.eye(6).tolist()]
    for cosine, place in ((1.0, 6), (0.93, 3)):
        near = [*at_cosine(cosine), 0, 0, 0, 0, 0, 0]
        vectors = [[1.0, 0.0] + [0.0] * 6, others[0], others[1], near, *others[2:]]
        assert _picked(*vectors).index("4") == place


def test_a_hit_without_a_vector_is_neither_demoted_nor_demotes() -> None:
    assert _picked([1, 0], None, [1, 0], [0, 1]) == ["1", "2", "4", "3"]


@pytest.mark.parametrize("broken", [[0.0, 0.0], [float("nan"), 1.0], [1.0, 0.0, 0.0]])
def test_a_vector_that_is_none_is_near_nothing(broken: list[float]) -> None:
    assert _picked([1, 0], broken, [0, 1]) == ["1", "2", "3"]


def test_vectors_need_not_have_unit_length() -> None:
    assert _picked([3, 0], [0.2, 0], [0, 7]) == ["1", "3", "2"]


@pytest.mark.parametrize(("limit", "expected"), [(0, []), (-1, []), (2, ["1", "3"])])
def test_no_more_than_the_limit_is_picked(limit: int, expected: list[str]) -> None:
    assert _picked([1, 0], [1, 0], [0, 1], limit=limit) == expected


def test_without_vectors_nothing_moves_and_numpy_stays_unloaded() -> None:
    code = (
        "import sys\n"
        "from memhtml.retrieve.mmr import pick\n"
        "from memhtml.retrieve.polarity import demote\n"
        "from memhtml.retrieve.pool import Candidate\n"
        "from memhtml.retrieve.rerank import rerank\n"
        "pool = [Candidate(str(n), 't', f'not {n}' if n % 2 else f'it is {n}', 'b', 'semantic',"
        " n, 1 / n, None, None, None, (), None, '', None) for n in range(1, 30)]\n"
        "scored = [(each, 1 / n) for n, each in enumerate(rerank('it is 3', pool), 1)]\n"
        "assert len(pick(demote('it is 3', scored), 20)) == 20\n"
        "print('numpy' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ran.stdout == b"False\n"


@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), max_size=12), st.integers(0, 15)
)
def test_a_pick_is_a_part_of_what_was_there_and_starts_with_the_first(
    vectors: list[list[float]], limit: int
) -> None:
    found = _picked(*vectors, limit=limit)
    assert len(found) == len(set(found)) == min(limit, len(vectors))
    assert found[:1] == [str(place) for place in range(1, len(found) + 1)][:1]


def test_the_threshold_is_that_of_near_duplicates_in_a_batch() -> None:
    # 0.95 would otherwise fall below 1/3: (1/2)(1 - 0.5 * 0.375) = 0.41, so it stays.
    assert NEAR_DUPLICATE == 0.92
    assert _picked([1, 0, 0], [*at_cosine(0.95), 0], [0, 0, 1]) == ["1", "2", "3"]
