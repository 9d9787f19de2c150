"""An index that grows to a multiple of its size: what it does without meanwhile, it gets back."""

from __future__ import annotations

import pytest
from tests.support.doors import rows
from tests.support.index import anew, commit, content, forward, full_text_is_whole, write_file
from tests.support.session import page

from memhtml.index import bulk, follow
from memhtml.index.database import open_index
from memhtml.index.follow import Pass
from memhtml.index.writer import Writer

INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql NOT NULL ORDER BY name"
MANY = 60


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty files are many, in several transactions."""
    monkeypatch.setattr(follow, "_MANY_STEPS", 20)
    monkeypatch.setattr(follow, "BATCH_STEPS", 20)


def grow(root: str, first: int = 0) -> None:
    """A commit with many files."""
    for number in range(first, first + MANY):
        write_file(root, f"areas/many/n{number}.html", page(f"Fact {number} of many."))
    commit(root)


def check_content(root: str) -> None:
    """The rows are those of a rebuild, and what the full-text table points at is there."""
    with open_index(root, state=False) as index:
        followed = content(index.conn)
        assert full_text_is_whole(index.conn)
    anew(root)
    with open_index(root, state=False) as index:
        assert content(index.conn) == followed


def test_the_statements_are_those_of_the_schema() -> None:
    assert len(bulk.make_unordered()) == len(bulk.drop_unordered()) == len(bulk.UNORDERED)
    assert not set(bulk.UNORDERED) & set(bulk.NAMED_BY_READS)


@pytest.mark.usefixtures("small_steps")
def test_a_grown_index_has_all_its_indexes_and_the_rows_of_a_rebuild(root: str) -> None:
    before = rows(root, INDEXES)
    grow(root)
    seen: list[int] = []
    real = Writer.settle

    def settle(self: Writer) -> None:
        real(self)
        seen.append(len(self._conn.execute(INDEXES).fetchall()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer, "settle", settle)
        forward(root)
    assert set(seen) == {len(before) - len(bulk.UNORDERED)}
    assert rows(root, INDEXES) == before
    check_content(root)


@pytest.mark.usefixtures("small_steps")
def test_an_index_that_was_cut_short_gets_its_indexes_back(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(root, INDEXES)
    grow(root)
    batches: list[int] = []
    real = Writer.settle

    def settle(self: Writer) -> None:
        batches.append(len(batches))
        if len(batches) == 2:
            raise RuntimeError("cut short")
        real(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer, "settle", settle)
        forward(root)
    assert len(rows(root, INDEXES)) == len(before) - len(bulk.UNORDERED)
    # The next pass has few steps left to take, or none.
    monkeypatch.setattr(follow, "_MANY_STEPS", 10_000)
    forward(root)
    assert rows(root, INDEXES) == before
    check_content(root)


@pytest.mark.usefixtures("small_steps")
def test_an_index_that_hardly_grows_keeps_its_indexes(root: str) -> None:
    grow(root)
    forward(root)
    left_out: list[bool] = []
    real = Pass._grows_by_far

    def grows(self: Pass, steps: int) -> bool:
        left_out.append(real(self, steps))
        return left_out[-1]

    for number in range(30):
        write_file(root, f"areas/few/n{number}.html", page(f"One of few, {number}."))
    commit(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pass, "_grows_by_far", grows)
        forward(root)
    assert left_out == [False]
