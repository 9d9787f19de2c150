"""Objects by hand, from the git child and from pygit2: the same bytes from everywhere."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.store import commit_on, files_at, git, line, make_repository, put_file

from memhtml.errors import MemhtmlError
from memhtml.store import cat_file, loose, objects
from memhtml.store.objects import ObjectMissing, Objects
from memhtml.store.pack import object_id
from memhtml.store.repo import Repo

FILES = {f"areas/t{n % 5}/f{n}.html": b"file %d\n" % n * (n + 1) for n in range(30)}


def loose_only(root: str, _tmp_path: Path) -> str:
    return root


def packed(root: str, _tmp_path: Path) -> str:
    git(root, "gc", "-q")
    return root


def alternate(root: str, tmp_path: Path) -> str:
    other = str(tmp_path / "borrower")
    git(root, "clone", "-q", "--shared", root, other)
    return other


def linked_worktree(root: str, tmp_path: Path) -> str:
    other = str(tmp_path / "linked")
    git(root, "worktree", "add", "-q", "-b", "side", other)
    return other


def shared(root: str, _tmp_path: Path) -> str:
    git(root, "config", "core.sharedRepository", "group")
    return root


KINDS: list[Callable[[str, Path], str]] = [loose_only, packed, alternate, linked_worktree, shared]


@pytest.fixture
def root(tmp_path: Path) -> str:
    path = str(tmp_path / "store")
    make_repository(path, FILES)
    return path


def child_pid(reader: Objects) -> int:
    """The process of the git child."""
    child = reader._child._child
    assert child is not None
    return child.pid


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
def test_every_way_to_an_object_gives_the_same_bytes(
    root: str, tmp_path: Path, kind: Callable[[str, Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = kind(root, tmp_path)
    ids = [words.split()[0] for words in git(root, "rev-list", "--objects", "HEAD").splitlines()]
    assert len(ids) > 30
    expected = {
        oid: (
            git(root, "cat-file", "-t", oid.decode()).decode().strip(),
            git(root, "cat-file", line(root, "cat-file", "-t", oid.decode()), oid.decode()),
        )
        for oid in ids
    }
    few = Objects(root)
    assert {oid: few.read(bytes.fromhex(oid.decode())) for oid in ids} == expected
    assert few._handle is None
    monkeypatch.setattr(objects, "LIGHT_READS", 0)
    many = Objects(root)
    assert {oid: many.read(bytes.fromhex(oid.decode())) for oid in ids} == expected
    assert many._child._child is None


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [1, 150])
def test_what_is_written_is_there_for_git_and_for_every_other_reader(
    root: str, tmp_path: Path, kind: Callable[[str, Path], str], count: int
) -> None:
    root = kind(root, tmp_path)
    base = line(root, "rev-parse", "HEAD")
    writes = {f"areas/new/n{n}.html": os.urandom(n * 11) for n in range(count)}
    commit = commit_on(Repo(root), base, writes, ("areas/t0/f0.html",))
    expected = {**FILES, **writes}
    del expected["areas/t0/f0.html"]
    assert files_at(root, commit) == expected
    repo = Repo(root)
    assert {path: repo.data(oid) for path, _mode, oid in repo.files(commit)} == expected
    git(root, "fsck", "--strict", "--no-dangling")


def test_who_reads_many_goes_on_with_pygit2(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    git(root, "gc", "-q")
    monkeypatch.setattr(objects, "LIGHT_READS", 10)
    repo = Repo(root)
    tip = line(root, "rev-parse", "HEAD")
    assert {path: repo.data(oid) for path, _mode, oid in repo.files(tip)} == FILES
    assert repo.objects._handle is not None
    assert repo.objects._child._child is None


@pytest.mark.parametrize("light", [0, 1000])
def test_a_missing_object_is_named(root: str, monkeypatch: pytest.MonkeyPatch, light: int) -> None:
    monkeypatch.setattr(objects, "LIGHT_READS", light)
    repo = Repo(root)
    with pytest.raises(ObjectMissing) as caught:
        repo.data("12" * 20)
    assert (caught.value.code, caught.value.oid) == ("ERR_GIT", "12" * 20)
    # The child is still in step: the next answer belongs to the next question.
    assert (
        repo.blob(line(root, "rev-parse", "HEAD"), "areas/t1/f1.html") == FILES["areas/t1/f1.html"]
    )
    with pytest.raises(ObjectMissing):
        list(repo.difference("12" * 20, line(root, "rev-parse", "HEAD")))


def loose_path(root: str, oid: str) -> str:
    """Where a loose object lies."""
    return os.path.join(root, ".git", "objects", oid[:2], oid[2:])


@pytest.mark.parametrize(
    "content",
    [b"", b"rubbish", zlib.compress(b"blob 99\0short"), zlib.compress(b"no head at all")],
    ids=["empty", "rubbish", "short", "headless"],
)
def test_a_damaged_object_is_a_git_error(root: str, content: bytes) -> None:
    oid = line(root, "rev-parse", "HEAD:areas/t1/f1.html")
    os.chmod(loose_path(root, oid), 0o644)
    Path(loose_path(root, oid)).write_bytes(content)
    repo = Repo(root)
    with pytest.raises(MemhtmlError) as caught:
        repo.data(oid)
    assert caught.value.code == "ERR_GIT"
    tip = line(root, "rev-parse", "HEAD")
    assert repo.blob(tip, "areas/t2/f2.html") == FILES["areas/t2/f2.html"]


def test_an_object_that_git_never_finishes_is_given_up(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A linked work tree's objects are all git's to read, and git waits in the middle of this."""
    other = linked_worktree(root, tmp_path)
    oid = line(root, "rev-parse", "HEAD:areas/t1/f1.html")
    os.chmod(loose_path(root, oid), 0o644)
    Path(loose_path(root, oid)).write_bytes(zlib.compress(b"blob 99\0short"))
    monkeypatch.setattr(cat_file, "_SILENCE_MS", 300)
    repo = Repo(other)
    with pytest.raises(MemhtmlError, match="damaged") as caught:
        repo.data(oid)
    assert caught.value.code == "ERR_GIT"
    tip = line(root, "rev-parse", "HEAD")
    assert repo.blob(tip, "areas/t2/f2.html") == FILES["areas/t2/f2.html"]


