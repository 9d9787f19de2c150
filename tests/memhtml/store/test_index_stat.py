"""Stat data in the index: what was just written is no edit, and nobody's edit is hidden."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.store import commit_on, git, make_repository, put_file

from memhtml.errors import MemhtmlError
from memhtml.store import checkout, index, index_stat, journey
from memhtml.store.checkout import follow, put_back
from memhtml.store.index_stat import fill_in
from memhtml.store.repo import Repo
from memhtml.store.scaffold import init

BASE = {f"areas/t{n % 3}/f{n}.html": b"%d\n" % n for n in range(40)} | {
    "areas-z": b"z\n",
    "areas/long" + "x" * 240 + ".html": b"l\n",
}
WRITES = {"areas/t1/f1.html": b"new\n", "areas/t1/f1": b"n\n", "areas/new/n.html": b"n\n"}
LONG = "areas/" + "/".join("y" * 250 for _ in range(17)) + "/n.html"


class Store:
    """A base commit that is checked out, and a commit after it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.base = make_repository(root, BASE)
        self.repo = Repo(root)
        self.next = commit_on(self.repo, self.base, WRITES, ("areas/t2/f2.html",))
        self.paths = [*WRITES, "areas/t2/f2.html"]

    def follow(self) -> None:
        follow(self.repo, self.base, self.next, self.paths)

    def edited(self) -> bytes:
        """What git takes for edited without looking into files."""
        return git(self.root, "diff-files", "--name-only")

    @property
    def git_dir(self) -> str:
        return os.path.join(self.root, ".git")

    @property
    def index(self) -> str:
        return os.path.join(self.git_dir, "index")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def left_overs(store: Store) -> list[str]:
    """Locks and temporary files in the git folder."""
    return [name for name in os.listdir(store.git_dir) if name.endswith((".lock", "-tmp"))]


@pytest.mark.parametrize("version", [2, 3])
def test_followed_files_are_no_edits(store: Store, version: int) -> None:
    if version == 3:
        put_file(store.root, "areas/t0/later.html", b"later\n")
        git(store.root, "add", "--intent-to-add", "areas/t0/later.html")
    assert Path(store.index).read_bytes()[7] == version
    store.follow()
    assert store.edited() in (b"", b"areas/t0/later.html\n")
    assert git(store.root, "diff-index", "--cached", "--name-only", store.next) in (
        b"",
        b"areas/t0/later.html\n",
    )
    assert left_overs(store) == []
    git(store.root, "fsck", "--strict", "--no-dangling")


def test_what_is_put_back_is_no_edit(store: Store) -> None:
    store.follow()
    assert put_back(store.repo, store.next, store.base) == []
    assert store.edited() == b""


def test_a_new_store_has_no_edits(tmp_path: Path) -> None:
    root = str(tmp_path / "new")
    init(root)
    assert git(root, "diff-files") == b""


def test_a_name_too_long_for_its_length_field_is_found(store: Store) -> None:
    commit = commit_on(store.repo, store.base, {LONG: b"n\n"})
    assert len(LONG) > 0xFFF
    follow(store.repo, store.base, commit, [LONG])
    assert git(store.root, "diff-index", "--cached", commit) == b""
    assert store.edited() == b""


def test_git_reads_the_index_as_before(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journey, "fill_in", lambda *_words: False)
    store.follow()
    monkeypatch.undo()
    entries = git(store.root, "ls-files", "-s", "--debug")
    plain = git(store.root, "ls-files", "-s", "-t", "-v")
    assert put_back(store.repo, store.next, store.base) == []
    store.follow()
    assert git(store.root, "ls-files", "-s", "-t", "-v") == plain
    assert git(store.root, "ls-files", "-s", "--debug") != entries
    git(store.root, "update-ref", "refs/heads/main", store.next)
    assert git(store.root, "status", "--porcelain") == b""


@pytest.mark.parametrize("form", ["--index-version=4", "--split-index", "--skip-hash"])
def test_an_index_of_another_form_stays_right(store: Store, form: str) -> None:
    if form == "--skip-hash":
        data = Path(store.index).read_bytes()
        Path(store.index).write_bytes(data[:-20] + bytes(20))
        git(store.root, "config", "index.skipHash", "true")
    else:
        git(store.root, "update-index", form)
    store.follow()
    assert git(store.root, "diff-index", "--cached", store.next) == b""
    git(store.root, "update-index", "-q", "--refresh")
    assert store.edited() == b""


