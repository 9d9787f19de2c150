"""Files that the working tree need not have as the commit has them: sparse, converted, very deep.

Spec `sessions` §9.1 (dirty, following) and §9.2.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.store import (
    commit_on,
    git,
    index_of,
    make_repository,
    put_file,
    spare_files,
    working_files,
)

from memhtml.store import checkout
from memhtml.store.checkout import dirty, follow, put_back
from memhtml.store.repo import Repo

BASE = {
    "areas/a.html": b"a\n",
    "areas/b.html": b"b\n",
    "projects/p.html": b"p\n",
    "projects/q.html": b"q\n",
}
WRITES = {"areas/a.html": b"a2\n", "projects/p.html": b"p2\n"}
REMOVALS = ("projects/q.html",)
PATHS = [*WRITES, *REMOVALS]


@pytest.fixture
def sparse(tmp_path: Path) -> Repo:
    """A checkout without `projects`."""
    root = str(tmp_path / "store")
    make_repository(root, BASE)
    git(root, "sparse-checkout", "set", "areas")
    assert set(working_files(root)) == {"areas/a.html", "areas/b.html"}
    return Repo(root)


def tip(repo: Repo) -> str:
    return git(repo.root, "rev-parse", "HEAD").decode().strip()


def status(repo: Repo) -> bytes:
    """What git says differs, the store's own files apart."""
    return git(repo.root, "status", "--porcelain", "--", ".", ":!.memhtml")


def left_out(repo: Repo) -> set[str]:
    """The paths whose entry says that their file need not be there."""
    lines = git(repo.root, "ls-files", "-t").decode().splitlines()
    return {line[2:] for line in lines if line.startswith("S ")}


@pytest.mark.parametrize("sparse_index", [False, True])
def test_a_sparse_checkout_follows_in_its_index_alone(sparse: Repo, sparse_index: bool) -> None:
    root, base = sparse.root, tip(sparse)
    if sparse_index:
        git(root, "sparse-checkout", "set", "--sparse-index", "areas")
    commit = commit_on(sparse, base, WRITES, REMOVALS)
    assert dirty(sparse, base, PATHS) == []
    follow(sparse, base, commit, PATHS)
    assert git(root, "diff-index", "--cached", commit) == b""
    assert working_files(root) == {"areas/a.html": b"a2\n", "areas/b.html": b"b\n"}
    assert left_out(sparse) == {"projects/p.html"}
    git(root, "update-ref", "refs/heads/main", commit)
    assert status(sparse) == b""
    assert spare_files(root) == []


def test_a_sparse_checkout_is_put_back_in_its_index_alone(
    sparse: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, base = sparse.root, tip(sparse)
    commit = commit_on(sparse, base, {"projects/p.html": b"p2\n", "areas/b.html": b"b2\n"})
    before = working_files(root), index_of(root), left_out(sparse)
    follow(sparse, base, commit, ["projects/p.html", "areas/b.html"])
    assert put_back(sparse, commit, base) == []
    assert (working_files(root), index_of(root), left_out(sparse)) == before
    assert put_back(sparse, commit, base) == []
    assert status(sparse) == b""


def test_a_record_removed_outside_of_a_sparse_checkout_comes_back_as_a_file(sparse: Repo) -> None:
    """Its entry is gone, and with it the word that the file need not be there."""
    root, base = sparse.root, tip(sparse)
    commit = commit_on(sparse, base, {}, REMOVALS)
    follow(sparse, base, commit, REMOVALS)
    assert put_back(sparse, commit, base) == []
    assert git(root, "diff-index", "--cached", base) == b""
    assert status(sparse) == b""


def test_a_file_that_was_deleted_by_hand_is_still_dirty(sparse: Repo) -> None:
    os.unlink(os.path.join(sparse.root, "areas/a.html"))
    assert dirty(sparse, tip(sparse), PATHS) == ["areas/a.html"]


def test_a_file_that_is_there_though_it_need_not_be_is_compared(sparse: Repo) -> None:
    put_file(sparse.root, "projects/p.html", b"mine\n")
    assert dirty(sparse, tip(sparse), PATHS) == ["projects/p.html"]
    put_file(sparse.root, "projects/p.html", b"p\n")
    assert dirty(sparse, tip(sparse), PATHS) == []


# --- line ends ---------------------------------------------------------------------------------


@pytest.fixture
def converted(tmp_path: Path) -> Repo:
    """A checkout whose files have the line ends of another system."""
    root = str(tmp_path / "store")
    make_repository(root, BASE)
    git(root, "config", "core.autocrlf", "true")
    for path in BASE:
        os.unlink(os.path.join(root, path))
    git(root, "checkout", "-q", "--", ".")
    assert working_files(root)["areas/a.html"] == b"a\r\n"
    return Repo(root)


def test_a_converted_file_that_did_not_move_yet_is_nobodys_work(converted: Repo) -> None:
    base = tip(converted)
    commit = commit_on(converted, base, WRITES, REMOVALS)
    assert put_back(converted, commit, base) == []
    assert working_files(converted.root)["areas/a.html"] == b"a\r\n"


@pytest.mark.parametrize("killed_at", range(4))
def test_a_follow_over_converted_files_that_was_killed_is_put_back(
    converted: Repo, killed_at: int
) -> None:
    root, base = converted.root, tip(converted)
    commit = commit_on(converted, base, WRITES, REMOVALS)
    seen = 0

    def die(path: str) -> None:
        nonlocal seen
        seen += 1
        if seen > killed_at:
            os._exit(9)

    pid = os.fork()
    if pid == 0:
        checkout.on_move = die
        follow(Repo(root), base, commit, PATHS)
        os._exit(0)
    os.waitpid(pid, 0)
    assert put_back(Repo(root), commit, base) == []
    assert git(root, "diff-index", "--cached", base) == b""
    assert status(converted) == b""


def test_a_real_edit_beside_converted_files_is_named(converted: Repo) -> None:
    base = tip(converted)
    commit = commit_on(converted, base, WRITES, REMOVALS)
    put_file(converted.root, "areas/a.html", b"mine\r\n")
    assert put_back(converted, commit, base) == ["areas/a.html"]


# --- depth -------------------------------------------------------------------------------------


def test_a_very_deep_path_is_followed_and_put_back(tmp_path: Path) -> None:
    """Deeper than a recursion may go, and than a process may hold folders open."""
    root = str(tmp_path / "store")
    base = make_repository(root, BASE)
    repo = Repo(root)
    path = f"areas/{'d/' * 1500}x.html"
    commit = commit_on(repo, base, {path: b"deep\n"}, ("areas/a.html",))
    assert dirty(repo, base, [path, "areas/a.html"]) == []
    follow(repo, base, commit, [path, "areas/a.html"])
    assert git(root, "diff-index", "--cached", commit) == b""
    assert Path(root, path).read_bytes() == b"deep\n"
    assert dirty(repo, commit, [path]) == []
    assert put_back(repo, commit, base) == []
    assert working_files(root) == BASE
    assert not os.path.exists(os.path.join(root, "areas", "d"))
    assert git(root, "diff-index", "--cached", base) == b""