def test_a_damaged_file_beside_a_whole_pack_is_no_matter(root: str) -> None:
    oid = line(root, "rev-parse", "HEAD:areas/t1/f1.html")
    whole = Path(loose_path(root, oid)).read_bytes()
    git(root, "gc", "-q")
    os.makedirs(os.path.dirname(loose_path(root, oid)), exist_ok=True)
    Path(loose_path(root, oid)).write_bytes(whole[:-4])
    assert Repo(root).data(oid) == FILES["areas/t1/f1.html"]


def test_a_child_that_was_killed_is_started_again(root: str) -> None:
    git(root, "gc", "-q")
    reader = Objects(root)
    oid = bytes.fromhex(line(root, "rev-parse", "HEAD:areas/t1/f1.html"))
    assert reader.read(oid)[1] == FILES["areas/t1/f1.html"]
    first = child_pid(reader)
    os.kill(first, signal.SIGKILL)
    assert reader.read(oid)[1] == FILES["areas/t1/f1.html"]
    assert child_pid(reader) != first


def test_an_interrupted_read_leaves_no_answer_behind(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(root, "gc", "-q")
    reader = Objects(root)
    one, other = (line(root, "rev-parse", f"HEAD:areas/t{n}/f{n}.html") for n in (1, 2))
    with monkeypatch.context() as patch:

        def asked_only(child: subprocess.Popen[bytes], oid: bytes) -> None:
            assert child.stdin is not None
            os.write(child.stdin.fileno(), oid.hex().encode() + b"\n")
            raise KeyboardInterrupt

        patch.setattr(cat_file, "_ask", asked_only)
        with pytest.raises(KeyboardInterrupt):
            reader.read(bytes.fromhex(one))
    assert reader.read(bytes.fromhex(other))[1] == FILES["areas/t2/f2.html"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_has_a_child_of_its_own(root: str) -> None:
    git(root, "gc", "-q")
    reader = Objects(root)
    ids = [line(root, "rev-parse", f"HEAD:areas/t{n % 5}/f{n}.html") for n in range(20)]
    reader.read(bytes.fromhex(ids[0]))
    pid = os.fork()
    if pid == 0:
        wrong = [
            n
            for n, oid in enumerate(ids)
            if reader.read(bytes.fromhex(oid))[1] != FILES[f"areas/t{n % 5}/f{n}.html"]
        ]
        os._exit(1 if wrong else 0)
    for n, oid in enumerate(ids):
        assert reader.read(bytes.fromhex(oid))[1] == FILES[f"areas/t{n % 5}/f{n}.html"]
    assert os.waitpid(pid, 0)[1] == 0
    assert reader.read(bytes.fromhex(ids[3]))[1] == FILES["areas/t3/f3.html"]


def test_a_child_ends_with_its_reader_and_with_its_process(root: str) -> None:
    git(root, "gc", "-q")
    oid = bytes.fromhex(line(root, "rev-parse", "HEAD:areas/t1/f1.html"))
    reader = Objects(root)
    reader.read(oid)
    pid = child_pid(reader)
    reader.close()
    assert not Path(f"/proc/{pid}").exists()
    reader.close()
    assert reader.read(oid)[1] == FILES["areas/t1/f1.html"]
    pid = child_pid(reader)
    del reader
    assert not Path(f"/proc/{pid}").exists()

    code = (
        "import os, signal, sys; from memhtml.store.objects import Objects; "
        "reader = Objects(sys.argv[1]); reader.read(bytes.fromhex(sys.argv[2])); "
        "print(reader._child._child.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, root, oid.hex()], capture_output=True)
    # The pipe to us is open in no other process: its end means that the child is gone as well.
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.strip().isdigit()
    assert done.stderr == b""


def test_a_repository_git_refuses_is_refused(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give files away")
    for folder, names, files in os.walk(root):
        for name in [".", *names, *files]:
            os.lchown(os.path.join(folder, name), 12345, 12345)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    for light in (0, 1000):
        monkeypatch.setattr(objects, "LIGHT_READS", light)
        repo = Repo(root)
        with pytest.raises(MemhtmlError, match="another user"):
            repo.data("12" * 20)
        with pytest.raises(MemhtmlError, match="unpack-objects") as caught:
            repo.write_object("blob", b"x")
        assert caught.value.code == "ERR_GIT"
    (tmp_path / ".gitconfig").write_text(f"[safe]\n\tdirectory = {root}\n")
    repo = Repo(root)
    assert git(root, "cat-file", "blob", repo.write_object("blob", b"x")) == b"x"


# --- loose files -------------------------------------------------------------------------------


def test_a_loose_object_looks_like_gits_own(root: str) -> None:
    repo = Repo(root)
    oid = repo.write_object("blob", b"mine\n")
    theirs = line(root, "rev-parse", "HEAD:areas/t1/f1.html")
    modes = {stat.S_IMODE(os.stat(loose_path(root, each)).st_mode) for each in (oid, theirs)}
    assert modes == {0o444}
    assert git(root, "cat-file", "blob", oid) == b"mine\n"


def test_an_object_that_is_there_is_young_again_and_not_written_twice(root: str) -> None:
    oid = line(root, "rev-parse", "HEAD:areas/t1/f1.html")
    path = loose_path(root, oid)
    os.utime(path, (1, 1))
    inode = os.stat(path).st_ino
    assert Repo(root).write_object("blob", FILES["areas/t1/f1.html"]) == oid
    assert os.stat(path).st_ino == inode
    assert os.stat(path).st_mtime > 1000


def test_a_shared_repository_gets_its_own_permissions(root: str) -> None:
    git(root, "config", "core.sharedRepository", "0660")
    oid = Repo(root).write_object("blob", b"for the group\n")
    assert stat.S_IMODE(os.stat(loose_path(root, oid)).st_mode) == 0o440


@pytest.mark.parametrize("call", ["write_all", "rename"])
def test_a_full_disk_leaves_no_half_object(
    root: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_words: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(loose if call == "write_all" else os, call, full)
    with pytest.raises(MemhtmlError, match="No space left on device") as caught:
        Repo(root).write_object("blob", b"new\n")
    monkeypatch.undo()
    assert caught.value.code == "ERR_GIT"
    oid = object_id("blob", b"new\n")
    assert not os.path.exists(loose_path(root, oid))
    folder = os.path.dirname(loose_path(root, oid))
    assert not os.path.isdir(folder) or not any(
        name.startswith("tmp_obj_") for name in os.listdir(folder)
    )


# --- history -----------------------------------------------------------------------------------


def test_ancestors_are_found_at_any_distance_and_across_merges(root: str) -> None:
    parts = []
    for n in range(300):
        merge = b"merge :%d\n" % (n - 7) if n > 10 and n % 9 == 0 else b""
        parent = b"from :%d\n" % n if n else b""
        parts.append(
            b"commit refs/heads/long\nmark :%d\ncommitter a <a@b> %d +0000\ndata 0\n%s%s"
            % (n + 1, n, parent, merge)
        )
    git(root, "fast-import", "--quiet", stdin=b"".join(parts))
    shas = line(root, "rev-list", "--reverse", "--topo-order", "long").split()
    repo, tip = Repo(root), shas[-1]
    for sha in (shas[0], shas[1], shas[150], shas[-60], shas[-2]):
        assert repo.is_ancestor(sha, tip)
        assert not repo.is_ancestor(tip, sha)
    main = line(root, "rev-parse", "main")
    assert not repo.is_ancestor(main, tip)
    assert not repo.is_ancestor(tip, main)


def test_a_shallow_history_ends_where_it_was_cut(root: str, tmp_path: Path) -> None:
    for n in range(4):
        put_file(root, "areas/t0/f0.html", b"%d\n" % n)
        git(root, "commit", "-qam", "more")
    other = str(tmp_path / "shallow")
    git(root, "clone", "-q", "--depth=2", f"file://{root}", other)
    repo, tip = Repo(other), line(root, "rev-parse", "HEAD")
    assert repo.is_ancestor(line(root, "rev-parse", "HEAD~1"), tip)
    assert not repo.is_ancestor(line(root, "rev-parse", "HEAD~3"), tip)
    assert not repo.is_ancestor(line(root, "rev-parse", "HEAD~2"), tip)


# --- what is loaded ----------------------------------------------------------------------------


def test_a_few_objects_load_no_pygit2(root: str) -> None:
    git(root, "gc", "-q")
    code = (
        "import sys; from memhtml.store.repo import Repo; from memhtml.store import tree, commit\n"
        "root, tip = sys.argv[1:]; repo = Repo(root)\n"
        "writes = {f'areas/n/{n}.html': b'n' for n in range(200)}\n"
        "built = tree.build_tree(repo, tip, writes, ['areas/t0/f0.html'])\n"
        "sha = commit.create(repo, built, [tip], 'x', 1)\n"
        "assert len(list(repo.difference(tip, sha))) == 201\n"
        "assert repo.is_ancestor(tip, sha) and not repo.is_ancestor(sha, tip)\n"
        "assert repo.trusts_file_mode\n"
        "print([m for m in ('pygit2', 'cffi', 'tempfile', 'shutil') if m in sys.modules])"
    )
    tip = line(root, "rev-parse", "HEAD")
    done = subprocess.run([sys.executable, "-c", code, root, tip], capture_output=True)
    assert (done.stdout.strip(), done.stderr) == (b"[]", b"")
