"""One direct write is one commit of its own paths, whatever else the checkout holds."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.command import ROOTS
from tests.support.session import git, make_store, tip

from memhtml.errors import MemhtmlError, StorageError
from memhtml.store import land, refs, unfinished
from memhtml.store.land import landing
from memhtml.store.lock import checkout_lock

MESSAGE = "memhtml(write): a title\n"
A, B, NEW = "areas/inbox/a.html", "areas/inbox/b.html", "projects/p/new.html"


@pytest.fixture
def store(tmp_path: Path) -> str:
    root = make_store(str(tmp_path / "store"), {A: "a one\n", B: "b one\n"})
    git(root, "config", "user.name", "Ann")
    git(root, "config", "user.email", "ann@localhost")
    return root


def write(root: str, path: str, text: str) -> None:
    full = Path(root, path)
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_bytes(text.encode())


def state(root: str) -> dict[str, object]:
    """Everything a person would call the state of the checkout."""
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(Path(root).rglob("*"))
        if path.is_file() and ".git" not in path.parts and ".memhtml" not in path.parts
    }
    return {"head": tip(root, "HEAD"), "index": git(root, "ls-files", "-s"), "files": files}


def changed(root: str, commit: str = "HEAD") -> list[str]:
    return git(root, "show", "--format=", "--name-status", "--no-renames", commit).splitlines()


def commit(root: str, writes: dict[str, str], removals: tuple[str, ...] = ()) -> str | None:
    with landing(root) as hold:
        data = {path: text.encode() for path, text in writes.items()}
        return hold.commit(data, removals, MESSAGE)


def test_a_write_is_one_commit_of_its_own_paths(store: str) -> None:
    before = tip(store)
    sha = commit(store, {NEW: "new\n", A: "a two\n"}, (B,))
    assert tip(store) == sha
    assert git(store, "rev-parse", "HEAD^") == before
    assert changed(store) == [f"M\t{A}", f"D\t{B}", f"A\t{NEW}"]
    assert git(store, "log", "-1", "--format=%s|%an <%ae>") == (
        "memhtml(write): a title|Ann <ann@localhost>"
    )
    assert git(store, "status", "--porcelain") == ""
    assert not os.path.exists(unfinished.note_path(store))


def test_what_others_staged_and_edited_stays_as_it_is(store: str) -> None:
    write(store, "areas/inbox/staged.html", "staged\n")
    git(store, "add", "areas/inbox/staged.html")
    write(store, B, "b edited\n")
    write(store, "notes.txt", "untracked\n")
    commit(store, {NEW: "new\n"})
    assert changed(store) == [f"A\t{NEW}"]
    assert git(store, "status", "--porcelain").splitlines() == [
        f" M {B}",
        "A  areas/inbox/staged.html",
        "?? notes.txt",
    ]


def test_an_uncommitted_edit_of_the_same_file_is_read_and_committed(store: str) -> None:
    write(store, A, "a edited\n")
    with landing(store) as hold:
        data = hold.read(A)
        assert data == b"a edited\n"
        hold.commit({A: data + b"and linked\n"}, (), MESSAGE)
    assert git(store, "show", f"HEAD:{A}") == "a edited\nand linked"
    assert git(store, "status", "--porcelain") == ""


def test_nothing_is_committed_when_nothing_changes(store: str) -> None:
    before = state(store)
    assert commit(store, {A: "a one\n"}, ("areas/inbox/none.html",)) is None
    assert state(store) == before


def test_a_file_that_is_committed_but_was_deleted_by_hand_comes_back(store: str) -> None:
    os.unlink(os.path.join(store, A))
    assert commit(store, {A: "a one\n"}) is None
    assert Path(store, A).read_text() == "a one\n"


def test_the_commit_goes_to_the_branch_that_is_open(store: str) -> None:
    main = tip(store)
    git(store, "checkout", "-qb", "other")
    sha = commit(store, {NEW: "new\n"})
    assert (tip(store, "refs/heads/other"), tip(store)) == (sha, main)


def test_the_commit_goes_to_a_detached_head(store: str) -> None:
    git(store, "checkout", "-q", "--detach")
    main = tip(store)
    sha = commit(store, {NEW: "new\n"})
    assert (tip(store, "HEAD"), tip(store)) == (sha, main)
    assert refs.checked_out(store) is None


def test_a_first_commit_is_made_in_a_repository_without_one(tmp_path: Path) -> None:
    root = str(tmp_path / "fresh")
    subprocess.run(["git", "init", "-q", "-b", "main", root], check=True)
    sha = commit(root, {NEW: "new\n"})
    assert tip(root) == sha
    assert git(root, "rev-list", "--count", "HEAD") == "1"
    assert git(root, "status", "--porcelain", "--", "projects") == ""


@pytest.mark.parametrize("kind", ["folder", "link", "file above", "link above"])
def test_something_that_is_no_file_in_the_way_is_refused(store: str, kind: str) -> None:
    full = os.path.join(store, NEW)
    os.makedirs(os.path.dirname(os.path.dirname(full)), exist_ok=True)
    if kind == "folder":
        os.makedirs(full)
    elif kind == "link":
        os.makedirs(os.path.dirname(full))
        os.symlink("/etc/hostname", full)
    elif kind == "file above":
        write(store, "projects/p", "in the way\n")
    else:
        outside = os.path.join(store, "..", "outside")
        os.makedirs(outside)
        os.symlink(outside, os.path.dirname(full))
    before = state(store)
    with pytest.raises(StorageError, match="in the way") as caught:
        commit(store, {NEW: "new\n", A: "a two\n"})
    assert caught.value.reason == "write"
    assert state(store) == before


def test_a_path_in_an_open_merge_is_left_alone(store: str) -> None:
    git(store, "checkout", "-qb", "other")
    write(store, A, "theirs\n")
    git(store, "commit", "-qam", "theirs")
    git(store, "checkout", "-q", "main")
    write(store, A, "ours\n")
    git(store, "commit", "-qam", "ours")
    subprocess.run(["git", "-C", store, "merge", "-q", "other"], capture_output=True)
    before = state(store)
    with pytest.raises(MemhtmlError, match="open merge") as caught:
        commit(store, {A: "a two\n"})
    assert caught.value.code == "ERR_DIRTY_TREE"
    assert state(store) == before


def test_a_held_index_lock_leaves_everything_as_it_was(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memhtml.store import index

    monkeypatch.setattr(index, "LOCK_WAIT_S", 0.2)
    before = state(store)
    Path(store, ".git", "index.lock").touch()
    with pytest.raises(MemhtmlError, match=r"index\.lock"):
        commit(store, {NEW: "new\n"}, (B,))
    os.unlink(os.path.join(store, ".git", "index.lock"))
    assert state(store) == before
    assert not os.path.exists(unfinished.note_path(store))


def test_a_busy_checkout_is_told_and_nothing_is_written(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memhtml.store import lock

    monkeypatch.setattr(lock, "CHECKOUT_WAIT_S", 0.2)
    before = state(store)
    with (
        checkout_lock(store),
        pytest.raises(StorageError) as caught,
        landing(store),
    ):
        raise AssertionError("two writers hold the checkout")
    assert caught.value.reason == "checkout.locked"
    assert state(store) == before


def test_a_commit_of_somebody_else_in_between_is_built_upon(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    once: list[str] = []

    def others(name: str) -> None:
        if name == "staged" and not once:
            once.append(git(store, "commit-tree", "-p", "HEAD", "-m", "theirs", "HEAD^{tree}"))
            git(store, "update-ref", "refs/heads/main", once[0])

    monkeypatch.setattr(land, "on_step", others)
    sha = commit(store, {NEW: "new\n"}, (B,))
    assert tip(store) == sha
    assert git(store, "rev-parse", "HEAD^") == once[0]
    assert git(store, "status", "--porcelain") == ""


def test_a_commit_of_somebody_else_at_the_same_path_is_not_overwritten(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others(name: str) -> None:
        if name == "staged":
            blob = git(store, "hash-object", "-w", "--stdin", text="theirs\n")
            index = os.path.join(store, ".git", "other-index")
            env = {**os.environ, "GIT_INDEX_FILE": index}
            run = ["git", "-C", store]
            subprocess.run([*run, "read-tree", "HEAD"], check=True, env=env)
            info = f"100644,{blob},{A}"
            subprocess.run([*run, "update-index", "--cacheinfo", info], check=True, env=env)
            tree = subprocess.check_output([*run, "write-tree"], env=env, text=True).strip()
            theirs = git(store, "commit-tree", "-p", "HEAD", "-m", "theirs", tree)
            git(store, "update-ref", "refs/heads/main", theirs)

    monkeypatch.setattr(land, "on_step", others)
    write(store, A, "a edited\n")
    with pytest.raises(MemhtmlError, match="another commit changed"):
        commit(store, {A: "mine\n", NEW: "new\n"})
    assert git(store, "show", f"HEAD:{A}") == "theirs"
    assert Path(store, A).read_text() == "a edited\n"
    assert not os.path.exists(os.path.join(store, NEW))


def test_a_full_disk_leaves_everything_as_it_was(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third new file does not fit; the two before it are removed again."""
    import errno

    from memhtml.store.worktree import Spare, WorkTree

    before, made = state(store), []
    real = WorkTree.spare_file

    def full(self: WorkTree, data: bytes, near: str, *, executable: bool = False) -> Spare:
        made.append(near)
        if len(made) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), near)
        return real(self, data, near, executable=executable)

    monkeypatch.setattr(WorkTree, "spare_file", full)
    with pytest.raises(StorageError, match="No space left") as caught:
        commit(store, {f"projects/p/{n}.html": "x\n" for n in range(4)}, (A,))
    assert caught.value.reason == "write"
    monkeypatch.undo()
    assert state(store) == before
    assert sorted(os.listdir(os.path.join(store, "projects"))) == [".gitkeep"]


