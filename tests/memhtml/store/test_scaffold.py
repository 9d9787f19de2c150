"""`init` and the clone's exclude file (spec `format` §1.1, `cli` §10)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.store import (
    files_at,
    git,
    index_of,
    line,
    make_repository,
    put_file,
    working_files,
)

from memhtml.errors import MemhtmlError, StorageError
from memhtml.store import atomic, index, refs
from memhtml.store import commit as commits
from memhtml.store.repo import Repo
from memhtml.store.scaffold import IGNORED, ensure_ignored, init, scaffold_files

SUBJECT = "memhtml(init): scaffold the memory repository"


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "store")


def clean(root: str) -> bool:
    """Whether git sees nothing uncommitted, ignored files aside."""
    return git(root, "status", "--porcelain", "--untracked-files=all") == b""


def test_a_new_store_has_one_commit_of_the_scaffold_on_main(root: str) -> None:
    report = init(root)
    assert report.root == root
    assert report.created
    assert report.head_sha == line(root, "rev-parse", "refs/heads/main")
    assert list(report.wrote) == [
        "projects/.gitkeep",
        "areas/.gitkeep",
        "resources/.gitkeep",
        "archive/.gitkeep",
        "areas/arcs/.gitkeep",
        "resources/people/.gitkeep",
        "areas/inbox/.gitkeep",
        ".memhtml/state/.gitkeep",
        ".gitignore",
        ".gitattributes",
        "README.html",
    ]
    assert files_at(root, "HEAD") == scaffold_files()
    assert line(root, "log", "--format=%s") == SUBJECT
    assert line(root, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert line(root, "config", "merge.ours.driver") == "true"
    assert clean(root)
    assert git(root, "fsck", "--strict", "--no-dangling") == b""


def test_the_branch_is_main_whatever_git_would_choose(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[init]\n\tdefaultBranch = trunk\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    init(root)
    assert line(root, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_the_landing_page_is_no_memory(root: str) -> None:
    page = scaffold_files()["README.html"].decode()
    assert "<article>" in page
    assert "<mark>" in page
    assert 'name="memhtml-' not in page


def test_a_second_run_changes_nothing_but_sets_the_driver_again(root: str) -> None:
    first = init(root)
    git(root, "config", "--unset", "merge.ours.driver")
    second = init(root)
    assert second == (root, False, first.head_sha, ())
    assert line(root, "config", "merge.ours.driver") == "true"


def test_a_second_run_needs_no_pygit2(root: str) -> None:
    init(root)
    code = (
        "import sys; from memhtml.store.scaffold import init; init(sys.argv[1]); "
        "print('pygit2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, root], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"


def test_only_what_is_missing_is_added(root: str) -> None:
    first = init(root)
    git(root, "rm", "-q", "README.html", "areas/arcs/.gitkeep")
    put_file(root, ".gitignore", b"*.swp\n")
    git(root, "commit", "-qam", "changes")
    report = init(root)
    assert report.wrote == ("areas/arcs/.gitkeep", "README.html")
    assert line(root, "show", "HEAD:.gitignore") == "*.swp"
    assert line(root, "rev-list", "--count", "HEAD") == "3"
    assert report.head_sha != first.head_sha
    assert clean(root)


def test_a_file_deleted_by_hand_comes_back_as_it_was_committed(root: str) -> None:
    init(root)
    put_file(root, "README.html", b"ours\n")
    git(root, "commit", "-qam", "our own page")
    os.unlink(os.path.join(root, "README.html"))
    assert init(root).wrote == ("README.html",)
    assert working_files(root)["README.html"] == b"ours\n"
    assert clean(root)


def test_an_existing_repository_keeps_its_branch_and_its_files(root: str) -> None:
    base = make_repository(root, {"README.html": b"mine\n", "notes.txt": b"n\n"})
    git(root, "checkout", "-q", "-b", "trunk")
    report = init(root)
    assert not report.created
    assert "README.html" not in report.wrote
    assert line(root, "symbolic-ref", "HEAD") == "refs/heads/trunk"
    assert line(root, "rev-parse", "HEAD^") == base == line(root, "rev-parse", "main")
    assert files_at(root, "HEAD")["README.html"] == b"mine\n"
    assert clean(root)


def test_a_detached_head_stays_detached(root: str) -> None:
    base = make_repository(root, {"a": b"a"})
    git(root, "checkout", "-q", "--detach")
    report = init(root)
    assert line(root, "rev-parse", "HEAD") == report.head_sha
    assert line(root, "rev-parse", "main") == base


def test_a_repository_without_a_commit_is_completed_on_its_branch(root: str) -> None:
    os.makedirs(root)
    git(root, "init", "-q", "-b", "trunk")
    put_file(root, "draft.txt", b"draft\n")
    git(root, "add", "draft.txt")
    report = init(root)
    assert not report.created
    assert line(root, "rev-parse", "refs/heads/trunk") == report.head_sha
    assert "draft.txt" not in files_at(root, "HEAD")
    assert "draft.txt" in index_of(root)


def test_what_else_is_staged_or_edited_stays_exactly_so(root: str) -> None:
    make_repository(root, {"a.txt": b"a\n", "b.txt": b"b\n"})
    put_file(root, "a.txt", b"staged\n")
    git(root, "add", "a.txt")
    put_file(root, "a.txt", b"edited\n")
    git(root, "rm", "-q", "--cached", "b.txt")
    put_file(root, "c.txt", b"untracked\n")
    before = index_of(root)
    init(root)
    after = index_of(root)
    assert {path: after.get(path) for path in ("a.txt", "b.txt", "c.txt")} == {
        "a.txt": before["a.txt"],
        "b.txt": None,
        "c.txt": None,
    }
    assert working_files(root)["a.txt"] == b"edited\n"
    assert files_at(root, "HEAD").keys() == scaffold_files().keys() | {"a.txt", "b.txt"}


def test_somebodys_own_uncommitted_files_are_not_committed_for_them(root: str) -> None:
    make_repository(root, {"a": b"a"})
    put_file(root, "README.html", b"draft\n")
    put_file(root, ".gitattributes", b"staged\n")
    git(root, "add", ".gitattributes")
    staged = index_of(root)[".gitattributes"]
    init(root)
    assert not {"README.html", ".gitattributes"} & files_at(root, "HEAD").keys()
    assert index_of(root)[".gitattributes"] == staged
    assert working_files(root)["README.html"] == b"draft\n"


@pytest.mark.parametrize("step", ["create", "set_entries", "swap"])
def test_a_run_cut_short_is_completed_by_the_next(
    root: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    class Cut(Exception):
        pass

    def cut(*words: object) -> None:
        raise Cut

    owner = {
        "create": commits,
        "set_entries": index,
        "swap": refs,
    }[step]
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, cut)
        with pytest.raises(Cut):
            init(root)
    report = init(root)
    assert report.wrote == ()
    assert files_at(root, "HEAD") == scaffold_files()
    assert clean(root)


def test_a_store_inside_another_repository_is_one_of_its_own(tmp_path: Path) -> None:
    outer, inner = str(tmp_path), str(tmp_path / "inner")
    base = make_repository(outer, {"a": b"a"})
    assert init(inner).created
    assert line(outer, "rev-parse", "HEAD") == base
    assert files_at(inner, "HEAD") == scaffold_files()


def test_a_linked_worktree_is_completed_on_its_branch(root: str, tmp_path: Path) -> None:
    base = make_repository(root, {"a": b"a"})
    other = str(tmp_path / "other")
    git(root, "worktree", "add", "-q", "-b", "side", other)
    init(other)
    assert line(root, "rev-parse", "main") == base
    assert scaffold_files().keys() < files_at(root, "side").keys()


def fails(root: str, code: str) -> MemhtmlError:
    with pytest.raises(MemhtmlError) as caught:
        init(root)
    assert caught.value.code == code
    return caught.value


def test_a_root_that_cannot_be_a_folder_is_a_storage_error(root: str, tmp_path: Path) -> None:
    Path(root).touch()
    for path in (root, f"{root}/below"):
        error = fails(path, "ERR_STORAGE")
        assert isinstance(error, StorageError)
        assert error.reason == "init.write"
    assert [entry.name for entry in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("make", ["file", "link"])
def test_a_bucket_that_is_no_folder_is_a_storage_error(
    root: str, tmp_path: Path, make: str
) -> None:
    make_repository(root, {"a": b"a"})
    if make == "file":
        put_file(root, "areas", b"a file\n")
    else:
        (tmp_path / "elsewhere").mkdir()
        os.symlink(tmp_path / "elsewhere", os.path.join(root, "areas"))
    error = fails(root, "ERR_STORAGE")
    assert "areas" in str(error)
    assert make == "file" or list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("writes", [0, 3, 10])
def test_a_full_disk_leaves_no_part_of_a_scaffold(
    root: str, monkeypatch: pytest.MonkeyPatch, existed: bool, writes: int
) -> None:
    if existed:
        make_repository(root, {"a": b"a"})
    real, seen = atomic.write_all, 0

    def limited(descriptor: int, data: bytes) -> None:
        nonlocal seen
        seen += 1
        if seen > writes:
            raise OSError(28, "No space left on device")
        real(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr("memhtml.store.worktree.write_all", limited)
        assert "No space left" in str(fails(root, "ERR_STORAGE"))
    assert working_files(root) == ({"a": b"a"} if existed else {})
    assert os.path.exists(os.path.join(root, ".git")) is existed
    assert init(root).wrote == tuple(scaffold_files())


def test_a_folder_that_may_not_be_written_is_a_storage_error(root: str) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    os.makedirs(root, mode=0o555)
    assert "init.write" in str(fails(root, "ERR_STORAGE"))


def test_a_bare_repository_is_refused(root: str) -> None:
    os.makedirs(root)
    git(root, "init", "-q", "--bare", ".")
    fails(root, "ERR_GIT")
    assert not os.path.exists(os.path.join(root, ".git"))


def test_two_runs_at_once_make_one_commit(root: str) -> None:
    init(root)
    git(root, "rm", "-q", "README.html")
    git(root, "commit", "-qm", "without")
    done: list[tuple[str, ...]] = []
    threads = [threading.Thread(target=lambda: done.append(init(root).wrote)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [(), (), ("README.html",)]
    assert line(root, "rev-list", "--count", "HEAD") == "3"


# --- the exclude file --------------------------------------------------------------------------


def exclude(root: str) -> Path:
    return Path(root, ".git", "info", "exclude")


def old_store(root: str, ignored: bytes) -> None:
    """A store whose committed `.gitignore` is given, its exclude file empty."""
    make_repository(root, {".gitignore": ignored})
    exclude(root).unlink(missing_ok=True)


def test_a_complete_gitignore_leaves_the_exclude_file_alone(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(root)
    before = exclude(root).read_bytes() if exclude(root).exists() else None
    monkeypatch.setattr(refs, "run_git", lambda *words: pytest.fail("a child was started"))
    ensure_ignored(root)
    assert (exclude(root).read_bytes() if exclude(root).exists() else None) == before


def test_missing_patterns_go_to_the_exclude_file_once(root: str) -> None:
    old = "".join(f"{pattern}\n" for pattern in IGNORED[:4]).encode()
    old_store(root, old + b"# .memhtml/sessions/\n  .memhtml/vectors/  \n.memhtml/snapshots\n")
    for _ in range(2):
        ensure_ignored(root)
        lines = exclude(root).read_text().splitlines()
        assert lines == [p for p in IGNORED[4:] if p != ".memhtml/vectors/"]
    assert working_files(root)[".gitignore"].startswith(old)
    put_file(root, ".memhtml/sessions/s1.json", b"{}")
    assert clean(root)


def test_a_last_line_without_an_end_is_repaired(root: str) -> None:
    old_store(root, b"")
    put_file(root, ".git/info/exclude", b"*.swp\n.memhtml/sandbox/")
    ensure_ignored(root)
    lines = exclude(root).read_text().splitlines()
    assert lines[:2] == ["*.swp", ".memhtml/sandbox/"]
    assert sorted(lines[1:]) == sorted(IGNORED)


def test_a_linked_worktree_writes_the_shared_file(root: str, tmp_path: Path) -> None:
    old_store(root, b"")
    other = str(tmp_path / "other")
    git(root, "worktree", "add", "-q", "-b", "side", other)
    ensure_ignored(other)
    assert exclude(root).read_text().splitlines() == list(IGNORED)
    put_file(other, ".memhtml/sessions/s1.json", b"{}")
    assert clean(other)


def test_a_failure_is_a_warning(root: str, capfd: pytest.CaptureFixture[str]) -> None:
    old_store(root, b"")
    shutil_target = Path(root, ".git", "info")
    for entry in shutil_target.iterdir() if shutil_target.exists() else ():
        entry.unlink()
    if shutil_target.exists():
        shutil_target.rmdir()
    shutil_target.touch()
    ensure_ignored(root)
    assert "WARN" in capfd.readouterr().err


def test_the_scaffold_commit_does_not_wait_for_its_own_lock(root: str) -> None:
    started = time.monotonic()
    init(root)
    assert time.monotonic() - started < 10
    assert not os.path.exists(os.path.join(root, ".memhtml", "checkout.lock"))
    assert Repo(root).commit_exists(line(root, "rev-parse", "HEAD"))
