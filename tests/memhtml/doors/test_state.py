"""`state export` and `state import`: the file, the merge, hostile lines, damaged databases."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.session import changed_in, checkout_state, copy_store, git, make_store

from memhtml.doors import access_rows, state
from memhtml.doors.access_rows import Row
from memhtml.doors.state import EXPORTED, export_state, import_state
from memhtml.errors import StorageError
from memhtml.index import sqlite as index_sqlite
from memhtml.index.database import open_state

A, B = "areas/inbox/a.html", "resources/queue/b.html"
NOON, LATER = "2026-06-01T12:00:00Z", "2026-06-02T12:00:00Z"

ROW_A = Row(A, 3, 1, 0.3, NOON, NOON, NOON)
ROW_B = Row(B, 1, 0, 0.0, LATER, None, LATER)
LINE_A = (
    f'{{"path":"{A}","accessCount":3,"reinforcementCount":1,"outcomeScore":0.3,'
    f'"lastAccessedAt":"{NOON}","lastReinforcedAt":"{NOON}","updatedAt":"{NOON}"}}\n'
)
LINE_B = (
    f'{{"path":"{B}","accessCount":1,"reinforcementCount":0,"outcomeScore":0,'
    f'"lastAccessedAt":"{LATER}","lastReinforcedAt":null,"updatedAt":"{LATER}"}}\n'
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_store(str(tmp_path_factory.mktemp("template") / "store"))


@pytest.fixture
def root(tmp_path: Path, template: str) -> Iterator[str]:
    yield copy_store(template, str(tmp_path / "store"))


def hold(root: str, *rows: Row) -> None:
    """Put rows into `state.db` as they are."""
    conn = open_state(root)
    marks = ", ".join("?" * len(Row._fields))
    conn.executemany(f"INSERT INTO access VALUES({marks})", rows)
    conn.close()


def held(root: str) -> list[Row]:
    conn = open_state(root)
    try:
        return [Row(*values) for values in conn.execute(state._SELECT)]
    finally:
        conn.close()


def write(root: str, text: str | bytes) -> None:
    Path(root, EXPORTED).write_bytes(text.encode() if isinstance(text, str) else text)


def line(**fields: Any) -> str:
    return json.dumps({"path": A, **fields}) + "\n"


def report(rows: int, restored: int, skipped: int) -> Mapping[str, Any]:
    return {
        "path": EXPORTED,
        "rows": rows,
        "restored": restored,
        "skipped": skipped,
        "hasState": True,
    }


# Export.


def test_rows_are_written_by_path_and_committed(root: str) -> None:
    hold(root, ROW_B, ROW_A)
    answer = export_state(root)
    sha = git(root, "rev-parse", "HEAD")
    assert answer == {
        "path": EXPORTED,
        "rows": 2,
        "bytes": len(LINE_A + LINE_B),
        "written": True,
        "commitSha": sha,
    }
    assert Path(root, EXPORTED).read_text() == LINE_A + LINE_B
    assert changed_in(root, sha) == [EXPORTED]
    subject = "memhtml(state): export 2 access rows to the committed sidecar"
    assert git(root, "log", "-1", "--format=%B") == subject
    assert checkout_state(root) == ""


def test_a_second_export_commits_nothing(root: str) -> None:
    hold(root, ROW_A)
    export_state(root)
    head = git(root, "rev-parse", "HEAD")
    answer = export_state(root)
    assert (answer["written"], answer["commitSha"], answer["rows"]) == (False, None, 1)
    assert git(root, "rev-parse", "HEAD") == head


def test_no_rows_make_no_file_and_no_commit(root: str) -> None:
    head = git(root, "rev-parse", "HEAD")
    answer = export_state(root)
    assert (answer["rows"], answer["bytes"], answer["written"]) == (0, 0, False)
    assert git(root, "rev-parse", "HEAD") == head
    assert not Path(root, EXPORTED).exists()


def test_rows_that_are_gone_leave_the_file_and_a_warning_says_how_many(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(root, ROW_A, ROW_B)
    export_state(root)
    os.remove(f"{root}/.memhtml/state.db")
    hold(root, ROW_A)
    capsys.readouterr()
    assert export_state(root)["rows"] == 1
    assert "WARN: 1 rows of .memhtml/state/access.jsonl are not in state.db" in (
        capsys.readouterr().err
    )
    assert Path(root, EXPORTED).read_text() == LINE_A


def test_an_edit_of_the_file_is_put_right(root: str) -> None:
    hold(root, ROW_A)
    export_state(root)
    write(root, "edited by hand\n")
    answer = export_state(root)
    assert (answer["written"], answer["commitSha"]) == (True, None)
    assert Path(root, EXPORTED).read_text() == LINE_A
    assert checkout_state(root) == ""


def test_what_else_is_staged_stays_staged(root: str) -> None:
    hold(root, ROW_A)
    Path(root, "notes.txt").write_text("mine\n")
    git(root, "add", "notes.txt")
    sha = export_state(root)["commitSha"]
    assert changed_in(root, sha) == [EXPORTED]
    assert checkout_state(root) == "A  notes.txt"


@pytest.mark.parametrize(
    ("score", "written"),
    [(0.123449, "0.1234"), (-0.00001, "0"), (1.0, "1"), (-0.91, "-0.91"), (0.0001, "0.0001")],
)
def test_a_score_has_four_decimals_at_most(score: float, written: str) -> None:
    text = access_rows.line(ROW_A._replace(outcome_score=score)).decode()
    assert f'"outcomeScore":{written},' in text


@pytest.mark.parametrize("stamp", ["2026-06-01", "2026-06-01T12:00:00.123Z", "", "yesterday"])
def test_a_stamp_that_is_no_iso_second_is_written_as_null(stamp: str) -> None:
    text = access_rows.line(ROW_A._replace(last_accessed_at=stamp)).decode()
    assert '"lastAccessedAt":null' in text


def test_rows_that_no_import_would_take_are_left_out_with_a_warning(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(root, ROW_A)
    conn = open_state(root)
    conn.execute("PRAGMA ignore_check_constraints = ON")
    rows = [
        ("b.html", "many", 0, 0.0),
        ("c.html", 1, 0, "good"),
        ("d.html", 1, 0, float("inf")),
        (b"\xff", 1, 0, 0.0),
        ("../e.html", 1, 0, 0.0),
    ]
    conn.executemany("INSERT INTO access VALUES(?, ?, ?, ?, x'ff', NULL, NULL)", rows)
    conn.close()
    assert export_state(root)["rows"] == 1
    assert Path(root, EXPORTED).read_text() == LINE_A
    assert "5 rows of state.db" in capsys.readouterr().err


def test_a_folder_in_the_way_is_a_state_write_failure(root: str) -> None:
    hold(root, ROW_A)
    Path(root, EXPORTED).mkdir()
    with pytest.raises(StorageError) as caught:
        export_state(root)
    assert (caught.value.reason, caught.value.detail) == ("state.write", EXPORTED)


# Import.


def test_an_export_is_read_back_as_it_was(root: str) -> None:
    hold(root, ROW_A, ROW_B)
    export_state(root)
    os.remove(f"{root}/.memhtml/state.db")
    assert import_state(root) == report(2, 2, 0)
    assert held(root) == [ROW_A, ROW_B]


_INSTANTS = st.one_of(st.none(), st.sampled_from([NOON, LATER, "2024-02-29T23:59:60Z"]))
_ROWS = st.builds(
    Row,
    st.text(
        st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="/\\"), min_size=1
    )
    .filter(lambda name: name.strip(". ") and len(name.encode()) < 200)
    .map(lambda name: f"areas/x{name}.html"),
    st.integers(0, 2**53),
    st.integers(0, 2**53),
    st.integers(-10_000, 10_000).map(lambda tenths: tenths / 10_000),
    _INSTANTS,
    _INSTANTS,
    _INSTANTS,
)


@given(_ROWS)
def test_a_line_reads_back_as_the_row_it_was_written_from(row: Row) -> None:
    data = access_rows.line(row)
    assert data.count(b"\n") == 1
    assert list(access_rows.of_lines([data])) == [row]
    assert access_rows.line(next(filter(None, access_rows.of_lines([data])))) == data


def test_a_missing_file_is_no_rows(root: str) -> None:
    assert import_state(root) == report(0, 0, 0)
    Path(root, EXPORTED).parent.joinpath(".gitkeep").unlink()
    Path(root, EXPORTED).parent.rmdir()
    assert import_state(root) == report(0, 0, 0)


def test_counters_merge_by_the_larger_and_stamps_by_the_later(root: str) -> None:
    hold(root, ROW_A._replace(access_count=9, outcome_score=-0.5, last_reinforced_at=None))
    write(
        root,
        line(
            accessCount=2,
            reinforcementCount=4,
            outcomeScore=0.25,
            lastAccessedAt="2026-05-01T00:00:00Z",
            lastReinforcedAt=LATER,
            updatedAt=LATER,
        ),
    )
    import_state(root)
    assert held(root) == [Row(A, 9, 4, 0.25, NOON, LATER, LATER)]


def test_the_score_and_its_stamp_come_from_the_file_even_when_it_has_none(root: str) -> None:
    hold(root, ROW_A)
    write(root, line(accessCount=1))
    import_state(root)
    assert held(root) == [Row(A, 3, 1, 0.0, NOON, NOON, None)]


def test_an_import_twice_changes_nothing_more(root: str) -> None:
    write(root, LINE_A + LINE_B)
    import_state(root)
    assert import_state(root) == report(2, 2, 0)
    assert held(root) == [ROW_A, ROW_B]


def test_a_path_that_occurs_twice_is_merged_in_order(root: str) -> None:
    write(root, line(accessCount=5, outcomeScore=1) + line(accessCount=2, outcomeScore=-1))
    assert import_state(root) == report(2, 1, 0)
    assert held(root)[0][1:4] == (5, 0, -1.0)


def test_more_rows_than_one_transaction_holds_are_all_merged(root: str) -> None:
    names = [f"areas/f{number:04d}.html" for number in range(1_203)]
    write(root, "".join(line(path=name, accessCount=1) for name in names))
    assert import_state(root) == report(1_203, 1_203, 0)
    assert [row.path for row in held(root)] == names


HOSTILE = {
    "no JSON": "{",
    "no object": "[1]",
    "a bare word": "null",
    "no path": '{"accessCount":1}',
    "a path that is no text": line(path=7),
    "a blank path": line(path="  "),
    "a path that leaves the store": line(path="areas/../../etc/passwd.html"),
    "a path from the root": line(path="/areas/a.html"),
    "a path outside the buckets": line(path="README.html"),
    "a path of git's own": line(path="areas/.git/a.html"),
    "a path with a control character": line(path="areas/a\nb.html"),
    "a path with half a character": '{"path":"areas/\\ud800.html"}',
    "a negative counter": line(accessCount=-1),
    "a counter that is no number": line(accessCount="3"),
    "a counter that is true": line(accessCount=True),
    "a counter with a fraction": line(accessCount=1.5),
    "a counter no database holds": line(reinforcementCount=2**63),
    "a counter of five thousand digits": f'{{"path":"{A}","accessCount":{"9" * 5000}}}',
    "a score over one": line(outcomeScore=1.01),
    "a score that is no number": line(outcomeScore="good"),
    "a score that is not finite": f'{{"path":"{A}","outcomeScore":1e999}}',
    "a score that is not a number": f'{{"path":"{A}","outcomeScore":NaN}}',
    "a stamp that is no instant": line(lastAccessedAt="2026-13-01T00:00:00Z"),
    "a stamp that is a day": line(lastAccessedAt="2026-06-01"),
    "a stamp that is a number": line(updatedAt=12),
    "a nest": f'{{"path":"{A}","x":{"[" * 30_000}',
    "a null counter": line(accessCount=None),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_line_is_counted_and_the_others_are_merged(root: str, text: str) -> None:
    write(root, f"{LINE_A}{text.rstrip()}\n\n{LINE_B}")
    assert import_state(root) == report(2, 2, 1)
    assert held(root) == [ROW_A, ROW_B]


def test_a_line_of_ten_megabytes_is_one_bad_line(root: str) -> None:
    write(root, f'{LINE_A}{{"path":"{"x" * 10_000_000}"}}\n{LINE_B}')
    assert import_state(root) == report(2, 2, 1)


def test_bytes_that_are_no_text_and_a_cut_last_line_are_bad_lines(root: str) -> None:
    write(root, b"\xff\xfe\n" + LINE_A.encode() + LINE_B.encode()[:30])
    assert import_state(root) == report(1, 1, 2)


def test_fields_that_are_not_known_are_passed_over(root: str) -> None:
    write(root, line(accessCount=2, added=[1, {"deep": None}]) + "\r\n")
    assert import_state(root) == report(1, 1, 0)


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_no_bytes_make_reading_fail(lines: list[bytes]) -> None:
    assert all(row is None or row.path for row in access_rows.of_lines(lines))


def test_a_link_in_place_of_the_file_is_not_followed(root: str, tmp_path: Path) -> None:
    # A cloned store must not have a file of this machine read into it.
    (tmp_path / "elsewhere").write_text(LINE_A)
    os.symlink(tmp_path / "elsewhere", f"{root}/{EXPORTED}")
    with pytest.raises(StorageError) as caught:
        import_state(root)
    assert (caught.value.reason, caught.value.detail) == ("read", f"{EXPORTED}: is a link")
    assert not Path(root, ".memhtml/state.db").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_neither_read_nor_waited_for(root: str, make: Any) -> None:
    make(f"{root}/{EXPORTED}")
    with pytest.raises(StorageError) as caught:
        import_state(root)
    assert caught.value.reason == "read"


# A database that is locked or damaged.


def aside(root: str) -> list[str]:
    return sorted(name for name in os.listdir(f"{root}/.memhtml") if "damaged" in name)


def spoil_bytes(root: str) -> bytes:
    data = b"this is no database " * 300
    Path(root, ".memhtml/state.db").write_bytes(data)
    return data


def test_a_damaged_database_is_an_error_whose_remedy_works(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(root, ROW_A, ROW_B)
    export_state(root)
    data = spoil_bytes(root)
    with pytest.raises(StorageError) as caught:
        export_state(root)
    assert caught.value.reason == "state.open"
    assert caught.value.suggestions == ("memhtml state import",)
    assert Path(root, ".memhtml/state.db").read_bytes() == data
    capsys.readouterr()
    assert import_state(root) == report(2, 2, 0)
    assert held(root) == [ROW_A, ROW_B]
    (name,) = aside(root)
    assert Path(root, ".memhtml", name).read_bytes() == data
    assert f"moved aside to .memhtml/{name}" in capsys.readouterr().err
    assert checkout_state(root) == ""


def test_the_companions_of_a_damaged_database_go_with_it(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_is_damaged", lambda root: True)  # SQLite would remove them.
    for suffix in ("", "-wal", "-shm"):
        Path(root, f".memhtml/state.db{suffix}").write_bytes(b"left over")
    import_state(root)
    name, shm, wal = aside(root)
    assert (shm, wal) == (f"{name}-shm", f"{name}-wal")


def test_what_was_moved_aside_before_is_kept(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_790_000_000.0)
    for _ in range(3):
        spoil_bytes(root)
        import_state(root)
    assert [name.rpartition("-")[2] for name in aside(root)] == ["1", "2", "3"]


def test_a_page_that_is_damaged_deep_inside_is_found(root: str) -> None:
    hold(root, *(ROW_A._replace(path=f"areas/f{number:05d}.html") for number in range(2_000)))
    path = Path(root, ".memhtml/state.db")
    conn = sqlite3.connect(path)
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    conn.close()
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = b"\xa5" * 4096
    path.write_bytes(data)
    with pytest.raises(StorageError) as caught:
        export_state(root)
    assert caught.value.reason == "state.open"
    assert import_state(root) == report(0, 0, 0)
    assert path.with_name(aside(root)[0]).read_bytes() == bytes(data)


def test_a_text_that_is_none_any_more_is_damage_that_an_import_mends(root: str) -> None:
    hold(root, ROW_A)
    conn = open_state(root)
    conn.execute("UPDATE access SET path = CAST(x'61ff62' AS TEXT)")
    conn.close()
    with pytest.raises(StorageError) as caught:
        export_state(root)
    assert caught.value.suggestions == ("memhtml state import",)
    write(root, LINE_B)
    assert import_state(root) == report(1, 1, 0)
    assert held(root) == [ROW_B]
    assert len(aside(root)) == 1


def test_a_database_of_another_program_with_fewer_columns_is_adopted(root: str) -> None:
    conn = sqlite3.connect(f"{root}/.memhtml/state.db")
    conn.execute("CREATE TABLE schema_migrations(name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)")
    conn.execute("CREATE TABLE access(path TEXT PRIMARY KEY, access_count INTEGER)")
    conn.execute("INSERT INTO access VALUES(?, 5)", (A,))
    conn.commit()
    conn.close()
    write(root, LINE_B)
    assert import_state(root) == report(1, 1, 0)
    assert [row.path for row in held(root)] == [A, B]
    assert aside(root) == []


def test_a_link_in_place_of_the_database_is_moved_aside_and_not_followed(
    root: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.db"
    sqlite3.connect(elsewhere).close()
    os.symlink(elsewhere, f"{root}/.memhtml/state.db")
    write(root, LINE_A)
    assert import_state(root) == report(1, 1, 0)
    assert Path(root, ".memhtml", aside(root)[0]).is_symlink()
    assert elsewhere.read_bytes() == b""


def test_a_folder_in_place_of_a_companion_is_moved_aside(root: str) -> None:
    os.mkdir(f"{root}/.memhtml/state.db-shm")
    write(root, LINE_A)
    with pytest.raises(StorageError) as caught:
        open_state(root)
    assert "memhtml state import" in caught.value.suggestions
    assert import_state(root) == report(1, 1, 0)
    assert held(root) == [ROW_A]


def test_a_sound_database_is_never_moved(root: str) -> None:
    hold(root, ROW_B)
    write(root, LINE_A)
    import_state(root)
    assert aside(root) == []
    assert held(root) == [ROW_A, ROW_B]


@pytest.mark.parametrize("act", [export_state, import_state])
def test_a_locked_database_is_neither_damaged_nor_waited_for_without_end(
    root: str, act: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(root, ROW_A)
    write(root, LINE_B)
    monkeypatch.setattr(index_sqlite, "RETRY_S", 0.05)
    monkeypatch.setattr(index_sqlite, "BUSY_S", 0.05)
    holder = sqlite3.connect(f"{root}/.memhtml/state.db", isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("UPDATE access SET access_count = 7")
    with pytest.raises(StorageError) as caught:
        act(root)
    holder.execute("ROLLBACK")
    holder.close()
    assert caught.value.reason == "state.locked"
    assert aside(root) == []
    assert held(root) == [ROW_A]


def test_a_failure_to_move_it_aside_changes_nothing(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = spoil_bytes(root)

    def refuse(old: str, new: str) -> None:
        raise PermissionError(13, "Permission denied", old)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(StorageError) as caught:
        import_state(root)
    assert caught.value.reason == "state.open"
    assert caught.value.suggestions == ()
    assert Path(root, ".memhtml/state.db").read_bytes() == data
