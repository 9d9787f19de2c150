"""Dirty, following and putting back (spec `sessions` §9.1 and §9.2)."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.store import (
    commit_on,
    files_at,
    git,
    index_of,
    make_repository,
    put_file,
    spare_files,
    working_files,
)

from memhtml.errors import MemhtmlError, StorageError
from memhtml.store import checkout, index
from memhtml.store.checkout import dirty, follow, put_back
from memhtml.store.journey import CheckoutDirty
from memhtml.store.repo import Repo

BASE = {
    "areas/a.html": b"a\n",
    "areas/b.html": b"b\r\nline\r\n",
    "areas/deep/only.html": b"only\n",
    "keep.txt": b"keep\n",
}


class Store:
    """A repository with a base commit and one commit object that follows it."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.base = make_repository(self.root, BASE)
        self.repo = Repo(self.root)
        self.writes = {"areas/a.html": b"a2\n", "areas/new/n.html": b"n\n"}
        self.removals = ("areas/deep/only.html",)
        self.next = commit_on(self.repo, self.base, self.writes, self.removals)
        self.paths = sorted([*self.writes, *self.removals])

    def dirty(self) -> list[str]:
        return dirty(self.repo, self.base, self.paths)

    def follow(self) -> None:
        follow(self.repo, self.base, self.next, self.paths)

    def put_back(self) -> list[str]:
        return put_back(self.repo, self.next, self.base)

    def at(self, path: str) -> str:
        return os.path.join(self.root, path)

    def state(self) -> tuple[dict[str, bytes], dict[str, str]]:
        return working_files(self.root), index_of(self.root)

    def assert_stands_at(self, commit: str) -> None:
        """Index and files equal the commit's, and nothing is left over."""
        assert working_files(self.root) == files_at(self.root, commit)
        assert git(self.root, "diff-index", "--cached", commit) == b""
        assert spare_files(self.root) == []


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_follow_makes_index_and_files_those_of_the_commit(store: Store) -> None:
    assert store.dirty() == []
    store.follow()
    store.assert_stands_at(store.next)
    assert not os.path.exists(store.at("areas/deep"))


def test_put_back_after_follow_restores_everything(store: Store) -> None:
    before = store.state()
    store.follow()
    assert store.put_back() == []
    assert store.state() == before
    assert not os.path.exists(store.at("areas/new"))
    assert store.put_back() == []


def test_follow_works_where_nothing_can_be_staged_aside(store: Store) -> None:
    put_file(store.root, ".memhtml", b"a file\n")
    store.follow()
    assert git(store.root, "diff-index", "--cached", store.next) == b""
    assert working_files(store.root) == {
        **files_at(store.root, store.next),
        ".memhtml": b"a file\n",
    }
    assert spare_files(store.root) == []
    assert store.put_back() == []
    assert working_files(store.root) == {**BASE, ".memhtml": b"a file\n"}


def edit(store: Store) -> None:
    put_file(store.root, "areas/a.html", b"mine\n")


def delete(store: Store) -> None:
    os.unlink(store.at("areas/deep/only.html"))


def stage_an_edit_and_revert_the_file(store: Store) -> None:
    put_file(store.root, "areas/a.html", b"mine\n")
    git(store.root, "add", "areas/a.html")
    put_file(store.root, "areas/a.html", b"a\n")


def unstage_a_file(store: Store) -> None:
    git(store.root, "rm", "--cached", "-q", "areas/a.html")


def untracked_file(store: Store) -> None:
    put_file(store.root, "areas/new/n.html", b"n\n")


def ignored_file(store: Store) -> None:
    put_file(store.root, ".git/info/exclude", b"areas/new/\n")
    put_file(store.root, "areas/new/n.html", b"other\n")


def folder_in_the_way(store: Store) -> None:
    os.makedirs(store.at("areas/new/n.html"))


def file_for_a_folder_in_the_way(store: Store) -> None:
    put_file(store.root, "areas/new", b"a file\n")


def dangling_link(store: Store) -> None:
    os.mkdir(store.at("areas/new"))
    os.symlink("nowhere", store.at("areas/new/n.html"))


def link_for_a_folder(store: Store) -> None:
    os.mkdir(f"{store.root}-elsewhere")
    os.symlink(f"{store.root}-elsewhere", store.at("areas/new"))


def link_for_a_file(store: Store) -> None:
    os.rename(store.at("areas/a.html"), f"{store.root}-a")
    os.symlink(f"{store.root}-a", store.at("areas/a.html"))


