"""What is the same for both databases: waiting, functions, a disk that refuses."""

from __future__ import annotations

import resource
import sqlite3
from pathlib import Path

import pytest
from tests.support.index import anew, commit, index_paths, write_file
from tests.support.session import in_child, page

from memhtml.errors import StorageError
from memhtml.index import sqlite


class Without:
    """A connection of a SQLite that lacks our functions; what it is given gets other names."""

    def __init__(self) -> None:
        self.conn = sqlite3.connect(":memory:")

    def execute(self, statement: str) -> None:
        raise sqlite3.OperationalError(f"no such function in {statement}")

    def create_function(self, name: str, count: int, act: object, **how: bool) -> None:
        self.conn.create_function(f"own_{name}", count, act, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("exp(0.0)", 1.0),
        ("ln(1.0)", 0.0),
        ("ln(0.0)", None),
        ("ln(NULL)", None),
        ("unixepoch('2026-05-04T09:00:00Z')", 1777885200),
        ("unixepoch('2026-05-04T09:00:00.123Z')", 1777885200),
        ("unixepoch('2026-05-04')", 1777852800),
        ("unixepoch('soon')", None),
        ("unixepoch(NULL)", None),
    ],
)
def test_functions_are_there_whatever_sqlite_was_built_with(call: str, expected: object) -> None:
    lacking = Without()
    sqlite.complete_functions(lacking)  # type: ignore[arg-type]
    assert lacking.conn.execute(f"SELECT own_{call}").fetchone() == (expected,)
    lacking.conn.close()
    usual = sqlite3.connect(":memory:")
    sqlite.complete_functions(usual)
    assert usual.execute(f"SELECT {call}").fetchone() == (expected,)
    usual.close()


def test_another_error_than_a_busy_one_is_not_waited_for() -> None:
    def act() -> None:
        raise sqlite3.OperationalError("no such table")

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        sqlite.patiently(act, "index.locked")


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    conn = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    conn.execute("CREATE TABLE t(x)")
    with pytest.raises(KeyboardInterrupt), sqlite.writing(conn):
        conn.execute("INSERT INTO t VALUES(1)")
        raise KeyboardInterrupt
    assert not conn.in_transaction
    assert conn.execute("SELECT * FROM t").fetchall() == []
    conn.close()


def test_a_full_disk_is_a_clear_failure_and_a_later_rebuild_succeeds(root: str) -> None:
    for number in range(60):
        write_file(root, f"areas/n{number}.html", page(f"{number} " + "word " * 400))
    commit(root)

    def rebuild() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        with pytest.raises(StorageError, match=r"index\.open"):
            anew(root)

    assert in_child(rebuild) == 0
    assert anew(root).files_indexed == 62
    assert len(index_paths(root)) == 62
