"""Opening the two databases: made, migrated, damaged, foreign, planted, read-only."""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.command import ROOTS
from tests.support.index import AT, content, detail
from tests.support.sandbox import support_for
from tests.support.session import make_store

from memhtml.errors import StorageError
from memhtml.index import database, files, follow, sqlite
from memhtml.index.database import open_index, open_state, open_writer
from memhtml.index.projection import write_detail
from memhtml.index.schema import INDEX_MIGRATIONS, STATE_MIGRATIONS
from memhtml.store.repo import Repo

A, B = "areas/inbox/a.html", "areas/inbox/b.html"
REFERENCE_ACCESS = (
    "CREATE TABLE access(path TEXT PRIMARY KEY, access_count INTEGER NOT NULL DEFAULT 0,"
    " reinforcement_count INTEGER NOT NULL DEFAULT 0, outcome_score REAL NOT NULL DEFAULT 0,"
    " last_accessed_at TEXT, last_reinforced_at TEXT, updated_at TEXT NOT NULL)"
)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path)


def fill(root: str, *paths: str) -> None:
    with open_index(root) as index:
        for path in paths:
            write_detail(index.conn, detail(path, claim=f"The fact of {path}."), at=AT)


def overwrite(path: str, change: Callable[[bytearray], bytearray]) -> None:
    with open(path, "rb") as file:
        data = bytearray(file.read())
    with open(path, "wb") as file:
        file.write(change(data))


def test_an_index_is_made_with_every_migration_and_the_modes_of_the_page(root: str) -> None:
    with open_index(root) as index:
        names = {name for name, _statements in INDEX_MIGRATIONS}
        assert sqlite.applied(index.conn) == names
        assert sqlite.applied(index.conn, "state") == {name for name, _ in STATE_MIGRATIONS}
        modes = {
            pragma: index.conn.execute(f"PRAGMA {pragma}").fetchone()[0]
            for pragma in (
                "main.journal_mode",
                "state.journal_mode",
                "synchronous",
                "foreign_keys",
                "busy_timeout",
            )
        }
        assert modes == {
            "main.journal_mode": "wal",
            "state.journal_mode": "wal",
            "synchronous": 1,
            "foreign_keys": 1,
            "busy_timeout": 5000,
        }
        assert index.has_state
        assert not index.read_only
    assert sorted(os.listdir(f"{root}/.memhtml")) == ["index.db", "index.db-lock", "state.db"]


def test_an_index_without_state_does_not_make_one(root: str) -> None:
    with open_index(root, state=False) as index:
        assert not index.has_state
    assert not database.has_state_file(root)


def test_a_second_open_changes_no_byte(root: str) -> None:
    fill(root, A)
    before = Path(files.index_path(root)).read_bytes()
    with open_index(root) as index:
        assert len(content(index.conn)["files"]) == 1
    assert Path(files.index_path(root)).read_bytes() == before


def _open_and_count(root: str) -> None:
    with open_index(root) as index:
        index.conn.execute("SELECT count(*) FROM files").fetchone()


def test_many_processes_make_one_index_together(root: str) -> None:
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_open_and_count, args=(root,)) for _ in range(8)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 8
    with open_index(root) as index:
        rows = index.conn.execute("SELECT count(*) FROM schema_migrations").fetchone()
    assert rows == (len(INDEX_MIGRATIONS),)