def test_an_edit_right_after_a_file_was_placed_is_not_hidden(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit(path: str) -> None:
        if path == "index":
            put_file(store.root, "areas/t1/f1.html", b"NEW\n")

    monkeypatch.setattr(checkout, "on_move", edit)
    store.follow()
    git(store.root, "update-index", "-q", "--refresh", check=False)
    assert store.edited() == b"areas/t1/f1.html\n"


def test_the_index_keeps_its_time_so_that_other_quick_edits_are_seen(store: Store) -> None:
    """Git looks into a file that is as young as its index: ours must not make the index younger."""
    put_file(store.root, "areas/t0/f0.html", b"A\n")
    git(store.root, "add", "areas/t0/f0.html")
    before = os.stat(store.index)
    put_file(store.root, "areas/t0/f0.html", b"B\n")
    os.utime(
        os.path.join(store.root, "areas/t0/f0.html"), ns=(before.st_mtime_ns, before.st_mtime_ns)
    )
    path = "areas/t0/f3.html"
    oid = git(store.root, "rev-parse", f"HEAD:{path}").decode().strip()
    info = os.stat(os.path.join(store.root, path))
    assert fill_in(store.git_dir, {path: ((0o100644, oid), info)})
    after = os.stat(store.index)
    assert (after.st_mtime_ns, after.st_mode) == (before.st_mtime_ns, before.st_mode)
    assert after.st_ino != before.st_ino


def test_an_entry_of_other_content_or_mode_is_left_alone(store: Store) -> None:
    before = Path(store.index).read_bytes()
    info = os.stat(store.index)
    oid = git(store.root, "rev-parse", "HEAD:areas/t0/f0.html").decode().strip()
    for path, side in (
        ("areas/t0/f0.html", (0o100755, oid)),
        ("areas/t0/f0.html", (0o100644, "12" * 20)),
        ("t0/f0.html", (0o100644, oid)),
        ("areas/t0/none.html", (0o100644, oid)),
    ):
        assert not fill_in(store.git_dir, {path: (side, info)})
    assert Path(store.index).read_bytes() == before
    assert left_overs(store) == []


@pytest.mark.parametrize("content", [b"", b"rubbish", b"DIRC\0\0\0\2"])
def test_what_is_no_index_is_left_alone(store: Store, content: bytes) -> None:
    Path(store.index).write_bytes(content)
    side = (0o100644, "12" * 20)
    assert not fill_in(store.git_dir, {"a": (side, os.stat(store.index))})
    assert Path(store.index).read_bytes() == content


def filled(store: Store) -> bool:
    """Fill in one clean entry."""
    path = "areas/t0/f0.html"
    oid = git(store.root, "rev-parse", f"HEAD:{path}").decode().strip()
    info = os.stat(os.path.join(store.root, path))
    return fill_in(store.git_dir, {path: ((0o100644, oid), info)})


def test_a_very_large_index_is_left_to_git(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_stat, "LARGEST_BYTES", os.stat(store.index).st_size - 1)
    assert not filled(store)
    assert left_overs(store) == []


def test_a_held_index_lock_is_left_alone(store: Store) -> None:
    lock = Path(store.git_dir, "index.lock")
    lock.write_bytes(b"git is writing")
    assert not filled(store)
    assert lock.read_bytes() == b"git is writing"
    assert left_overs(store) == ["index.lock"]


def test_an_index_that_was_written_meanwhile_is_not_replaced(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def late(source: str, target: str) -> None:
        git(store.root, "rm", "-q", "--cached", "areas-z")
        real(source, target)

    monkeypatch.setattr(os, "link", late)
    assert not filled(store)
    assert git(store.root, "ls-files", "areas-z") == b""
    assert left_overs(store) == []


@pytest.mark.parametrize("call", ["link", "rename", "unlink"])
def test_a_kill_leaves_no_lock_that_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Killed in the short time our file is git's lock, or before or after it."""
    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(os, call, lambda *_words: os._exit(9))
        filled(store)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert left_overs(store) != []
    store.follow()
    assert left_overs(store) == []
    assert git(store.root, "diff-index", "--cached", store.next) == b""
    assert store.edited() == b""


def test_a_lock_of_gits_own_is_never_taken_for_a_left_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LOCK_WAIT_S", 0.2)
    lock = Path(store.git_dir, "index.lock")
    lock.write_bytes(b"git is writing")
    Path(store.git_dir, ".index.0123456789abcdef.memhtml-tmp").write_bytes(b"git is writing")
    with pytest.raises(MemhtmlError, match="index"):
        store.follow()
    assert lock.read_bytes() == b"git is writing"
    index_stat.remove_left_overs(store.git_dir)
    assert left_overs(store) == ["index.lock"]
