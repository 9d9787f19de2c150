"""File names, the lock around the folder, and which databases stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.head import MAIN, Store, page

from memhtml.store import snapshot_files as files
from memhtml.store.snapshot import open_database, prune, stands_at, write_snapshot

A = {"areas/inbox/a.html": page()}


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        ("refs/heads/main", "main.db"),
        ("refs/heads/curate/2026-11-30", "curate%2F2026-11-30.db"),
        ("refs/notes/x", "refs%2Fnotes%2Fx.db"),
        ("refs/heads/é%", "%C3%A9%25.db"),
        ("HEAD", "HEAD.db"),
    ],
)
def test_a_database_is_named_after_its_ref(ref: str, name: str) -> None:
    assert files.file_name(ref) == name


def test_a_database_path_is_absolute_when_the_root_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = os.path.join(os.getcwd(), ".memhtml", "snapshots", "main.db")
    assert files.database_path(".", MAIN) == expected


def test_a_shared_lock_admits_readers_and_keeps_a_builder_out(tmp_path: Path) -> None:
    root = str(tmp_path)
    with pytest.raises(FileNotFoundError):
        files.hold(root, exclusive=False)
    first = files.hold(root, exclusive=True)
    assert first is not None
    assert files.hold(root, exclusive=False, wait_s=0.02) is None
    first.close()
    one, two = files.hold(root, exclusive=False), files.hold(root, exclusive=False)
    assert one is not None
    assert two is not None
    assert files.hold(root, exclusive=True, wait_s=0.02) is None
    one.close()
    two.close()
    with files.hold(root, exclusive=True, wait_s=0.02) or pytest.fail("still held") as guard:
        assert guard.exclusive


def test_a_lock_whose_file_was_deleted_is_taken_on_the_new_file(tmp_path: Path) -> None:
    root = str(tmp_path)
    old = files.hold(root, exclusive=True)
    assert old is not None
    os.unlink(os.path.join(files.folder(root), "lock"))
    new = files.hold(root, exclusive=True, wait_s=0.02)
    assert new is not None
    old.close()
    assert files.hold(root, exclusive=False, wait_s=0.02) is None
    new.close()


def test_publishing_drops_a_wal_that_outlived_its_database(tmp_path: Path) -> None:
    (tmp_path / "main.db.new").write_bytes(b"built")
    (tmp_path / "main.db-wal").write_bytes(b"stale")
    files.publish(str(tmp_path / "main.db.new"), str(tmp_path / "main.db"))
    assert os.listdir(tmp_path) == ["main.db"]


def test_putting_aside_takes_the_wal_along_and_keeps_one_generation(tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        (tmp_path / "main.db").write_bytes(content)
        (tmp_path / "main.db-wal").write_bytes(content)
        files.put_aside(str(tmp_path / "main.db"))
    assert sorted(os.listdir(tmp_path)) == ["main.db-wal.bad", "main.db.bad"]
    assert (tmp_path / "main.db.bad").read_bytes() == b"second"


def make_databases(store: Store, count: int) -> tuple[list[str], list[str]]:
    """One database for each of `count` branches, every commit a second newer."""
    shas: list[str] = []
    names = [f"refs/heads/b{number}" for number in range(count)]
    for number, ref in enumerate(names):
        changed = {**A, f"areas/inbox/n{number}.html": page(f"Number {number}", "It is one.")}
        shas.append(store.commit(changed, *shas, ref=ref))
        open_database(store.root, ref, shas[-1], store.repo()).database.close()
    return names, shas


def test_at_most_four_databases_stay_and_the_oldest_go_newest_first(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    names, shas = make_databases(store, 4)
    main = store.commit(A, *shas)
    open_database(store.root, "refs/heads/b0", shas[0], store.repo()).database.close()
    report = write_snapshot(store.root, MAIN, main, store.repo())
    assert report is not None
    assert report.pruned == (shas[0],)
    tip = store.commit(A, main)
    more = store.commit(A, *shas, tip, ref="refs/heads/other")
    open_database(store.root, "refs/heads/other", more, store.repo()).database.close()
    assert not stands_at(store.root, names[1], shas[1])
    kept = sorted(name for name in os.listdir(store.folder) if name.endswith(".db"))
    assert kept == ["b2.db", "b3.db", "main.db", "other.db"]


def test_a_database_without_a_ref_goes_unless_a_session_names_it(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    names, shas = make_databases(store, 3)
    for ref in names[:2]:
        store.git.references.delete(ref)
    sessions = tmp_path / ".memhtml" / "sessions"
    sessions.mkdir()
    (sessions / "s1.json").write_text(json.dumps({"id": "s1", "ref": names[0], "ops": []}))
    (sessions / "s2.json").write_text("no JSON")
    assert prune(store.root, store.repo()) == [shas[1]]
    assert prune(store.root, store.repo(), live_refs=lambda: ()) == [shas[0]]
    assert stands_at(store.root, names[2], shas[2])


def test_a_file_that_names_no_commit_goes_without_being_listed(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    sha = store.commit(A)
    (Path(store.folder) / "junk.db").write_bytes(b"no database")
    (Path(store.folder) / "main.db.new").write_bytes(b"left by a crash")
    report = write_snapshot(store.root, MAIN, sha, store.repo())
    assert report is not None
    assert report.pruned == ()
    assert sorted(os.listdir(store.folder)) == ["lock", "main.db"]


def test_a_database_in_use_is_not_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOCK_WAIT_S", 0.02)
    store = Store(str(tmp_path))
    names, shas = make_databases(store, 1)
    store.git.references.delete(names[0])
    with files.hold(store.root, exclusive=False) or pytest.fail("the lock is taken"):
        assert prune(store.root, store.repo()) == []
    assert prune(store.root, store.repo()) == shas


def test_a_warm_open_loads_neither_pygit2_nor_the_parser(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    sha = store.commit(A)
    write_snapshot(store.root, MAIN, sha, store.repo())
    script = (
        "import sys\n"
        "from memhtml.corpus.head import open_head\n"
        "from memhtml.store.repo import Repo\n"
        "root, sha = sys.argv[1:]\n"
        "with open_head(root, 'refs/heads/main', sha, repo=Repo(root)) as h:\n"
        "    assert h.record('areas/inbox/a.html')\n"
        "    assert h.report.source == 'snapshot'\n"
        "heavy = {'pygit2', 'selectolax', 'subprocess', 'dataclasses', 'memhtml_format.record',\n"
        "         'memhtml.store.snapshot_build', 'logging', 'tempfile', 'pathlib'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    answer = subprocess.run(
        [sys.executable, "-I", "-c", script, store.root, sha], capture_output=True, check=True
    )
    assert answer.stdout == b"[]\n"


def test_the_first_database_of_a_store_keeps_the_folder_out_of_git(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    os.rmdir(store.folder)
    sha = store.commit(A)
    open_database(store.root, MAIN, sha, store.repo()).database.close()
    exclude = (tmp_path / ".git" / "info" / "exclude").read_text()
    assert ".memhtml/snapshots/" in exclude.splitlines()
