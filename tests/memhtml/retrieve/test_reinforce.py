"""`reinforce`: which paths it takes, and that an unknown one stops all of them.

How a bump counts is tested beside `memhtml.index.state`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.reads import indexed
from tests.support.session import page

from memhtml.errors import MemhtmlError
from memhtml.index.database import Index
from memhtml.retrieve.reinforce import reinforce

A, B, EDITED = (f"areas/{name}.html" for name in ("a", "b", "edited"))


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Two indexed records, and a file that is in the working tree alone."""
    (tmp_path / "areas").mkdir()
    (tmp_path / EDITED).write_text(page("Fact edited."))
    (tmp_path / "README.html").write_text(page("No memory."))
    (tmp_path / "areas" / "link.html").symlink_to(tmp_path / EDITED)
    files = {A: page("Fact a."), B: page("Fact b.")}
    with indexed(str(tmp_path), files, state=True) as opened:
        yield opened


def rows(index: Index) -> list[tuple[Any, ...]]:
    return index.conn.execute(
        "SELECT path, access_count, reinforcement_count, outcome_score FROM access ORDER BY path"
    ).fetchall()


def test_paths_are_bumped_once_each_in_the_order_given(index: Index) -> None:
    assert reinforce(index, [B, A, f"/{B}", "  ", ""], "positive") == {
        "bumped": [B, A],
        "cooledDown": [],
        "signal": "positive",
    }
    assert rows(index) == [(A, 1, 1, 1.0), (B, 1, 1, 1.0)]


def test_a_second_call_cools_down_and_changes_nothing(index: Index) -> None:
    reinforce(index, [A], "negative")
    before = rows(index)
    assert reinforce(index, [A, B], "negative") == {
        "bumped": [B],
        "cooledDown": [A],
        "signal": "negative",
    }
    assert rows(index)[:1] == before


def test_a_signal_counts_right_after_an_access(index: Index) -> None:
    reinforce(index, [A], "neutral")
    assert reinforce(index, [A], "positive")["bumped"] == [A]
    assert rows(index) == [(A, 1, 1, pytest.approx(0.3))]
    assert reinforce(index, [A], "positive")["cooledDown"] == [A]


def test_a_file_that_is_not_indexed_yet_is_known(index: Index) -> None:
    assert reinforce(index, [EDITED], "neutral")["bumped"] == [EDITED]


@pytest.mark.parametrize(
    "unknown",
    [
        "areas/none.html",
        "areas",
        "../areas/a.html",
        "areas/../areas/a.html",
        "README.html",
        "areas/link.html",
        ".memhtml/index.db",
        "areas/\ufffd.html",
        "areas/" + "x" * 300 + ".html",
    ],
)
def test_an_unknown_path_stops_the_whole_call(index: Index, unknown: str) -> None:
    with pytest.raises(MemhtmlError) as caught:
        reinforce(index, [A, unknown, B], "positive")
    assert caught.value.code == "ERR_PATH_NOT_FOUND"
    assert caught.value.suggestions[-1] == "memhtml list"
    assert rows(index) == []


def test_nothing_given_is_nothing_done(index: Index) -> None:
    assert reinforce(index, [" "], "neutral")["bumped"] == []
    assert rows(index) == []


def test_more_paths_than_one_statement_takes_are_all_bumped(tmp_path: Path) -> None:
    files = {f"areas/f{number:04d}.html": page(f"Fact {number}.") for number in range(620)}
    with indexed(str(tmp_path), files, state=True) as index:
        answer = reinforce(index, files, "positive")
        assert answer["bumped"] == list(files)
        assert len(rows(index)) == 620


def test_without_the_state_everything_cools_down(tmp_path: Path) -> None:
    with indexed(str(tmp_path), {A: page("Fact a.")}) as index:
        assert reinforce(index, [A], "positive")["cooledDown"] == [A]
