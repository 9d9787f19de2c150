"""What can happen to a head database: it is replaced with a warning, and answers stay right."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.head import MAIN, Store, answers, dump_built, dump_file, page

from memhtml.corpus.head import open_head
from memhtml.errors import StorageError
from memhtml.store import snapshot, snapshot_build, snapshot_files, snapshot_open, snapshot_schema
from memhtml.store.snapshot import stands_at, write_snapshot
from memhtml.store.snapshot_schema import PROGRAM

PATHS = [f"areas/inbox/n{number:03}.html" for number in range(200)]
FILES = {path: page(path, f"The number of {path} is {len(path)}.") for path in PATHS}
MORE = {**FILES, "areas/inbox/more.html": page("More", "There is more.")}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store of 200 records with a database at its only commit."""
    made = Store(str(tmp_path))
    sha = made.commit(FILES)
    assert write_snapshot(made.root, MAIN, sha, made.repo()) is not None
    return made


def tip(store: Store) -> str:
    return str(store.git.references[MAIN].target)


def truncate(path: str) -> None:
    os.truncate(path, os.path.getsize(path) // 2)


def truncate_to_nothing(path: str) -> None:
    os.truncate(path, 0)


def overwrite(path: str) -> None:
    Path(path).write_bytes(b"no database" * 1000)


def scramble_pages(path: str) -> None:
    """Every page but the first two is noise: it opens, names its commit, and answers nothing."""
    size = os.path.getsize(path)
    with open(path, "r+b") as stream:
        stream.seek(8192)
        stream.write(b"\xa5" * (size - 8192))


def make_a_folder(path: str) -> None:
    os.unlink(path)
    os.mkdir(path)


def drop_meta(path: str) -> None:
    execute(path, "DROP TABLE meta")


def other_version(path: str) -> None:
    execute(path, "UPDATE meta SET program = 'memhtml 0.0.1 schema 0'")


def other_ref(path: str) -> None:
    execute(path, "UPDATE meta SET ref = 'refs/heads/Main'")


def lost_commit(path: str) -> None:
    execute(path, f"UPDATE meta SET sha = '{'ab' * 20}'")


def leave_a_wal_alone(path: str) -> None:
    os.unlink(path)
    Path(path + "-wal").write_bytes(b"x" * 5000)


def execute(path: str, sql: str) -> None:
    conn = sqlite3.connect(path)
    with conn:
        conn.execute(sql)
    conn.close()


DAMAGES = [
    truncate,
    truncate_to_nothing,
    overwrite,
    scramble_pages,
    make_a_folder,
    drop_meta,
    other_version,
    other_ref,
    lost_commit,
    leave_a_wal_alone,
    os.unlink,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_useless_database_is_rebuilt_with_a_warning(
    store: Store, damage: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    sha = tip(store)
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        expected = answers(head, PATHS)
    damage(store.database())
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        assert answers(head, PATHS) == expected
    assert "WARN" in capsys.readouterr().err
    assert dump_file(store.database()) == dump_built(store, sha)
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        assert head.report.source == "snapshot"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_an_advance_over_a_useless_database_ends_at_the_commit(
    store: Store, damage: Callable[[str], None]
) -> None:
    damage(store.database())
    sha = store.commit(MORE, tip(store))
    write_snapshot(store.root, MAIN, sha, store.repo())
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        assert head.record("areas/inbox/more.html") is not None
        assert list(head.record_paths()) == sorted(MORE)
    assert dump_file(store.database()) == dump_built(store, sha)


def test_damage_met_in_the_middle_of_questions_is_repaired(store: Store) -> None:
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        expected = answers(head, PATHS)
        scramble_pages(store.database())
        head.database().conn.execute("PRAGMA shrink_memory")
        assert answers(head, PATHS) == expected
        assert head.report.source == "snapshot"


def test_a_database_that_fails_again_after_its_repair_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        with pytest.raises(StorageError) as caught:
            head.ask(broken)
        assert caught.value.reason == "snapshot.read"
        assert caught.value.suggestions == (f"rm -r {store.folder}",)
        assert head.record(PATHS[0]) is not None
    monkeypatch.setattr(snapshot_open, "connect", unreachable)
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        assert head.report.source == "git"
        with pytest.raises(StorageError) as caught:
            head.ask(broken)
        assert caught.value.reason == "snapshot.read"


def test_records_that_fit_neither_on_disk_nor_in_memory_are_a_named_failure(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(snapshot_open, "connect", unreachable)
    monkeypatch.setattr(snapshot_build, "build_private", full)
    with pytest.raises(StorageError) as caught:
        open_head(store.root, MAIN, tip(store), repo=store.repo())
    assert caught.value.reason == "snapshot.read"


def unreachable(*_arguments: object) -> None:
    """Find no database that can be read."""
    raise snapshot_open.Unreachable("for the test")


def test_the_folder_may_be_deleted_while_a_head_is_open(store: Store) -> None:
    sha = tip(store)
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        expected = answers(head, PATHS)
        shutil.rmtree(store.folder)
        assert answers(head, PATHS) == expected
        with open_head(store.root, MAIN, sha, repo=store.repo()) as other:
            assert other.report.source == "git"
            assert answers(other, PATHS) == expected
        assert answers(head, PATHS) == expected
    assert dump_file(store.database()) == dump_built(store, sha)


def test_a_folder_that_cannot_be_made_means_a_build_in_memory(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(store.folder)
    Path(store.folder).write_bytes(b"in the way")
    with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
        assert list(head.record_paths()) == PATHS
        assert (head.report.source, head.report.snapshot_path) == ("git", None)
    assert "memory" in capsys.readouterr().err
    assert write_snapshot(store.root, MAIN, tip(store), store.repo()) is None
    assert Path(store.folder).read_bytes() == b"in the way"


def test_an_opener_kept_waiting_by_a_builder_builds_for_itself(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = snapshot_files.hold

    def impatient(root: str, *, exclusive: bool, wait_s: float = 0.02) -> object:
        return real(root, exclusive=exclusive, wait_s=0.02)

    with snapshot_files.hold(store.root, exclusive=True) or pytest.fail("the lock is taken"):
        monkeypatch.setattr(snapshot_files, "hold", impatient)
        with open_head(store.root, MAIN, tip(store), repo=store.repo()) as head:
            assert head.report.source == "git"
            assert list(head.record_paths()) == PATHS


def test_a_busy_database_is_not_advanced_and_the_difference_stays_in_memory(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tip(store)
    new = store.commit(MORE, old)
    writer = sqlite3.connect(store.database(), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with open_head(store.root, MAIN, new, repo=store.repo()) as head:
        assert list(head.record_paths()) == sorted(MORE)
        report = head.report
        assert (report.source, report.ancestor_sha, report.reparsed) == ("snapshot+advance", old, 1)
        assert report.records == len(MORE)
    assert write_snapshot(store.root, MAIN, new, store.repo()) is None
    assert "busy" in capsys.readouterr().err
    writer.execute("ROLLBACK")
    writer.close()
    assert stands_at(store.root, MAIN, old)
    with open_head(store.root, MAIN, new, repo=store.repo()) as head:
        assert head.report.reparsed == 1
    assert stands_at(store.root, MAIN, new)


def test_an_advance_that_lost_the_race_writes_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tip(store)
    new = store.commit(MORE, old)
    real = snapshot_build.advance

    def late(
        conn: sqlite3.Connection, ref: str, old: str, new: str, repo: object, known: object
    ) -> int | None:
        monkeypatch.setattr(snapshot_build, "advance", real)
        assert write_snapshot(store.root, MAIN, new, store.repo()) is not None
        lost = real(conn, ref, old, new, store.repo())
        assert lost is None
        return lost

    monkeypatch.setattr(snapshot_build, "advance", late)
    with open_head(store.root, MAIN, new, repo=store.repo()) as head:
        assert head.report.source == "snapshot"
        assert list(head.record_paths()) == sorted(MORE)
    assert dump_file(store.database()) == dump_built(store, new)


def test_an_advance_that_fails_half_way_leaves_the_old_commit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tip(store)
    new = store.commit(MORE, old)
    before = dump_file(store.database())

    def fails(*_values: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(snapshot_schema, "write_meta", fails)
        assert write_snapshot(store.root, MAIN, new, store.repo()) is None
    assert dump_file(store.database()) == before


def test_a_build_that_fails_leaves_nothing_behind(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.unlink(store.database())

    def fails(*_values: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(snapshot_schema, "write_meta", fails)
        assert write_snapshot(store.root, MAIN, tip(store), store.repo()) is None
    assert os.listdir(store.folder) == ["lock"]


def test_a_rebuild_asked_for_reads_all_of_git(store: Store) -> None:
    execute(store.database(), "UPDATE records SET title = 'wrong'")
    sha = tip(store)
    write_snapshot(store.root, MAIN, sha, store.repo(), anew=True)
    assert dump_file(store.database()) == dump_built(store, sha)


def test_a_rewound_ref_takes_its_database_along(store: Store) -> None:
    old = tip(store)
    new = store.commit(MORE, old)
    write_snapshot(store.root, MAIN, new, store.repo())
    with open_head(store.root, MAIN, old, repo=store.repo()) as head:
        # A session on the older base reads the difference backwards and writes nothing.
        assert (head.report.source, head.report.ancestor_sha) == ("snapshot+advance", new)
        assert (head.report.reparsed, head.report.records) == (1, len(FILES))
    assert stands_at(store.root, MAIN, new)
    assert write_snapshot(store.root, MAIN, old, store.repo()) is not None
    assert dump_file(store.database()) == dump_built(store, old)


def test_the_report_says_what_the_database_holds(store: Store) -> None:
    sha = store.commit({**MORE, "README.html": b"<p>x</p>", "areas/bad.html": b"x"}, tip(store))
    report = write_snapshot(store.root, MAIN, sha, store.repo())
    assert report is not None
    assert report.to_json() == {
        "sha": sha,
        "path": store.database(),
        "bytes": os.path.getsize(store.database()),
        "rows": len(MORE),
        "ms": report.ms,
        "pruned": [],
    }
    os.unlink(store.database())
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        assert head.report.to_json() == {
            "sha": sha,
            "records": len(MORE),
            "skipped": 2,
            "loadMs": head.report.load_ms,
            "source": "git",
            "snapshotPath": None,
            "ancestorSha": None,
            "reparsed": None,
        }
    with open_head(store.root, MAIN, sha, repo=store.repo()) as head:
        assert head.report.skipped is None
        assert head.report.snapshot_path == store.database()
        assert head.database().meta.program == PROGRAM


def test_two_processes_advancing_at_once_agree(store: Store) -> None:
    shas = [tip(store)]
    for number in range(6):
        changed = {**FILES, PATHS[number]: page("Changed", f"It was changed {number} times.")}
        shas.append(store.commit(changed, shas[-1]))
    script = (
        "import sys\n"
        "from memhtml.corpus.head import open_head\n"
        "from memhtml.store.repo import Repo\n"
        "from memhtml.store.snapshot import write_snapshot\n"
        "root, *shas = sys.argv[1:]\n"
        "for sha in shas:\n"
        "    with open_head(root, 'refs/heads/main', sha, repo=Repo(root)) as head:\n"
        "        assert head.report.records == 200, head.report\n"
        "        assert len(list(head.record_paths())) == 200\n"
        "write_snapshot(root, 'refs/heads/main', shas[-1], Repo(root))\n"
    )
    command = [sys.executable, "-c", script, store.root, *shas]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _number in range(3)]
    failures = [process.communicate()[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], failures
    assert stands_at(store.root, MAIN, shas[-1])
    assert dump_file(store.database()) == dump_built(store, shas[-1])


def test_a_long_difference_is_built_instead_of_held(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from memhtml.corpus import head as heads

    old = tip(store)
    new = store.commit({PATHS[0]: FILES[PATHS[0]]}, old)
    write_snapshot(store.root, MAIN, new, store.repo())
    monkeypatch.setattr(heads, "_MOST_LAID_PATHS", 50)
    with open_head(store.root, MAIN, old, repo=store.repo()) as head:
        assert (head.report.source, head.report.records) == ("git", len(FILES))
        assert list(head.record_paths()) == PATHS
    assert snapshot.stands_at(store.root, MAIN, new)
    assert "memory" in capsys.readouterr().err


def test_a_long_difference_of_other_files_is_built_instead_of_held(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from memhtml.corpus import head as heads

    old = tip(store)
    new = store.commit({**FILES, **{f"notes/{n}.txt": b"text" for n in range(60)}}, old)
    write_snapshot(store.root, MAIN, new, store.repo())
    for most, source in ((60, "snapshot+advance"), (59, "git")):
        monkeypatch.setattr(heads, "_MOST_LAID_OTHERS", most)
        with open_head(store.root, MAIN, old, repo=store.repo()) as head:
            assert (head.report.source, head.report.records) == (source, len(FILES))
            assert head.file_kind("notes") is None
    assert "memory" in capsys.readouterr().err
