"""Reading and moving refs, checked against git itself (spec `sessions` §3, `cli` §4)."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.store import commit_on, git, line, make_repository, put_file

from memhtml.errors import MemhtmlError
from memhtml.store import refs
from memhtml.store.repo import Repo

MAIN = "refs/heads/main"
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def root(tmp_path: Path) -> str:
    path = str(tmp_path / "store")
    make_repository(path, {"areas/a.html": b"a\n"})
    return path


def no_children(patch: pytest.MonkeyPatch) -> None:
    """From here on a git child is a failure."""

    def refuse(*words: object, **named: object) -> None:
        raise AssertionError("a git child was started")

    patch.setattr(refs, "run_git", refuse)


def second_commit(root: str) -> str:
    """One more commit object on main's tip."""
    return commit_on(Repo(root), line(root, "rev-parse", "HEAD"), {"areas/b.html": b"b\n"})


@pytest.mark.parametrize(
    ("given_name", "full"),
    [
        ("main", "refs/heads/main"),
        (" curate/2026-11-30 ", "refs/heads/curate/2026-11-30"),
        ("refs/tags/v1", "refs/tags/v1"),
        ("heads/main", "refs/heads/heads/main"),
    ],
)
def test_a_ref_name_is_completed(given_name: str, full: str) -> None:
    assert refs.normalise_ref(given_name) == full


@pytest.mark.parametrize(
    "name",
    [
        "refs/heads/main",
        "refs/heads/a/b",
        "refs/heads/ü",
        "refs/heads/@",
        "refs/heads/a.b",
        "refs/x",
        "refs/heads/",
        "refs/heads/a..b",
        "refs/heads/.a",
        "refs/heads/a.lock",
        "refs/heads/a.lock/b",
        "refs/heads/a b",
        "refs/heads/a@{1}",
        "refs/heads/a.",
        "refs/heads/a//b",
        "refs/heads/a\\b",
        "refs/heads/a\x01",
        "refs/heads/a*",
        "refs/",
        "main",
    ],
)
def test_git_agrees_on_what_is_a_legal_name(name: str) -> None:
    done = subprocess.run(["git", "check-ref-format", name], check=False)
    assert refs.valid_ref(name) is (done.returncode == 0 and name.startswith("refs/"))


@given(st.text(alphabet="ab./@{}-~^:?*[\\ \x7f\tü", max_size=12))
def test_a_legal_name_is_never_one_git_refuses(tail: str) -> None:
    name = f"refs/heads/{tail}"
    if refs.valid_ref(name):
        assert subprocess.run(["git", "check-ref-format", name], check=False).returncode == 0