def messy(root: str) -> None:
    """A checkout with somebody's work at the very paths that will be written."""
    write(root, A, "a edited\n")
    write(root, B, "b staged\n")
    git(root, "add", B)
    write(root, B, "b edited\n")
    write(root, "areas/inbox/untracked.html", "untracked\n")
    write(root, "areas/inbox/staged.html", "staged\n")
    git(root, "add", "areas/inbox/staged.html")


WRITES = {A: "a two\n", NEW: "new\n", "areas/inbox/untracked.html": "taken\n"}


def in_child(act: Callable[[], None]) -> int:
    """Run in a forked child; its wait status."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os._exit(0)
        except BaseException:
            os._exit(7)
    return os.waitpid(pid, 0)[1]


def test_a_write_killed_at_any_step_is_as_before_or_as_after(store: str) -> None:
    messy(store)
    template = f"{store}.template"
    shutil.copytree(store, template, symlinks=True)
    before = state(store)
    killed_at: list[str] = []
    landed = 0
    for nth in range(1, 60):
        shutil.rmtree(store)
        shutil.copytree(template, store, symlinks=True)
        note = Path(template).with_name("step")

        def die(nth: int = nth, note: Path = note) -> None:
            seen: list[str] = []

            def count(name: str) -> None:
                seen.append(name)
                if len(seen) == nth:
                    note.write_text(name)
                    os.kill(os.getpid(), signal.SIGKILL)

            land.on_step = count
            commit(store, WRITES, (B,))

        status = in_child(die)
        if status == 0:
            break
        assert os.WIFSIGNALED(status), status
        killed_at.append(note.read_text())
        with landing(store):
            pass
        now = state(store)
        if now["head"] == before["head"]:
            assert now == before, killed_at[-1]
            continue
        landed += 1
        assert changed(store) == [
            f"M\t{A}",
            f"D\t{B}",
            "A\tareas/inbox/untracked.html",
            f"A\t{NEW}",
        ]
        assert git(store, "status", "--porcelain") == "A  areas/inbox/staged.html"
    assert {"built", "noted", A, B, NEW, "moved", "staged", "swapped"} <= set(killed_at)
    assert landed >= 1


def test_an_interrupted_write_puts_everything_back_at_once(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    messy(store)
    before = state(store)
    for step in ("noted", A, NEW, "moved", "staged"):

        def interrupt(name: str, step: str = step) -> None:
            if name == step:
                raise KeyboardInterrupt

        monkeypatch.setattr(land, "on_step", interrupt)
        with pytest.raises(KeyboardInterrupt):
            commit(store, WRITES, (B,))
        assert state(store) == before, step
        assert not os.path.exists(unfinished.note_path(store))


def test_an_interrupt_after_the_branch_moved_undoes_nothing(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = refs.swap

    def late(*words: object) -> bool:
        real(*words)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(refs, "swap", late)
    with pytest.raises(KeyboardInterrupt):
        commit(store, {NEW: "new\n"}, (B,))
    monkeypatch.undo()
    assert changed(store) == [f"D\t{B}", f"A\t{NEW}"]
    assert git(store, "status", "--porcelain") == ""
    assert commit(store, {A: "a two\n"}) is not None


def test_work_done_after_a_kill_is_kept_when_the_write_is_taken_back(store: str) -> None:
    def die() -> None:
        land.on_step = lambda name: (
            os.kill(os.getpid(), signal.SIGKILL) if name == "staged" else None
        )
        commit(store, {NEW: "new\n", A: "a two\n"}, (B,))

    in_child(die)
    write(store, NEW, "mine now\n")
    with landing(store):
        pass
    assert Path(store, NEW).read_text() == "mine now\n"
    assert Path(store, A).read_text() == "a one\n"
    assert Path(store, B).read_text() == "b one\n"


def test_a_killed_write_that_a_person_committed_stays(store: str) -> None:
    def die() -> None:
        land.on_step = lambda name: (
            os.kill(os.getpid(), signal.SIGKILL) if name == "staged" else None
        )
        commit(store, {NEW: "new\n"})

    in_child(die)
    os.unlink(os.path.join(store, ".git", "index.lock"))  # As git says to do.
    git(store, "commit", "-qm", "by hand")
    with landing(store):
        pass
    assert git(store, "show", f"HEAD:{NEW}") == "new"
    assert Path(store, NEW).read_text() == "new\n"
    assert git(store, "status", "--porcelain") == ""


@pytest.mark.parametrize("words", [("switch", "-q", "-c", "other"), ("branch", "-m", "other")])
def test_a_killed_write_is_taken_back_when_its_branch_has_another_name(
    store: str, words: tuple[str, ...]
) -> None:
    messy(store)
    before = state(store)

    def die() -> None:
        land.on_step = lambda name: (
            os.kill(os.getpid(), signal.SIGKILL) if name == "staged" else None
        )
        commit(store, WRITES, (B,))

    in_child(die)
    assert state(store) != before
    Path(store, ".git", "index.lock").unlink()  # As git says to do.
    git(store, *words)
    with landing(store):
        pass
    assert state(store) == before


def test_a_person_who_stages_everything_meanwhile_stops_no_write(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        land, "on_step", lambda name: git(store, "add", "-A", ".") if name == "moved" else None
    )
    assert commit(store, {A: "a two\n", NEW: "new\n"}, (B,)) == tip(store)
    assert changed(store) == [f"M\t{A}", f"D\t{B}", f"A\t{NEW}"]
    assert git(store, "status", "--porcelain") == ""


def test_what_a_person_commits_of_a_write_that_then_fails_stays_in_the_working_tree(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit_all(name: str) -> None:
        if name != "moved":
            return
        git(store, "add", "--", NEW, B)
        git(store, "commit", "-qm", "all that was there", "--", NEW, B)
        write(store, A, "mine at this moment\n")
        git(store, "add", "--", A)
        write(store, A, "a two\n")

    monkeypatch.setattr(land, "on_step", commit_all)
    with pytest.raises(MemhtmlError, match="staged at this moment"):
        commit(store, {A: "a two\n", NEW: "new\n"}, (B,))
    monkeypatch.undo()
    assert changed(store) == [f"D\t{B}", f"A\t{NEW}"]
    assert git(store, "status", "--porcelain") == f"MM {A}"
    assert Path(store, A).read_text() == "a one\n"


def test_a_file_system_without_hard_links_is_written_to(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    messy(store)

    def refused(*_words: object, **_named: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    before = state(store)
    monkeypatch.setattr(refs, "swap", lambda *_words: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        commit(store, WRITES, (B,))
    assert state(store) == before
    monkeypatch.undo()
    monkeypatch.setattr(os, "link", refused)
    assert commit(store, WRITES, (B,)) == tip(store)
    assert git(store, "status", "--porcelain") == "A  areas/inbox/staged.html"
    assert [name for name in os.listdir(f"{store}/.git") if "index" in name] == ["index"]


def put_note(store: str, text: bytes) -> str:
    path = unfinished.note_path(store)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_bytes(text)
    return path


OLD_ID, GONE_ID = "@OLD@", "4" * 40
"""The commit HEAD stands at, and an object that is not there."""


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"[9,null,null,null,{}]",
        b"\xff",
        b"[" * 99999,
        b"[1,null,null,5,{}]",
        b'[1,7,null,"@OLD@",{}]',
        b'[1,"refs/heads/main","main","@OLD@",{}]',
        b'[1,"refs/heads/main",null,"@OLD@",[]]',
        b'[1,"refs/heads/main",null,"@OLD@",{"a":[[1e999,"x"],null]}]',
        b'[1,"refs/heads/main",null,"@OLD@",{"a":[[33188,"x"],null]}]',
        b'[1,"refs/heads/main",null,"@OLD@",{"../a":[null,null]}]',
        b'[1,"refs/heads/main",null,"@OLD@",{".git/config":[null,null]}]',
        b'[1,"refs/heads/main",null,"@OLD@",{"\\ud800":[null,null]}]',
    ],
)
def test_a_note_that_is_none_is_dropped(store: str, text: bytes) -> None:
    path = put_note(store, text.replace(OLD_ID.encode(), git(store, "rev-parse", "HEAD").encode()))
    before = state(store)
    assert commit(store, {NEW: "new\n"}) is not None
    assert before["head"] == git(store, "rev-parse", "HEAD^")
    assert not os.path.exists(path)


def test_a_note_of_objects_that_are_gone_holds_up_no_write(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    head = git(store, "rev-parse", "HEAD")
    new = git(store, "commit-tree", "-p", "HEAD", "-m", "x", "HEAD^{tree}")
    note = [1, "refs/heads/main", head, new, {A: [[33188, GONE_ID], None]}]
    put_note(store, json.dumps(note).encode())
    before = state(store)
    assert commit(store, {NEW: "new\n"}) is not None
    assert before["head"] == git(store, "rev-parse", "HEAD^")
    assert f"git object {GONE_ID} is missing" in capsys.readouterr().err


def test_line_ends_that_git_converts_are_no_edit(store: str) -> None:
    git(store, "config", "core.autocrlf", "true")
    write(store, A, "a one\r\n")
    with landing(store) as hold:
        assert hold.read(A) == b"a one\n"
    write(store, A, "a other\r\n")
    with landing(store) as hold:
        assert hold.read(A) == b"a other\r\n"


RACER = """
import sys
from memhtml.store.land import landing
root, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
for n in range(rounds):
    with landing(root) as hold:
        path = f"areas/inbox/{name}-{n}.html"
        assert hold.commit({path: f"{name} {n}\\n".encode()}, (), f"memhtml(write): {name} {n}\\n")
