"""Reading objects, and building trees (spec `sessions` §9.1 step 4)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.head import stored
from tests.support.store import commit_on, files_at, git, line, make_repository, put_file

from memhtml.errors import MemhtmlError
from memhtml.store import repo as repo_module
from memhtml.store.entries import Tree, differing_entries, parse_tree
from memhtml.store.repo import Change, Repo
from memhtml.store.tree import build_tree

FILES = {"a.txt": b"a\n", "areas/x.html": b"x\n", "areas/deep/y.html": b"y\n", "areas-z": b"z\n"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repo, str]:
    """One repository for tests that only add objects, and its base commit."""
    root = str(tmp_path_factory.mktemp("repo") / "store")
    return Repo(root), make_repository(root, FILES)


def test_entries_and_bytes_are_read_by_path(shared: tuple[Repo, str]) -> None:
    repo, base = shared
    entry = repo.entry(base, "areas/x.html")
    assert entry == ("blob", 0o100644, line(repo.root, "rev-parse", f"{base}:areas/x.html"))
    assert repo.blob(base, "areas/deep/y.html") == b"y\n"
    folder = repo.entry(base, "areas/deep")
    assert folder is not None
    assert folder.kind == "tree"
    for absent in ("areas/no", "no/x", "areas/x.html/below", "", "areas/"):
        assert repo.entry(base, absent) is None
        assert repo.blob(base, absent) is None
    assert repo.blob(base, "areas/deep") is None


def test_every_kind_of_entry_is_reported_with_its_mode(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    make_repository(root, {"sub/inner": b"i", "plain.html": b"p", "run.html": b"r"})
    os.chmod(os.path.join(root, "run.html"), 0o755)
    os.symlink("plain.html", os.path.join(root, "link.html"))
    git(root, "add", "-A")
    commit = line(root, "rev-parse", "HEAD")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{commit},module")
    git(root, "commit", "-qm", "kinds")
    repo, tip = Repo(root), line(root, "rev-parse", "HEAD")
    modes = {path: mode for path, mode, _oid in repo.files(tip)}
    assert modes == {
        "link.html": 0o120000,
        "module": 0o160000,
        "plain.html": 0o100644,
        "run.html": 0o100755,
        "sub/inner": 0o100644,
    }
    kinds = {path: entry.kind for path in modes if (entry := repo.entry(tip, path))}
    assert kinds["link.html"] == "link"
    assert kinds["module"] == "commit"
    assert repo.blob(tip, "link.html") is None


def test_files_come_in_gits_order_and_names_that_are_no_text_are_skipped(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    make_repository(root, FILES)
    for name in (b"areas/\xff.html", b"\xfe/x.html", "areas/ü.html".encode()):
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"odd\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "odd names")
    tip = line(root, "rev-parse", "HEAD")
    listed = git(root, "ls-tree", "-r", "-z", "--name-only", tip).split(b"\0")[:-1]
    expected = [name.decode() for name in listed if b"\xff" not in name and b"\xfe" not in name]
    assert [path for path, _mode, _oid in Repo(root).files(tip)] == expected
    changed = [change.path for change in Repo(root).difference(f"{tip}", f"{tip}")]
    assert changed == []
    parent = line(root, "rev-parse", "HEAD^")
    assert [c.path for c in Repo(root).difference(parent, tip)] == ["areas/ü.html"]


def test_a_kept_file_beside_odd_names_survives_a_new_tree(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    make_repository(root, FILES)
    with open(os.path.join(os.fsencode(root), b"areas/\xff.html"), "wb") as file:
        file.write(b"odd\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "odd name")
    repo, tip = Repo(root), line(root, "rev-parse", "HEAD")
    commit = commit_on(repo, tip, {"areas/new.html": b"n\n"})
    assert b"areas/\xff.html" in git(root, "ls-tree", "-r", "-z", "--name-only", commit)


def test_a_missing_or_wrong_object_is_a_git_error(shared: tuple[Repo, str]) -> None:
    repo, base = shared
    blob = line(repo.root, "rev-parse", f"{base}:a.txt")
    for act in (
        lambda: repo.data("1" * 40),
        lambda: repo.entry("1" * 40, "a.txt"),
        lambda: repo.entry(blob, "a.txt"),
        lambda: list(repo.files("1" * 40)),
        lambda: repo.commit_time(blob),
        lambda: repo.tree_entries(blob),
    ):
        with pytest.raises(MemhtmlError) as caught:
            act()
        assert caught.value.code == "ERR_GIT"


def test_a_root_without_a_repository_is_a_git_error(tmp_path: Path) -> None:
    with pytest.raises(MemhtmlError) as caught:
        Repo(str(tmp_path)).data("1" * 40)
    assert caught.value.code == "ERR_GIT"
    assert caught.value.suggestions == (f"memhtml init --repo {tmp_path}",)


def test_a_folder_larger_than_what_is_kept_is_read_once_for_all_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"areas/inbox/n{number}.html" for number in range(60)]
    commit = make_repository(str(tmp_path), {name: b"x" for name in names})
    monkeypatch.setattr(repo_module, "_KEPT_TREES_BYTES", 1_000)
    monkeypatch.setattr(repo_module, "_LARGE_TREE_BYTES", 250)
    read: list[bytes] = []
    real = Repo._read

    def noted(self: Repo, oid: bytes) -> bytes:
        read.append(oid)
        return real(self, oid)

    monkeypatch.setattr(Repo, "_read", noted)
    repo = Repo(str(tmp_path))
    assert all(repo.entry(commit, name) is not None for name in names)
    # The root, areas and the inbox.
    assert len(read) == 3


def test_history_is_answered_without_refs(shared: tuple[Repo, str]) -> None:
    repo, base = shared
    one = commit_on(repo, base, {"a.txt": b"1"})
    two = commit_on(repo, one, {"a.txt": b"2"})
    side = commit_on(repo, base, {"a.txt": b"3"})
    assert repo.is_ancestor(base, two)
    assert repo.is_ancestor(two, two)
    assert not repo.is_ancestor(two, base)
    assert not repo.is_ancestor(side, two)
    assert not repo.is_ancestor("1" * 40, two)
    assert not repo.is_ancestor(two, "1" * 40)
    assert repo.commit_exists(two)
    assert not repo.commit_exists("1" * 40)
    assert not repo.commit_exists("not an id")
    assert not repo.commit_exists(repo.root_tree(base))
    assert repo.parents(two) == [one]
    assert repo.first_parent(base) is None
    assert repo.commit_time(two) == 1_700_000_000


# --- building trees ----------------------------------------------------------------------------

SEGMENTS = st.sampled_from(["a", "b", "a-", "a.b", "c.html", "ü"])
PATHS = st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join)
TREES = st.dictionaries(PATHS, st.binary(max_size=3), max_size=8).map(
    lambda files: {path: data for path, data in files.items() if not inside_another(path, files)}
)


def inside_another(path: str, files: dict[str, bytes]) -> bool:
    """Whether one of `files` is a folder of `path`."""
    return any(path.startswith(f"{other}/") for other in files)


def make_tree(root: str, files: dict[str, bytes]) -> str:
    """A tree object built by git alone, from a throw-away index."""
    env = {**os.environ, "GIT_INDEX_FILE": os.path.join(root, ".git", "scratch-index")}
    lines = b""
    for path, data in files.items():
        blob = git(root, "hash-object", "-w", "--stdin", stdin=data).strip()
        lines += b"100644 " + blob + b"\t" + path.encode() + b"\0"
    for words, text in (
        (["read-tree", "--empty"], b""),
        (["update-index", "-z", "--index-info"], lines),
    ):
        subprocess.run(["git", "-C", root, *words], input=text, env=env, check=True)
    done = subprocess.run(
        ["git", "-C", root, "write-tree"], env=env, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def commit_tree(repo: Repo, tree: str) -> str:
    """A commit object of a tree."""
    who = "t <t> 1 +0000"
    text = f"tree {tree}\nauthor {who}\ncommitter {who}\n\nx\n"
    return repo.write_object("commit", text.encode())


@settings(max_examples=60, deadline=None)
@given(before=TREES, after=TREES)
def test_a_tree_built_from_edits_is_the_one_git_builds(
    shared: tuple[Repo, str], before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    repo, _ = shared
    base = commit_tree(repo, make_tree(repo.root, before))
    writes = {path: data for path, data in after.items() if before.get(path) != data}
    removals = before.keys() - after.keys()
    built = build_tree(repo, base, writes, removals)
    assert built == make_tree(repo.root, after)

    changes = {c.path: c for c in repo.difference(base, commit_tree(repo, built))}
    assert changes.keys() == set(writes) | removals
    for path, change in changes.items():
        assert side(repo, change, "old") == before.get(path)
        assert side(repo, change, "new") == after.get(path)
    assert {path: repo.data(oid) for path, _m, oid in repo.files(commit_tree(repo, built))} == after


def side(repo: Repo, change: Change, name: str) -> bytes | None:
    """The bytes of one side of a change."""
    found = change.old if name == "old" else change.new
    return None if found is None else repo.data(found[1])


def test_many_writes_go_into_one_pack_that_git_accepts(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    base = make_repository(root, FILES)
    writes = {f"areas/t{i % 3}/n{i}.html": os.urandom(i * 7) for i in range(150)}
    repo = Repo(root)
    commit = commit_on(repo, base, writes | {"a.txt": b"a\n"}, ("areas/x.html",))
    packs = os.listdir(os.path.join(root, ".git", "objects", "pack"))
    assert len([name for name in packs if name.endswith(".pack")]) == 1
    expected = {**FILES, **writes}
    del expected["areas/x.html"]
    assert files_at(root, commit) == expected
    assert {path: repo.data(oid) for path, _m, oid in repo.files(commit)} == expected
    assert git(root, "fsck", "--strict", "--no-dangling") == b""


def test_modes_of_untouched_entries_are_kept(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    make_repository(root, FILES)
    os.chmod(os.path.join(root, "areas/x.html"), 0o755)
    git(root, "commit", "-qam", "executable")
    repo, tip = Repo(root), line(root, "rev-parse", "HEAD")
    kept = commit_on(repo, tip, {"areas/new.html": b"n"})
    assert repo.entry(kept, "areas/x.html") == repo.entry(tip, "areas/x.html")
    written = repo.entry(commit_on(repo, tip, {"areas/x.html": b"n"}), "areas/x.html")
    assert written is not None
    assert written.mode == 0o100644


def test_removing_everything_gives_the_empty_tree(shared: tuple[Repo, str]) -> None:
    repo, base = shared
    empty = build_tree(repo, base, {}, list(FILES))
    assert empty == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert build_tree(repo, None, {}, ()) == empty


def test_removing_what_is_not_there_changes_nothing(shared: tuple[Repo, str]) -> None:
    repo, base = shared
    same = build_tree(repo, base, {}, ["no", "areas/no", "no/no", "areas/x.html/no", "areas"])
    assert same == repo.root_tree(base)


def test_a_write_of_the_same_bytes_gives_the_same_tree(shared: tuple[Repo, str]) -> None:
    repo, base = shared
    assert build_tree(repo, base, FILES, ()) == repo.root_tree(base)
    assert build_tree(repo, base, FILES, list(FILES)) == repo.root_tree(base)


@pytest.mark.parametrize(
    "writes",
    [{"areas": b""}, {"areas/deep": b""}, {"a.txt/below": b""}, {"n": b"", "n/below": b""}],
)
def test_nothing_vanishes_that_was_not_named(
    shared: tuple[Repo, str], writes: dict[str, bytes]
) -> None:
    repo, base = shared
    with pytest.raises(MemhtmlError) as caught:
        build_tree(repo, base, writes, ())
    assert caught.value.code == "ERR_GIT"


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        "areas/.git/hooks/x.html",
        "areas/.GIT/x.html",
        "areas/git~1/x.html",
        "areas/.g\u200cit/x.html",
        "areas/.git . /x.html",
        "areas/.git::$INDEX_ALLOCATION/x.html",
        "areas//x.html",
        "areas/../x.html",
        "/areas/x.html",
        "areas/a\0b.html",
    ],
)
def test_a_path_git_refuses_is_refused(shared: tuple[Repo, str], path: str) -> None:
    repo, base = shared
    with pytest.raises(MemhtmlError, match="refuses the path"):
        build_tree(repo, base, {path: b""}, ())


def test_bytes_are_stored_as_they_are(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    base = make_repository(root, {".gitattributes": b"* text=auto eol=lf\n"})
    git(root, "config", "core.autocrlf", "true")
    commit = commit_on(Repo(root), base, {"areas/x.html": b"a\r\nb\n\0"})
    assert files_at(root, commit)["areas/x.html"] == b"a\r\nb\n\0"


def test_work_follows_the_touched_folders_and_not_the_corpus(tmp_path: Path) -> None:
    """Counted, not timed: objects read for one record among 40 folders."""
    root = str(tmp_path / "store")
    files = {f"resources/t{i}/m{j}.html": b"m" for i in range(40) for j in range(3)}
    base = make_repository(root, files)
    repo = Repo(root)
    read: list[bytes] = []
    real = repo._read_typed
    repo._read_typed = lambda oid: read.append(oid) or real(oid)  # type: ignore[func-returns-value,method-assign]
    commit = commit_on(repo, base, {"resources/t1/new.html": b"n"}, ("resources/t2/m0.html",))
    assert len(read) <= 5
    read.clear()
    assert len(list(repo.difference(base, commit))) == 2
    assert len(read) <= 12


def test_a_tree_deeper_than_a_recursion_may_go_is_read_compared_and_built(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    base = make_repository(root, FILES)
    repo = Repo(root)
    deep = "areas/" + "d/" * 1500
    one = commit_on(repo, base, {f"{deep}one.html": b"1", f"{deep[:200]}half.html": b"h"})
    two = commit_on(repo, one, {f"{deep}two.html": b"2"}, (f"{deep}one.html",))
    assert repo.blob(two, f"{deep}two.html") == b"2"
    assert {path for path, _mode, _oid in repo.files(two)} == {
        *FILES,
        f"{deep}two.html",
        f"{deep[:200]}half.html",
    }
    assert {change.path for change in repo.difference(one, two)} == {
        f"{deep}one.html",
        f"{deep}two.html",
    }
    assert {change.path for change in repo.difference(base, two)} == {
        f"{deep}two.html",
        f"{deep[:200]}half.html",
    }
    none = commit_on(repo, two, {}, (f"{deep}two.html", f"{deep[:200]}half.html"))
    assert repo.root_tree(none) == repo.root_tree(base)


def test_reading_many_files_keeps_memory_low(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    os.makedirs(root)
    git(root, "init", "-q", "-b", "main")
    parts = [b"commit refs/heads/main\ncommitter a <a@b> 1 +0000\ndata 0\n"]
    for i in range(600):
        data = os.urandom(50_000)
        parts.append(b"M 100644 inline areas/t%d/%d.html\ndata %d\n" % (i // 50, i, len(data)))
        parts += [data, b"\n"]
    git(root, "fast-import", "--quiet", stdin=b"".join(parts))
    code = (
        "import resource, sys; from memhtml.store.repo import Repo; repo = Repo(sys.argv[1]); "
        "list(repo.files(sys.argv[2])); "
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "n = sum(len(repo.data(oid)) for _p, _m, oid in repo.files(sys.argv[2])); "
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    tip = line(root, "rev-parse", "main")
    done = subprocess.run([sys.executable, "-c", code, root, tip], capture_output=True, check=True)
    total_bytes, grown_kib = map(int, done.stdout.split())
    assert total_bytes == 600 * 50_000
    assert grown_kib < 20_000


def test_objects_that_arrive_later_are_found(tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    base = make_repository(root, FILES)
    repo = Repo(root)
    assert repo.blob(base, "a.txt") == b"a\n"
    put_file(root, "a.txt", b"later\n")
    git(root, "commit", "-qam", "later")
    git(root, "gc", "-q", "--prune=now")
    assert repo.blob(line(root, "rev-parse", "HEAD"), "a.txt") == b"later\n"


ENTRIES = st.dictionaries(
    st.binary(min_size=1, max_size=6).filter(lambda name: b"\0" not in name),
    st.tuples(
        st.sampled_from((b"100644", b"40000", b"040000", b"120000")),
        st.binary(min_size=20, max_size=20),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(ENTRIES, ENTRIES)
def test_entries_of_a_tree_object_come_back_whatever_bytes_are_in_them(
    shared_ones: Tree, others: Tree
) -> None:
    old, new = {**shared_ones, **others}, {**others, **shared_ones}
    assert list(parse_tree(stored(old)).items()) == list(old.items())
    only_old = {name: old[name] for name in old if old[name] != new[name]}
    only_new = {name: new[name] for name in new if old[name] != new[name]}
    assert differing_entries(stored(old), stored(new)) == (only_old, only_new)
    assert differing_entries(stored(shared_ones), stored(new)) == (
        {name: entry for name, entry in shared_ones.items() if new[name] != entry},
        {name: entry for name, entry in new.items() if shared_ones.get(name) != entry},
    )


@settings(max_examples=60, deadline=None)
@given(ENTRIES.filter(bool), st.data())
def test_a_tree_object_that_is_cut_short_is_refused(tree: Tree, data: st.DataObject) -> None:
    whole = stored(tree)
    ends = {len(stored(dict(list(tree.items())[:count]))) for count in range(len(tree) + 1)}
    cut = data.draw(st.integers(1, len(whole) - 1).filter(lambda at: at not in ends))
    for broken in (whole[:cut], b"x" + whole):
        with pytest.raises(ValueError, match="damaged"):
            parse_tree(broken)
    with pytest.raises(ValueError, match="damaged"):
        differing_entries(whole, whole[:cut])
