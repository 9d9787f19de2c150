"""The fold of the arms: one statement, reciprocal ranks, weights (spec `retrieval` §7)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.retrieve import NOW_S, accessed, memory, statements, store

from memhtml.index.database import Index
from memhtml.retrieve.fuse import Orderings, fired, fused
from memhtml.retrieve.scope import Scope, make_filter

NAMES = ("a", "b", "c", "d")
# The first is the oldest, so recency and salience rank d, c, b, a.
FILES = {
    f"areas/inbox/{name}.html": memory(f"Memory {name}.", updated=f"2026-0{month}-01T00:00:00Z")
    for month, name in enumerate(NAMES, 1)
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Four files."""
    with store(str(tmp_path_factory.mktemp("fuse")), FILES) as opened:
        yield opened


def ids(index: Index, names: str) -> list[int]:
    """The ids of files by the letters of their names."""
    found = dict(index.conn.execute("SELECT path, id FROM files").fetchall())
    return [found[f"areas/inbox/{name}.html"] for name in names]


def fold(
    index: Index,
    fts: str | None,
    vector: str | None,
    *,
    pool: int = 10,
    has_state: bool = True,
) -> list[tuple[str, float]]:
    """Name and sum of each fused file."""
    given = Orderings(
        None if fts is None else ids(index, fts), None if vector is None else ids(index, vector)
    )
    found, _ = fused(
        index.conn,
        given,
        make_filter(index.conn, Scope()),
        pool,
        now_s=NOW_S,
        has_state=has_state,
    )
    return [(each.path[12], each.score) for each in found]


def test_each_arm_adds_its_weight_over_its_rank_and_sixty(index: Index) -> None:
    found = fold(index, "ab", "b")
    sums = {
        "a": 1 / 61 + 0.5 / 64 + 0.4 / 64,
        "b": 1 / 62 + 1 / 61 + 0.5 / 63 + 0.4 / 63,
        "c": 0.5 / 62 + 0.4 / 62,
        "d": 0.5 / 61 + 0.4 / 61,
    }
    assert dict(found) == pytest.approx(sums)
    assert [name for name, _ in found] == ["b", "a", "d", "c"]


def test_without_state_salience_adds_nothing(index: Index) -> None:
    assert dict(fold(index, None, None, has_state=False)) == pytest.approx(
        {"d": 0.5 / 61, "c": 0.5 / 62, "b": 0.5 / 63, "a": 0.5 / 64}
    )


def test_equal_sums_are_told_apart_by_path(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        # Two arms of weight 1 that rank two files crosswise; recency and salience out of the way.
        index.conn.execute("UPDATE files SET archived = 1")
        found = fold(index, "dcba", "abcd", has_state=False)
    assert [name for name, _ in found] == ["a", "d", "b", "c"]
    assert found[0][1] == found[1][1]


def test_the_pool_is_cut_after_the_fold(index: Index) -> None:
    assert [name for name, _ in fold(index, "a", None, pool=2)] == ["a", "d"]
    assert fold(index, "a", None, pool=0) == []


def test_no_match_still_ranks_by_age_and_use(index: Index) -> None:
    assert [name for name, _ in fold(index, "", None)] == ["d", "c", "b", "a"]


def test_a_file_that_was_opened_rises(tmp_path: Path) -> None:
    with store(str(tmp_path), FILES) as index:
        accessed(index, "areas/inbox/b.html", count=9, at="2026-11-30T00:00:00Z")
        found = fold(index, None, None)
    assert [name for name, _ in found] == ["d", "b", "c", "a"]


@pytest.mark.parametrize(
    ("given", "has_state", "names"),
    [
        (Orderings([], []), True, ["fts", "vector", "recency", "salience"]),
        (Orderings(None, [1]), True, ["vector", "recency", "salience"]),
        (Orderings([1], None), False, ["fts", "recency"]),
        (Orderings(None, None), False, ["recency"]),
    ],
)
def test_the_arms_that_fired_are_named_in_order(
    given: Orderings, has_state: bool, names: list[str]
) -> None:
    assert fired(given, has_state=has_state) == names


def test_one_statement_fuses_the_four_orderings(index: Index) -> None:
    with statements(index) as seen:
        fold(index, "ab", "ba")
    (folded,) = [sql for sql in seen if sql.startswith("WITH")]
    for arm in ("fts", "vector", "recency", "salience"):
        assert f"{arm}(id, rank) AS (" in folded