def test_a_plain_repository_needs_no_child(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tip = line(root, "rev-parse", "HEAD")
    git(root, "branch", "packed")
    git(root, "pack-refs", "--all")
    git(root, "branch", "loose")
    no_children(monkeypatch)
    refs.require_worktree(root)
    assert refs.resolve(root, MAIN) == tip
    assert refs.resolve(root, "refs/heads/packed") == tip
    assert refs.resolve(root, "refs/heads/loose") == tip
    assert refs.resolve(root, "refs/heads/pack") is None
    assert refs.resolve(root, "refs/heads/no") is None
    assert refs.head_commit(root) == tip
    assert refs.checked_out(root) == MAIN
    assert refs.other_worktree_with(root, MAIN) is None


def test_a_packed_repository_needs_no_child(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tip = line(root, "rev-parse", "HEAD")
    git(root, "gc", "-q")
    no_children(monkeypatch)
    assert refs.resolve(root, MAIN) == tip == refs.head_commit(root)


def test_looking_at_refs_loads_neither_pygit2_nor_subprocess(root: str) -> None:
    code = (
        "import sys; from memhtml.store import refs; root = sys.argv[1]; "
        "refs.require_worktree(root); refs.resolve(root, 'refs/heads/main'); "
        "refs.checked_out(root); refs.other_worktree_with(root, 'refs/heads/main'); "
        "print([m for m in ('pygit2', 'subprocess', 'argparse', 'logging') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, root], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_a_branch_before_its_first_commit_has_none(tmp_path: Path) -> None:
    root = str(tmp_path)
    git(root, "init", "-q", "-b", "trunk")
    assert refs.head_commit(root) is None
    assert refs.checked_out(root) == "refs/heads/trunk"
    assert refs.resolve(root, "refs/heads/trunk") is None


def test_a_detached_head_is_on_no_branch(root: str) -> None:
    git(root, "checkout", "-q", "--detach")
    assert refs.checked_out(root) is None
    assert refs.head_commit(root) == line(root, "rev-parse", "HEAD")


def test_tags_are_peeled_and_other_objects_count_as_absent(root: str) -> None:
    tip = line(root, "rev-parse", "HEAD")
    git(root, "tag", "-a", "v1", "-m", "one")
    git(root, "tag", "blob", line(root, "rev-parse", "HEAD:areas/a.html"))
    git(root, "tag", "plain")
    for _ in range(2):
        assert refs.resolve(root, "refs/tags/v1") == tip
        assert refs.resolve(root, "refs/tags/plain") == tip
        assert refs.resolve(root, "refs/tags/blob") is None
        git(root, "pack-refs", "--all")


def test_a_branch_file_that_names_a_tag_object_is_peeled(root: str) -> None:
    git(root, "tag", "-a", "v1", "-m", "one")
    put_file(root, ".git/refs/heads/odd", line(root, "rev-parse", "v1").encode() + b"\n")
    assert refs.resolve(root, "refs/heads/odd") == line(root, "rev-parse", "HEAD")


def test_a_branch_file_with_rubbish_counts_as_absent(root: str) -> None:
    put_file(root, ".git/refs/heads/odd", b"rubbish\n")
    assert refs.resolve(root, "refs/heads/odd") is None


def test_a_symbolic_branch_is_resolved_to_what_it_names(root: str) -> None:
    git(root, "branch", "real")
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/real")
    assert refs.resolve(root, "refs/heads/alias") == line(root, "rev-parse", "real")
    git(root, "symbolic-ref", "HEAD", "refs/heads/alias")
    assert refs.checked_out(root) == "refs/heads/real"


def test_the_final_name_of_a_ref_is_where_its_symbolic_chain_ends(root: str) -> None:
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/again")
    git(root, "symbolic-ref", "refs/heads/again", MAIN)
    git(root, "symbolic-ref", "refs/heads/ahead", "refs/heads/not-yet")
    assert refs.final(root, "refs/heads/alias") == MAIN
    assert refs.final(root, "refs/heads/ahead") == "refs/heads/not-yet"
    assert refs.final(root, MAIN) == MAIN
    assert refs.final(root, "refs/heads/none") == "refs/heads/none"


def test_a_ref_stands_at_an_object_and_at_the_commit_it_peels_to(root: str) -> None:
    tip = line(root, "rev-parse", "HEAD")
    git(root, "tag", "-a", "v1", "-m", "one")
    tag, blob = line(root, "rev-parse", "v1"), line(root, "rev-parse", "HEAD:areas/a.html")
    git(root, "tag", "blob", blob)
    put_file(root, ".git/refs/heads/odd", b"rubbish\n")
    for _ in range(2):
        assert refs.standing(root, MAIN) == (tip, tip)
        assert refs.standing(root, "refs/tags/v1") == (tag, tip)
        assert refs.standing(root, "refs/tags/blob") == (blob, None)
        assert refs.standing(root, "refs/heads/none") == (None, None)
        assert refs.standing(root, "refs/heads/odd") == (None, None)
        os.unlink(os.path.join(root, ".git/refs/heads/odd"))
        git(root, "pack-refs", "--all")
        put_file(root, ".git/refs/heads/odd", b"rubbish\n")


def test_final_and_standing_answer_in_a_linked_worktree(root: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    git(root, "worktree", "add", "-q", "-b", "side", other)
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/side")
    tip = line(root, "rev-parse", "side")
    assert refs.final(other, "refs/heads/alias") == "refs/heads/side"
    assert refs.final(other, MAIN) == MAIN
    assert refs.standing(other, "refs/heads/side") == (tip, tip)
    assert refs.standing(other, "refs/heads/none") == (None, None)


def test_a_swap_moves_the_name_it_is_given_and_no_other(root: str) -> None:
    git(root, "symbolic-ref", "refs/heads/alias", MAIN)
    old, new = line(root, "rev-parse", "HEAD"), second_commit(root)
    assert refs.swap(root, "refs/heads/alias", new, old, "x")
    assert line(root, "rev-parse", MAIN) == old


def test_a_linked_worktree_is_a_store_of_its_own(root: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    git(root, "worktree", "add", "-q", "-b", "side", other)
    refs.require_worktree(other)
    assert refs.checked_out(other) == "refs/heads/side"
    assert refs.head_commit(other) == refs.resolve(other, MAIN) == line(root, "rev-parse", "main")
    assert refs.other_worktree_with(root, "refs/heads/side") == other
    assert refs.other_worktree_with(other, MAIN) == root
    assert refs.other_worktree_with(other, "refs/heads/side") is None
    own, common = refs.git_dirs(other)
    assert os.path.samefile(common, os.path.join(root, ".git"))
    assert own != common


def refused(root: str) -> MemhtmlError:
    with pytest.raises(MemhtmlError) as caught:
        refs.require_worktree(root)
    assert caught.value.code == "ERR_GIT"
    return caught.value


def test_what_is_no_work_tree_is_refused_with_a_way_on(root: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    file = tmp_path / "file"
    file.touch()
    bare = tmp_path / "bare"
    git(str(tmp_path), "init", "-q", "--bare", str(bare))
    broken = tmp_path / "broken"
    (broken / ".git").mkdir(parents=True)
    for path in (plain, tmp_path / "missing"):
        assert refused(str(path)).suggestions == (f"memhtml init --repo {path}",)
    for path in (file, bare, broken):
        assert refused(str(path)).suggestions == ()
    assert refused(str(tmp_path / "a b")).suggestions == (f"memhtml init --repo '{tmp_path}/a b'",)
    assert not (tmp_path / "missing").exists()
    assert list(plain.iterdir()) == []


@pytest.mark.parametrize("name", ["areas", "areas/none/deeper"])
def test_a_folder_inside_a_store_is_told_the_stores_top(root: str, name: str) -> None:
    below = os.path.join(root, name)
    os.makedirs(os.path.join(root, "areas"), exist_ok=True)
    os.makedirs(os.path.join(root, ".memhtml"), exist_ok=True)
    error = refused(below)
    assert root in str(error)
    assert error.suggestions == (f"memhtml init --repo {root}",)


def test_a_folder_inside_a_work_tree_that_is_no_store_is_told_both(tmp_path: Path) -> None:
    git(str(tmp_path), "init", "-q")
    error = refused(str(tmp_path / "memhtml"))
    assert f"inside the work tree at {tmp_path}" in str(error)
    assert error.suggestions == (f"memhtml init --repo {tmp_path}/memhtml",)


def test_a_repository_of_another_user_is_refused_unless_git_trusts_it(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give files away")
    for folder, names, files in os.walk(root):
        for name in [".", *names, *files]:
            os.lchown(os.path.join(folder, name), 12345, 12345)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    error = refused(root)
    assert "another user" in str(error)
    assert error.suggestions == (f"git config --global --add safe.directory {root}",)
    with pytest.raises(MemhtmlError, match="another user") as caught:
        Repo(root).commit_time("0" * 40)
    assert caught.value.code == "ERR_GIT"

    (home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {root}\n")
    refs.require_worktree(root)
    assert refs.resolve(root, MAIN) == refs.head_commit(root) is not None
    assert Repo(root).commit_exists(str(refs.head_commit(root)))


@pytest.mark.parametrize("where", ["refs", "packed-refs"])
def test_a_branch_whose_commit_is_gone_counts_as_absent(root: str, where: str) -> None:
    """Neither loose nor in a pack, although there are packs (spec `sessions` §3)."""
    git(root, "gc", "-q")
    lost = "12" * 20
    if where == "refs":
        put_file(root, ".git/refs/heads/lost", f"{lost}\n".encode())
    else:
        with open(os.path.join(root, ".git", "packed-refs"), "a") as file:
            file.write(f"{lost} refs/heads/lost\n")
    assert refs.resolve(root, "refs/heads/lost") is None
    git(root, "symbolic-ref", "HEAD", "refs/heads/lost")
    assert refs.head_commit(root) is None
    assert refs.resolve(root, MAIN) is not None


@pytest.mark.parametrize("version", [1, 2])
def test_a_commit_in_any_pack_is_found(root: str, version: int) -> None:
    for n in range(3):
        put_file(root, "areas/a.html", b"%d\n" % n)
        git(root, "commit", "-qam", "more")
        git(root, "branch", f"b{n}")
        git(root, "-c", f"pack.indexVersion={version}", "repack", "-qd")
    packs = os.listdir(os.path.join(root, ".git", "objects", "pack"))
    assert len([name for name in packs if name.endswith(".idx")]) == 3
    for n in range(3):
        assert refs.resolve(root, f"refs/heads/b{n}") == line(root, "rev-parse", f"b{n}")


def test_a_commit_in_an_alternate_is_found(root: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    git(root, "clone", "-q", "--shared", root, other)
    assert refs.resolve(other, MAIN) == refs.resolve(root, MAIN) == refs.head_commit(other)


def test_other_object_formats_are_refused(tmp_path: Path) -> None:
    git(str(tmp_path), "init", "-q", "--object-format=sha256")
    assert "sha256" in str(refused(str(tmp_path)))


def test_a_missing_git_is_said(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MemhtmlError, match="git is not installed"):
        refs.list_refs(root, "refs/heads/")


def test_swap_moves_a_ref_only_from_where_it_was_expected(root: str) -> None:
    old, new = line(root, "rev-parse", "HEAD"), second_commit(root)
    assert refs.swap(root, MAIN, new, old, "memhtml(session): x\ny")
    assert refs.resolve(root, MAIN) == new
    assert not refs.swap(root, MAIN, new, old, "again")
    assert not refs.swap(root, MAIN, old, None, "absent")
    assert refs.resolve(root, MAIN) == new
    assert line(root, "reflog", "-1", "--format=%gs", "main") == "memhtml(session): x y"
    assert line(root, "reflog", "-1", "--format=%gs", "HEAD") == "memhtml(session): x y"


def test_swap_makes_a_ref_only_where_there_is_none(root: str) -> None:
    tip, ref = line(root, "rev-parse", "HEAD"), "refs/heads/curate/one"
    assert refs.swap(root, ref, tip, None, "made")
    assert not refs.swap(root, ref, tip, None, "made")
    assert not refs.swap(root, "refs/heads/gone", second_commit(root), tip, "gone")
    assert refs.resolve(root, "refs/heads/gone") is None


def test_a_swap_git_cannot_make_is_an_error_and_git_speaks_in_the_log(
    root: str, capfd: pytest.CaptureFixture[str]
) -> None:
    tip = line(root, "rev-parse", "HEAD")
    with pytest.raises(MemhtmlError) as caught:
        refs.swap(root, f"{MAIN}/below", tip, None, "collides")
    assert caught.value.code == "ERR_GIT"
    assert str(caught.value) == "git update-ref failed (exit 128)"
    out, err = capfd.readouterr()
    assert (out, "ERROR: git update-ref: fatal: " in err) == ("", True)
    with pytest.raises(MemhtmlError):
        refs.swap(root, MAIN, "1" * 40, tip, "no such object")


def test_a_swap_without_any_identity_works(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    git(root, "config", "user.useConfigOnly", "true")
    old, new = line(root, "rev-parse", "HEAD"), second_commit(root)
    assert refs.swap(root, MAIN, new, old, "x")


def _race(root: str, new: str, old: str, barrier: Barrier, name: str) -> None:
    barrier.wait()
    if refs.swap(root, MAIN, new, old, "race"):
        put_file(root, f".git/won-{name}", b"")


def test_of_many_swaps_one_wins(root: str) -> None:
    old = line(root, "rev-parse", "HEAD")
    repo = Repo(root)
    rivals = [commit_on(repo, old, {"areas/x.html": b"%d" % i}) for i in range(4)]
    barrier = FORK.Barrier(4)
    children = [
        FORK.Process(target=_race, args=(root, new, old, barrier, str(i)))
        for i, new in enumerate(rivals)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    won = [name for name in os.listdir(os.path.join(root, ".git")) if name.startswith("won-")]
    assert len(won) == 1
    assert refs.resolve(root, MAIN) == rivals[int(won[0].removeprefix("won-"))]
    assert all(child.exitcode == 0 for child in children)


def test_delete_ref_if_deletes_only_what_was_seen(root: str) -> None:
    tip, ref = line(root, "rev-parse", "HEAD"), "refs/memhtml/sessions/s1"
    git(root, "update-ref", ref, tip)
    assert not refs.delete_ref_if(root, ref, second_commit(root))
    assert refs.delete_ref_if(root, ref, tip)
    assert not refs.delete_ref_if(root, ref, tip)
    assert refs.resolve(root, ref) is None


def test_refs_are_listed_with_their_dates(root: str) -> None:
    tip = line(root, "rev-parse", "HEAD")
    date = int(line(root, "log", "-1", "--format=%ct"))
    for name in ("b", "a"):
        git(root, "update-ref", f"refs/memhtml/sessions/{name}", tip)
    expected = [(f"refs/memhtml/sessions/{name}", tip, date) for name in ("a", "b")]
    assert refs.list_refs(root, "refs/memhtml/sessions/") == expected
    assert refs.list_refs(root, "refs/none/") == []