def executable(store: Store) -> None:
    os.chmod(store.at("areas/a.html"), 0o755)


def pipe(store: Store) -> None:
    os.unlink(store.at("areas/a.html"))
    os.mkfifo(store.at("areas/a.html"))


def staged_below_a_new_file(store: Store) -> None:
    blob = git(store.root, "hash-object", "-w", "--stdin", stdin=b"theirs").decode().strip()
    git(store.root, "update-index", "--add", "--cacheinfo", f"100644,{blob},areas/new/n.html/x")


def staged_above_a_new_file(store: Store) -> None:
    blob = git(store.root, "hash-object", "-w", "--stdin", stdin=b"theirs").decode().strip()
    git(store.root, "update-index", "--add", "--cacheinfo", f"100644,{blob},areas/new")


def unmerged(store: Store) -> None:
    blob = git(store.root, "rev-parse", f"{store.base}:areas/a.html").decode().strip()
    lines = f"0 {'0' * 40}\tareas/a.html\n" + "".join(
        f"100644 {blob} {stage}\tareas/a.html\n" for stage in (1, 2, 3)
    )
    git(store.root, "update-index", "--index-info", stdin=lines.encode())


OBSTACLES: dict[Callable[[Store], None], str] = {
    edit: "areas/a.html",
    delete: "areas/deep/only.html",
    stage_an_edit_and_revert_the_file: "areas/a.html",
    unstage_a_file: "areas/a.html",
    untracked_file: "areas/new/n.html",
    ignored_file: "areas/new/n.html",
    folder_in_the_way: "areas/new/n.html",
    file_for_a_folder_in_the_way: "areas/new/n.html",
    dangling_link: "areas/new/n.html",
    link_for_a_folder: "areas/new/n.html",
    link_for_a_file: "areas/a.html",
    executable: "areas/a.html",
    pipe: "areas/a.html",
    staged_below_a_new_file: "areas/new/n.html",
    staged_above_a_new_file: "areas/new/n.html",
    unmerged: "areas/a.html",
}


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda f: f.__name__)
def test_a_path_is_dirty_and_follow_leaves_it_alone(
    store: Store, obstacle: Callable[[Store], None]
) -> None:
    obstacle(store)
    before = store.state()
    assert store.dirty() == [OBSTACLES[obstacle]]
    store.repo.index_seen = None
    with pytest.raises((CheckoutDirty, StorageError)):
        store.follow()
    assert store.state() == before
    assert spare_files(store.root) == []


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=lambda f: f.__name__)
def test_put_back_never_touches_what_somebody_did_since(
    store: Store, obstacle: Callable[[Store], None]
) -> None:
    path = OBSTACLES[obstacle]
    obstacle(store)
    before_files, before_index = store.state()
    left = store.put_back()
    after_files, after_index = store.state()
    assert after_files.get(path) == before_files.get(path) or obstacle in (delete, untracked_file)
    assert after_index == before_index
    assert left in ([], [path])


def test_a_touched_file_with_the_same_content_is_clean(store: Store) -> None:
    os.utime(store.at("areas/a.html"), (1, 1))
    os.chmod(store.at("areas/a.html"), 0o640)
    assert store.dirty() == []


def test_only_the_paths_of_the_commit_are_looked_at(store: Store) -> None:
    put_file(store.root, "keep.txt", b"edited\n")
    put_file(store.root, "areas/b.html", b"staged\n")
    git(store.root, "add", "areas/b.html")
    put_file(store.root, "areas/b.html", b"staged and edited\n")
    put_file(store.root, "areas/untracked.html", b"new\n")
    git(store.root, "rm", "-q", "--cached", "keep.txt")
    staged = index_of(store.root)
    assert store.dirty() == []
    store.follow()
    files, entries = store.state()
    assert files["keep.txt"] == b"edited\n"
    assert files["areas/b.html"] == b"staged and edited\n"
    assert files["areas/untracked.html"] == b"new\n"
    for path in ("areas/b.html", "keep.txt"):
        assert entries.get(path) == staged.get(path)


def test_line_end_conversion_and_filters_change_no_byte(store: Store) -> None:
    git(store.root, "config", "core.autocrlf", "true")
    git(store.root, "config", "filter.shout.smudge", "tr a-z A-Z")
    git(store.root, "config", "filter.shout.clean", "tr A-Z a-z")
    put_file(store.root, ".git/info/attributes", b"*.html filter=shout ident\n")
    store.follow()
    assert working_files(store.root)["areas/new/n.html"] == b"n\n"
    assert store.put_back() == []
    assert working_files(store.root) == BASE


