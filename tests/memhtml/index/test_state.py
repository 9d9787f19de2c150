"""The state row, and the access plane."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhtml.errors import StorageError
from memhtml.index import sqlite
from memhtml.index.database import Index, open_index, open_state
from memhtml.index.files import state_path
from memhtml.index.state import IndexState, Signal, bump, move_access, read_state

NOW_S = 1_790_000_000
A, B, C = "areas/a.html", "areas/b.html", "areas/c.html"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with open_index(str(tmp_path)) as opened:
        yield opened


def access(index: Index, path: str) -> tuple[object, ...]:
    query = (
        "SELECT access_count, reinforcement_count, round(outcome_score, 6),"
        " unixepoch(last_accessed_at), unixepoch(last_reinforced_at)"
        " FROM state.access WHERE path = ?"
    )
    found: tuple[object, ...] = index.conn.execute(query, (path,)).fetchone()
    return found


def test_an_index_that_was_never_filled_has_no_state(index: Index) -> None:
    assert read_state(index.conn) is None


def test_the_state_row_is_read_whole(index: Index) -> None:
    index.conn.execute(
        "INSERT INTO index_state VALUES(1, 'h', 'm@2', 2, 'r', 'u', '[\"areas/ä.html\"]', 1)"
    )
    assert read_state(index.conn) == IndexState("h", "m@2", 2, "r", "u", ("areas/ä.html",), True)


@pytest.mark.parametrize("text", ["{}", "[1]", "no json", ""])
def test_a_list_of_edits_that_is_none_is_refused(index: Index, text: str) -> None:
    index.conn.execute("INSERT INTO index_state(id, dirty_paths) VALUES(1, ?)", (text,))
    with pytest.raises(StorageError, match=r"index_state\.decode") as caught:
        read_state(index.conn)
    assert caught.value.suggestions == ("memhtml index rebuild",)


def test_a_first_bump_makes_a_row(index: Index) -> None:
    assert bump(index.conn, [A], "neutral", NOW_S) == ([A], [])
    assert access(index, A) == (1, 0, 0.0, NOW_S, None)


@pytest.mark.parametrize(("signal", "score"), [("positive", 1.0), ("negative", -1.0)])
def test_a_first_signal_starts_the_outcome_as_it_is(
    index: Index, signal: Signal, score: float
) -> None:
    bump(index.conn, [A], signal, NOW_S)
    assert access(index, A) == (1, 1, score, NOW_S, NOW_S)


def test_repeats_and_blanks_count_once_and_never(index: Index) -> None:
    assert bump(index.conn, [B, A, " ", "", B], "neutral", NOW_S) == ([B, A], [])
    assert access(index, B)[0] == 1


def test_a_stamp_of_exactly_900_s_may_be_bumped_and_a_younger_one_not(index: Index) -> None:
    bump(index.conn, [A, B], "neutral", NOW_S)
    assert bump(index.conn, [A], "neutral", NOW_S + 899) == ([], [A])
    assert bump(index.conn, [B, A], "neutral", NOW_S + 900) == ([B, A], [])
    assert access(index, A) == (2, 0, 0.0, NOW_S + 900, None)


def test_a_read_does_not_hold_back_the_outcome_that_follows(index: Index) -> None:
    bump(index.conn, [A], "neutral", NOW_S)
    assert bump(index.conn, [A], "positive", NOW_S + 10) == ([A], [])
    assert access(index, A) == (1, 1, 0.3, NOW_S, NOW_S + 10)
    assert bump(index.conn, [A], "positive", NOW_S + 20) == ([], [A])


def test_an_outcome_does_not_hold_back_the_access_that_has_rested(index: Index) -> None:
    bump(index.conn, [A], "neutral", NOW_S)
    bump(index.conn, [A], "negative", NOW_S + 800)
    assert bump(index.conn, [A], "negative", NOW_S + 900) == ([A], [])
    assert access(index, A) == (2, 1, -0.3, NOW_S + 900, NOW_S + 800)


def test_a_stamp_that_is_no_instant_holds_nothing_back(index: Index) -> None:
    index.conn.execute("INSERT INTO state.access(path, last_accessed_at) VALUES(?, 'soon')", (A,))
    assert bump(index.conn, [A], "neutral", NOW_S) == ([A], [])


@given(st.lists(st.sampled_from(["neutral", "positive", "negative"]), max_size=12))
def test_the_outcome_is_a_running_mean_within_bounds(signals: list[Signal]) -> None:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.execute("ATTACH ':memory:' AS state")
    conn.execute(
        "CREATE TABLE state.access(path TEXT PRIMARY KEY, access_count, reinforcement_count,"
        " outcome_score, last_accessed_at, last_reinforced_at, updated_at)"
    )
    expected, reinforced = 0.0, 0
    for number, signal in enumerate(signals):
        bump(conn, [A], signal, NOW_S + 900 * number)
        given = {"neutral": 0.0, "positive": 1.0, "negative": -1.0}[signal]
        if signal != "neutral":
            expected = given if number == 0 else expected * 0.7 + given * 0.3
            reinforced += 1
    if signals:
        row = conn.execute("SELECT access_count, reinforcement_count, outcome_score FROM access")
        assert row.fetchone() == (len(signals), reinforced, pytest.approx(expected))
    conn.close()


def test_more_paths_than_a_statement_takes_are_all_bumped(index: Index) -> None:
    paths = [f"areas/{number}.html" for number in range(1201)]
    assert bump(index.conn, paths, "neutral", NOW_S) == (paths, [])
    count = index.conn.execute("SELECT sum(access_count) FROM state.access").fetchone()
    assert count == (1201,)


def test_without_state_every_path_is_cooling_down(tmp_path: Path) -> None:
    with open_index(str(tmp_path), state=False) as index:
        assert bump(index.conn, [A, B], "positive", NOW_S) == ([], [A, B])


def test_a_locked_state_is_refused_after_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.01)
    monkeypatch.setattr(sqlite, "RETRY_S", 0.1)
    with open_index(str(tmp_path)) as index:
        holder = sqlite3.connect(state_path(str(tmp_path)), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match=r"state\.locked"):
            bump(index.conn, [A], "neutral", NOW_S)
        holder.close()


def test_counting_does_not_wait_for_whoever_fills_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.01)
    monkeypatch.setattr(sqlite, "RETRY_S", 0.1)
    writer = open_index(str(tmp_path), state=False)
    with writer, open_index(str(tmp_path)) as index, sqlite.writing(writer.conn):
        assert bump(index.conn, [A], "neutral", NOW_S) == ([A], [])


def test_access_rows_follow_their_files(index: Index) -> None:
    bump(index.conn, [A, B], "neutral", NOW_S)
    bump(index.conn, [A], "positive", NOW_S + 1)
    state = open_state(index.root)
    for _ in range(2):
        move_access(state, [(A, C), ("areas/unknown.html", B)])
    state.close()
    assert access(index, C) == (1, 1, 0.3, NOW_S, NOW_S + 1)
    assert access(index, B) == (1, 0, 0.0, NOW_S, None)
    assert access(index, A) is None


def test_two_rows_that_become_one_keep_the_larger_counts_and_later_stamps(index: Index) -> None:
    bump(index.conn, [A], "positive", NOW_S)
    bump(index.conn, [A], "positive", NOW_S + 900)
    bump(index.conn, [B], "negative", NOW_S + 1000)
    state = open_state(index.root)
    move_access(state, [(A, B)])
    state.close()
    assert access(index, B) == (2, 2, -1.0, NOW_S + 1000, NOW_S + 1000)