"""


def test_writers_and_a_person_at_once_lose_and_mix_nothing(store: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, store, name, "12"], env=env)
        for name in ("x", "y", "z")
    ]
    mine = 0
    while any(racer.poll() is None for racer in racers):
        write(store, f"areas/inbox/hand-{mine}.html", "by hand\n")
        run = ["git", "-C", store, "commit", "-qm", f"hand {mine}", "-i", "--"]
        add = ["git", "-C", store, "add", f"areas/inbox/hand-{mine}.html"]
        # Either may find the index locked, or the branch moved: git says so, and nothing is lost.
        if subprocess.run(add, capture_output=True).returncode == 0:
            done = subprocess.run([*run, f"areas/inbox/hand-{mine}.html"], capture_output=True)
            mine += done.returncode == 0
    assert [racer.wait() for racer in racers] == [0, 0, 0]
    log = git(store, "log", "--format=%H %s", "--grep", "memhtml(write)").splitlines()
    assert len(log) == 36
    for line in log:
        sha, _, subject = line.partition(" ")
        name, number = subject.removeprefix("memhtml(write): ").split()
        assert changed(store, sha) == [f"A\tareas/inbox/{name}-{number}.html"]
    for line in git(store, "log", "--format=%H %s", "--grep", "^hand ").splitlines():
        sha, _, subject = line.partition(" ")
        number = subject.removeprefix("hand ")
        assert changed(store, sha) == [f"A\tareas/inbox/hand-{number}.html"]