def test_a_file_git_would_store_as_the_parent_has_it_is_clean(store: Store) -> None:
    git(store.root, "config", "core.autocrlf", "true")
    put_file(store.root, "areas/a.html", b"a\r\n")
    assert store.dirty() == []
    store.follow()
    assert working_files(store.root)["areas/a.html"] == b"a2\n"


def test_a_file_takes_a_folders_place_and_a_folder_a_files(store: Store) -> None:
    writes = {"areas/deep": b"file\n", "areas/a.html/inner.html": b"inner\n"}
    removals = ("areas/deep/only.html", "areas/a.html")
    commit = commit_on(store.repo, store.base, writes, removals)
    paths = [*writes, *removals]
    assert dirty(store.repo, store.base, paths) == []
    before = store.state()
    follow(store.repo, store.base, commit, paths)
    store.assert_stands_at(commit)
    assert put_back(store.repo, commit, store.base) == []
    assert store.state() == before


@pytest.mark.parametrize("extra", ["areas/deep/untracked", "areas/deep/empty/"])
def test_a_folder_that_holds_more_than_the_commit_removes_is_dirty(
    store: Store, extra: str
) -> None:
    if extra.endswith("/"):
        os.mkdir(store.at(extra))
    else:
        put_file(store.root, extra, b"mine\n")
    assert dirty(store.repo, store.base, ["areas/deep", "areas/deep/only.html"]) == ["areas/deep"]


def test_links_and_executables_of_another_commit_are_followed(store: Store) -> None:
    os.symlink("a.html", store.at("areas/link.html"))
    put_file(store.root, "areas/run.html", b"#!\n")
    os.chmod(store.at("areas/run.html"), 0o755)
    git(store.root, "add", "-A")
    git(store.root, "commit", "-qm", "kinds")
    commit = git(store.root, "rev-parse", "HEAD").decode().strip()
    git(store.root, "reset", "-q", "--hard", store.base)
    paths = ["areas/link.html", "areas/run.html"]
    follow(store.repo, store.base, commit, paths)
    store.assert_stands_at(commit)
    assert os.stat(store.at("areas/run.html")).st_mode & stat.S_IXUSR
    assert dirty(store.repo, commit, paths) == []
    assert put_back(store.repo, commit, store.base) == []
    store.assert_stands_at(store.base)


def test_the_executable_bit_is_no_difference_where_git_ignores_it(store: Store) -> None:
    git(store.root, "config", "core.fileMode", "false")
    executable(store)
    assert Repo(store.root).trusts_file_mode is False
    assert dirty(Repo(store.root), store.base, store.paths) == []


def test_an_edit_between_the_look_and_the_move_is_kept(store: Store) -> None:
    def write_late(path: str) -> None:
        if path == "areas/deep/only.html":
            put_file(store.root, path, b"late\n")

    assert store.dirty() == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkout, "on_move", write_late)
        with pytest.raises(CheckoutDirty) as caught:
            store.follow()
    assert caught.value.code == "ERR_DIRTY_TREE"
    assert caught.value.paths == ["areas/deep/only.html"]
    assert working_files(store.root) == {**BASE, "areas/deep/only.html": b"late\n"}
    assert spare_files(store.root) == []


def test_an_entry_staged_between_the_look_and_the_move_is_kept(store: Store) -> None:
    def stage_late(path: str) -> None:
        if path == "index":
            blob = git(store.root, "hash-object", "-w", "--stdin", stdin=b"late").decode().strip()
            git(store.root, "update-index", "--cacheinfo", f"100644,{blob},areas/a.html")

    assert store.dirty() == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkout, "on_move", stage_late)
        with pytest.raises(CheckoutDirty):
            store.follow()
    assert working_files(store.root) == BASE
    assert git(store.root, "cat-file", "blob", ":areas/a.html") == b"late"


def test_a_held_index_lock_is_waited_for(store: Store) -> None:
    lock = store.at(".git/index.lock")
    Path(lock).touch()
    threading.Timer(0.3, os.unlink, (lock,)).start()
    started = time.monotonic()
    store.follow()
    assert time.monotonic() - started > 0.25
    store.assert_stands_at(store.next)