@pytest.mark.parametrize("what", ["garbage", "truncated", "folder", "text"])
def test_a_damaged_index_names_the_rebuild_and_is_left_as_it_is(root: str, what: str) -> None:
    fill(root, *(f"areas/inbox/{number}.html" for number in range(200)))
    path = files.index_path(root)
    if what == "garbage":
        overwrite(path, lambda data: bytearray(b"\xff" * len(data)))
    elif what == "truncated":
        overwrite(path, lambda data: data[: len(data) // 2 + 17])
    elif what == "text":
        Path(path).write_text("not a database, and longer than a header " * 10)
    else:
        os.unlink(path)
        os.mkdir(path)
    with pytest.raises(StorageError) as caught, open_index(root) as index:
        content(index.conn)
    assert caught.value.reason == "index.open"
    assert caught.value.suggestions == ("memhtml index rebuild",)
    assert os.path.exists(path)


def test_flipped_bits_are_an_answer_or_a_clear_failure_never_a_crash(root: str) -> None:
    fill(root, *(f"areas/inbox/{number}.html" for number in range(60)))
    path = files.index_path(root)
    whole = Path(path).read_bytes()
    chance = random.Random(7)
    reasons = set()
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(40):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        Path(path).write_bytes(data)
        try:
            with open_index(root) as index:
                content(index.conn)
        except StorageError as error:
            reasons.add(error.reason)
    assert reasons == {"index.open"}


def test_a_lost_table_is_damage(root: str) -> None:
    fill(root, A)
    with sqlite3.connect(files.index_path(root)) as conn:
        conn.execute("DROP TABLE chunks")
    conn.close()
    with pytest.raises(StorageError, match=r"index\.open"), open_index(root) as index:
        index.conn.execute("SELECT * FROM chunks")


def test_a_bug_of_ours_stays_an_sqlite_error(root: str) -> None:
    with pytest.raises(sqlite3.OperationalError), open_index(root) as index:
        index.conn.execute("SELECT FROM")


def foreign(root: str) -> None:
    os.makedirs(f"{root}/.memhtml", exist_ok=True)
    conn = sqlite3.connect(files.index_path(root))
    conn.execute("CREATE TABLE schema_migrations(name TEXT PRIMARY KEY, applied_at TEXT)")
    conn.execute("INSERT INTO schema_migrations VALUES('0001_init.sql', '2026-01-01')")
    conn.execute("CREATE TABLE files(path TEXT PRIMARY KEY, other TEXT)")
    conn.execute("INSERT INTO files VALUES('x', 'y')")
    conn.commit()
    conn.close()


def test_another_programs_index_is_no_index_for_a_read(root: str) -> None:
    foreign(root)
    before = Path(files.index_path(root)).read_bytes()
    with pytest.raises(StorageError, match=r"index\.open") as caught:
        open_index(root)
    assert caught.value.suggestions == ("memhtml index rebuild",)
    assert Path(files.index_path(root)).read_bytes() == before


def test_another_programs_index_is_moved_aside_by_a_writer(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign(root)
    with open_writer(root) as index:
        assert content(index.conn)["files"] == []
    assert "moved aside" in capsys.readouterr().err
    kept = sqlite3.connect(files.aside_path(root))
    assert kept.execute("SELECT * FROM files").fetchall() == [("x", "y")]
    kept.close()


def test_a_journal_of_another_programs_index_goes_with_it(root: str) -> None:
    foreign(root)
    journal = Path(f"{files.index_path(root)}-journal")
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\0" * 504)
    open_writer(root).close()
    assert not journal.exists()


def _open_to_write(root: str) -> None:
    with open_writer(root) as index:
        write_detail(index.conn, detail(f"areas/{os.getpid()}.html"), at=AT)


def test_writers_at_once_move_another_programs_index_aside_once(root: str) -> None:
    foreign(root)
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_open_to_write, args=(root,)) for _ in range(6)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 6
    with open_index(root) as index:
        assert len(content(index.conn)["files"]) == 6
    kept = sqlite3.connect(files.aside_path(root))
    assert kept.execute("SELECT * FROM files").fetchall() == [("x", "y")]
    kept.close()


def test_an_index_without_our_table_of_migrations_is_another_programs(root: str) -> None:
    os.makedirs(f"{root}/.memhtml")
    conn = sqlite3.connect(files.index_path(root))
    conn.execute("CREATE TABLE something(x)")
    conn.close()
    with pytest.raises(StorageError, match="another program"):
        open_index(root)


def test_a_newer_releases_index_is_not_written_to(root: str) -> None:
    fill(root, A)
    conn = sqlite3.connect(files.index_path(root))
    conn.execute("INSERT INTO schema_migrations VALUES('9999-later', '2030-01-01')")
    conn.commit()
    conn.close()
    with pytest.raises(StorageError, match="newer release"):
        open_index(root)


def test_a_damaged_index_is_moved_aside_only_where_that_was_asked(root: str) -> None:
    os.makedirs(f"{root}/.memhtml")
    Path(files.index_path(root)).write_bytes(b"garbage " * 100)
    with pytest.raises(StorageError, match=r"index\.open"):
        open_writer(root)
    with open_writer(root, replace_damaged=True) as index:
        assert content(index.conn)["files"] == []
    assert Path(files.aside_path(root)).read_bytes() == b"garbage " * 100


def test_an_index_that_is_open_is_not_moved_aside(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "OPEN_WAIT_S", 0.05)
    with open_index(root), pytest.raises(StorageError, match=r"index\.locked"):
        database.replace(root, "a test")
    assert not os.path.exists(files.aside_path(root))


def lock(path: str) -> sqlite3.Connection:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    return holder


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.01)
    monkeypatch.setattr(sqlite, "RETRY_S", 0.1)


def test_a_locked_index_is_refused_after_the_bound(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch)
    fill(root, A)
    holder = lock(files.index_path(root))
    refused = pytest.raises(StorageError, match=r"index\.locked")
    with open_index(root) as index, refused, sqlite.writing(index.conn):
        raise AssertionError("the lock was not ours to have")
    holder.close()


def test_a_locked_index_is_read_all_the_same(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    fill(root, A)
    holder = lock(files.index_path(root))
    with open_index(root) as index:
        assert len(content(index.conn)["files"]) == 1
    holder.close()


def test_a_lock_that_is_let_go_within_the_bound_is_waited_for(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.01)
    fill(root, A)
    holder = lock(files.index_path(root))
    tries = []

    def begin() -> None:
        tries.append(1)
        if len(tries) == 3:
            holder.execute("ROLLBACK")
        index.conn.execute("BEGIN IMMEDIATE")

    with open_index(root) as index:
        sqlite.patiently(begin, "index.locked")
        assert len(tries) == 3
    holder.close()


def test_a_new_index_that_another_process_keeps_locked_is_refused(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch)
    os.makedirs(f"{root}/.memhtml")
    holder = lock(files.index_path(root))
    with pytest.raises(StorageError, match=r"index\.locked"):
        open_index(root)
    holder.close()


def test_a_locked_new_state_is_refused(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    os.makedirs(f"{root}/.memhtml")
    holder = lock(files.state_path(root))
    with pytest.raises(StorageError, match=r"state\.locked"):
        open_state(root)
    holder.close()


@pytest.mark.parametrize("open_it", [open_index, open_state])
def test_a_damaged_state_is_refused_and_never_touched(
    root: str, open_it: Callable[[str], object]
) -> None:
    os.makedirs(f"{root}/.memhtml")
    Path(files.state_path(root)).write_bytes(b"precious " * 100)
    with pytest.raises(StorageError) as caught:
        open_it(root)
    assert caught.value.reason == "state.open"
    assert caught.value.suggestions[-1] == "memhtml state import"
    assert Path(files.state_path(root)).read_bytes() == b"precious " * 100


def test_damage_of_state_found_by_a_statement_is_told_from_the_indexs(root: str) -> None:
    with open_index(root) as index:
        index.conn.executemany(
            "INSERT INTO state.access(path) VALUES(?)", [(f"{n:060}",) for n in range(2000)]
        )
    overwrite(files.state_path(root), lambda data: data[:9000] + b"\xff" * (len(data) - 9000))
    with pytest.raises(StorageError) as caught, open_index(root) as index:
        index.conn.execute("SELECT count(DISTINCT path) FROM state.access").fetchall()
    assert caught.value.reason == "state.open"


@pytest.mark.parametrize("names", [(), ("S0001_access.sql", "S0002_entity_corroboration.sql")])
def test_the_references_state_is_adopted_with_every_row(root: str, names: tuple[str, ...]) -> None:
    os.makedirs(f"{root}/.memhtml")
    row = (A, 7, 2, 0.5, "2026-01-01T00:00:00Z", None, "2026-01-01T00:00:00Z")
    conn = sqlite3.connect(files.state_path(root))
    conn.execute(REFERENCE_ACCESS)
    if names:
        conn.execute("CREATE TABLE schema_migrations(name TEXT PRIMARY KEY, applied_at TEXT)")
        conn.executemany("INSERT INTO schema_migrations VALUES(?, '2026')", [(n,) for n in names])
    conn.execute("INSERT INTO access VALUES(?, ?, ?, ?, ?, ?, ?)", row)
    conn.commit()
    conn.close()
    with open_index(root) as index:
        columns = ", ".join(database.ACCESS_COLUMNS)
        assert index.conn.execute(f"SELECT {columns} FROM state.access").fetchall() == [row]


def test_a_state_with_fewer_columns_gets_what_it_lacks_and_keeps_its_rows(root: str) -> None:
    os.makedirs(f"{root}/.memhtml")
    conn = sqlite3.connect(files.state_path(root))
    conn.execute("CREATE TABLE access(path TEXT PRIMARY KEY, access_count INTEGER NOT NULL)")
    conn.execute("INSERT INTO access VALUES(?, 3)", (A,))
    conn.commit()
    conn.close()
    state = open_state(root)
    row = state.execute(f"SELECT {', '.join(database.ACCESS_COLUMNS)} FROM access").fetchone()
    state.close()
    assert row == (A, 3, 0, 0.0, None, None, None)


@pytest.mark.parametrize("name", ["index.db", "index.db-wal", "index.db-shm", "index.db-lock"])
def test_a_planted_link_does_not_lead_the_index_out_of_the_store(root: str, name: str) -> None:
    victim = Path(root, "victim")
    victim.write_bytes(b"")
    os.makedirs(f"{root}/.memhtml")
    os.symlink(victim, f"{root}/.memhtml/{name}")
    with pytest.raises(StorageError) as caught:
        open_index(root)
    assert caught.value.reason == "index.open"
    assert victim.read_bytes() == b""


def test_a_planted_link_is_moved_aside_by_a_rebuild_and_not_followed(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "store"))
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    os.symlink(victim, files.index_path(root))
    follow.rebuild(root, repo=Repo(root), embedder=None)
    assert victim.read_bytes() == b""
    assert not os.path.islink(files.index_path(root))
    assert os.path.islink(files.aside_path(root))


@pytest.mark.parametrize("name", ["state.db", "state.db-wal"])
def test_a_planted_link_does_not_lead_the_state_out_of_the_store(root: str, name: str) -> None:
    victim = Path(root, "victim")
    victim.write_bytes(b"")
    os.makedirs(f"{root}/.memhtml")
    os.symlink(victim, f"{root}/.memhtml/{name}")
    for open_it in (open_index, open_state):
        with pytest.raises(StorageError, match=r"state\.open"):
            open_it(root)
    assert victim.read_bytes() == b""
    assert os.path.islink(f"{root}/.memhtml/{name}")


def test_a_link_in_place_of_the_folder_is_refused(root: str) -> None:
    elsewhere = Path(root, "elsewhere")
    elsewhere.mkdir()
    os.symlink(elsewhere, f"{root}/.memhtml")
    with pytest.raises(StorageError, match=r"index\.open"):
        open_index(root)
    with pytest.raises(StorageError, match=r"state\.open"):
        open_state(root)
    assert os.listdir(elsewhere) == []


READS = """
import sys
from memhtml.index.database import open_index, open_state
with open_index(sys.argv[1]) as index:
    print(index.read_only, index.has_state)
    print([path for (path,) in index.conn.execute("SELECT path FROM files ORDER BY path")])
    from memhtml.index.state import bump
    print(bump(index.conn, ["areas/inbox/a.html"], "neutral", 1.0))
print(open_state(sys.argv[1]).execute("SELECT count(*) FROM access").fetchone())
"""


def on_read_only_mount(root: str) -> list[str]:
    """What reading says where nothing can be written."""
    bwrap = support_for(root).bwrap
    assert bwrap is not None
    words = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", sys.executable, "-c", READS, root]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_read_only_mount_is_read_as_it_is(root: str) -> None:
    fill(root, A, B)
    before = sorted(os.listdir(f"{root}/.memhtml"))
    said = on_read_only_mount(root)
    assert said == ["True True", f"['{A}', '{B}']", f"([], ['{A}'])", "(0,)"]
    assert sorted(os.listdir(f"{root}/.memhtml")) == before


def test_a_read_only_mount_of_a_store_in_use_is_read_with_its_log(root: str) -> None:
    fill(root, A)
    with open_index(root) as index:
        write_detail(index.conn, detail(B, claim="Still in the log."), at=AT)
        assert on_read_only_mount(root)[1] == f"['{A}', '{B}']"


def test_a_read_only_mount_without_an_index_answers_no_rows(root: str) -> None:
    said = on_read_only_mount(root)
    assert said == ["True False", "[]", f"([], ['{A}'])", "(0,)"]