def test_an_index_lock_that_stays_is_named_and_kept(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LOCK_WAIT_S", 0.2)
    lock = Path(store.at(".git/index.lock"))
    for act in (store.follow, store.put_back):
        before = store.state()
        lock.touch()
        with pytest.raises(MemhtmlError) as caught:
            act()
        assert caught.value.code == "ERR_GIT"
        assert "holds index.lock" in str(caught.value)
        assert store.root not in str(caught.value)
        assert lock.exists()
        lock.unlink()
        assert store.state() == before
        act()


def test_put_back_with_nothing_to_do_waits_for_no_lock(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LOCK_WAIT_S", 0.0)
    Path(store.at(".git/index.lock")).touch()
    assert store.put_back() == []


def test_an_index_lock_taken_after_the_files_moved_brings_them_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "LOCK_WAIT_S", 0.2)
    lock = Path(store.at(".git/index.lock"))
    monkeypatch.setattr(checkout, "on_move", lambda path: lock.touch() if path == "index" else None)
    before = store.state()
    with pytest.raises(MemhtmlError, match=r"index\.lock"):
        store.follow()
    lock.unlink()
    assert store.state() == before
    assert spare_files(store.root) == []


@pytest.mark.parametrize("call", ["write", "link", "rename", "mkdir"])
@pytest.mark.parametrize("fails_at", range(4))
def test_a_full_disk_half_way_leaves_everything_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch, call: str, fails_at: int
) -> None:
    before = store.state()
    real = getattr(os, call)
    seen = 0

    def limited(*words: object, **named: object) -> object:
        nonlocal seen
        seen += 1
        if seen == fails_at + 1:
            raise OSError(28, "No space left on device", "x")
        return real(*words, **named)

    monkeypatch.setattr(os, call, limited)
    failed = False
    try:
        store.follow()
    except MemhtmlError as error:
        failed = True
        # Handing git its input is a write as well.
        assert error.code in ("ERR_STORAGE", "ERR_GIT")
    monkeypatch.undo()
    if failed:
        assert store.state() == before
        assert spare_files(store.root) == []
    else:
        store.assert_stands_at(store.next)


@pytest.mark.parametrize("killed_at", range(5))
def test_put_back_settles_a_follow_killed_at_any_move(store: Store, killed_at: int) -> None:
    os.makedirs(store.at(".memhtml/sessions"))
    before = store.state()
    seen = 0

    def die(path: str) -> None:
        nonlocal seen
        seen += 1
        if seen > killed_at:
            os._exit(9)

    pid = os.fork()
    if pid == 0:
        checkout.on_move = die
        store.follow()
        os._exit(0)
    os.waitpid(pid, 0)
    assert put_back(Repo(store.root), store.next, store.base) == []
    assert store.state() == before
    assert dirty(Repo(store.root), store.base, store.paths) == []


def test_follow_refuses_a_path_into_git_itself(store: Store) -> None:
    blob = store.repo.write_object("blob", b"#!/bin/sh\n")
    tree = git(store.root, "mktree", stdin=f"100644 blob {blob}\tpre-commit\n".encode())
    inner = bytes.fromhex(tree.decode().strip())
    bad = store.repo.write_object("tree", b"40000 .git\0" + inner)
    text = f"tree {bad}\nparent {store.base}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n"
    commit = store.repo.write_object("commit", text.encode())
    with pytest.raises(MemhtmlError, match="refuses the path"):
        follow(store.repo, store.base, commit, [".git/pre-commit"])
    assert not os.path.exists(store.at(".git/pre-commit"))


def test_no_hook_of_the_store_is_run(store: Store) -> None:
    mark = store.at("hook-ran")
    os.makedirs(store.at(".git/hooks"))
    for name in ("post-index-change", "reference-transaction", "post-checkout"):
        put_file(store.root, f".git/hooks/{name}", f"#!/bin/sh\ntouch {mark}\n".encode())
        os.chmod(store.at(f".git/hooks/{name}"), 0o755)
    store.follow()
    assert not os.path.exists(mark)


def test_a_linked_worktree_is_followed_in_its_own_index(store: Store, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    git(store.root, "worktree", "add", "-q", "-b", "side", other)
    repo = Repo(other)
    assert dirty(repo, store.base, store.paths) == []
    follow(repo, store.base, store.next, store.paths)
    assert git(other, "diff-index", "--cached", store.next) == b""
    store.assert_stands_at(store.base)


def test_a_split_index_is_followed(store: Store) -> None:
    git(store.root, "update-index", "--split-index")
    store.follow()
    store.assert_stands_at(store.next)


def test_git_status_is_clean_once_the_ref_moved(store: Store) -> None:
    store.follow()
    git(store.root, "update-ref", "refs/heads/main", store.next)
    done = subprocess.run(
        ["git", "-C", store.root, "status", "--porcelain"], capture_output=True, check=True
    )
    assert done.stdout == b""
