"""What a repository may not bring along, found in every kind of index that git writes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.store import git, make_repository, put_file

from memhtml.errors import StorageError
from memhtml.store import trust
from memhtml.store.trust import require_local_state

PLAIN = {
    ".gitattributes": b"",
    ".gitignore": b".memhtml/sandbox/\n",
    ".memhtml/state/.gitkeep": b"",
    ".memhtml/state/access.jsonl": b"",
    ".memhtml/sleep/last.json": b"",
    ".memhtml-notes": b"",
    ".memhtml.txt": b"",
    ".memhtmla": b"",
    "!first": b"",
    "README.html": b"",
    "areas/.memhtml/sandbox/x": b"",
    "areas/a.html": b"",
}


@pytest.fixture
def root(tmp_path: Path) -> str:
    path = str(tmp_path / "store")
    make_repository(path, PLAIN)
    return path


def no_child(patch: pytest.MonkeyPatch) -> None:
    """From here on a git child is a failure."""

    def refuse(*words: object, **named: object) -> None:
        raise AssertionError("a git child was started")

    patch.setattr(trust, "run_git", refuse)


def refused(root: str) -> str:
    """The refusal's sentence."""
    with pytest.raises(StorageError) as caught:
        require_local_state(root)
    assert caught.value.code == "ERR_STORAGE"
    assert caught.value.reason == "store.tracked-state"
    return str(caught.value)


def add(root: str, path: str, data: bytes = b"x") -> None:
    put_file(root, path, data)
    git(root, "add", "--force", "--", path)


def test_a_plain_store_passes_without_a_child(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_child(monkeypatch)
    require_local_state(root)


def test_what_is_there_and_not_tracked_passes(root: str) -> None:
    put_file(root, ".memhtml/sandbox/tools/current", b"{}")
    put_file(root, ".memhtml/sessions/a/log.jsonl", b"")
    require_local_state(root)


def test_a_repository_without_an_index_tracks_nothing(tmp_path: Path) -> None:
    git(str(tmp_path), "init", "-q")
    require_local_state(str(tmp_path))


@pytest.mark.parametrize(
    "path",
    [
        ".memhtml/sandbox/tools/current",
        ".memhtml/sandbox/probe.json",
        ".memhtml/snapshots/main.db",
        ".memhtml/sessions/a/log.jsonl",
        ".memhtml/anything",
        ".memhtml/statement",
        ".memhtml/" + "n" * 200 + "/" + "m" * 240,
        ".MEMHTML/sandbox/probe.json",
        ".Memhtml/state/x",
    ],
)
def test_a_tracked_file_of_the_local_state_is_named(
    root: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(root, path)
    no_child(monkeypatch)
    text = refused(root)
    assert f"{path} is tracked by git; it is local state" in text
    assert f"rm -r --cached --ignore-unmatch -- {'/'.join(path.split('/')[:2])}`" in text


def test_the_remedy_is_one(root: str) -> None:
    add(root, ".memhtml/sandbox/probe.json")
    with pytest.raises(StorageError) as caught:
        require_local_state(root)
    subprocess.run(caught.value.suggestions[0], shell=True, check=True, capture_output=True)
    require_local_state(root)


@pytest.mark.parametrize("name", [".memhtml", ".memhtml/sandbox", ".memhtml/state"])
def test_a_tracked_link_or_module_is_refused_even_where_it_is_not_checked_out(
    root: str, name: str
) -> None:
    git(root, "rm", "-r", "-q", "--cached", "--", ".memhtml")
    blob = git(root, "hash-object", "-w", "--stdin", stdin=b"/tmp").decode().strip()
    for mode, oid in (
        ("120000", blob),
        ("160000", git(root, "rev-parse", "HEAD").decode().strip()),
    ):
        git(root, "update-index", "--add", "--cacheinfo", f"{mode},{oid},{name}")
        assert f"{name} is tracked" in refused(root)


@pytest.mark.parametrize("name", ["", "/sandbox", "/snapshots", "/sessions"])
def test_a_symbolic_link_is_refused(root: str, tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    if name:
        os.makedirs(f"{root}/.memhtml", exist_ok=True)
    else:
        os.rename(f"{root}/.memhtml", f"{tmp_path}/aside")
    os.symlink(tmp_path / "elsewhere", f"{root}/.memhtml{name}")
    assert f".memhtml{name} is a symbolic link" in refused(root)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_version_of_the_index_is_read(
    root: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        put_file(root, f".github/{'long/' * (number % 40)}{number}", b"")
    git(root, "add", "-A")
    put_file(root, ".a-intended", b"x")
    git(root, "add", "--intent-to-add", ".a-intended")  # An extended entry, so at least version 3.
    git(root, "update-index", "--index-version", str(version))
    no_child(monkeypatch)
    require_local_state(root)
    put_file(root, ".memhtml/head.sock", b"")
    monkeypatch.undo()
    git(root, "add", "--force", ".memhtml/head.sock")
    no_child(monkeypatch)
    assert ".memhtml/head.sock is tracked" in refused(root)
    with open(f"{root}/.git/index", "rb") as file:
        assert int.from_bytes(file.read(8)[4:], "big") == max(version, 3)


def test_a_split_index_is_asked_of_git(root: str) -> None:
    add(root, ".memhtml/sandbox/probe.json")
    git(root, "-c", "core.splitIndex=true", "update-index", "--split-index")
    assert [name for name in os.listdir(f"{root}/.git") if name.startswith("sharedindex.")]
    assert ".memhtml/sandbox/probe.json is tracked" in refused(root)
    git(root, "rm", "-q", "--cached", ".memhtml/sandbox/probe.json")
    require_local_state(root)


def test_a_sparse_index_that_folds_the_folder_is_asked_of_git(root: str) -> None:
    add(root, ".memhtml/sandbox/probe.json")
    git(root, "commit", "-q", "-m", "planted")
    git(root, "sparse-checkout", "init", "--cone", "--sparse-index")
    git(root, "sparse-checkout", "set", "areas")
    assert ".memhtml/sandbox/probe.json is tracked" in refused(root)


def test_a_linked_work_tree_has_an_index_of_its_own(root: str, tmp_path: Path) -> None:
    linked = str(tmp_path / "linked")
    git(root, "worktree", "add", "-q", "--detach", linked)
    require_local_state(linked)
    add(linked, ".memhtml/sandbox/probe.json")
    assert ".memhtml/sandbox/probe.json is tracked" in refused(linked)
    require_local_state(root)


@pytest.mark.parametrize("size_bytes", [0, 11, 12, 40, 73, 80, 150])
def test_a_damaged_index_is_gits_to_judge(root: str, size_bytes: int) -> None:
    path = Path(root, ".git/index")
    path.write_bytes(path.read_bytes()[:size_bytes])
    asked: list[str] = []

    def answer(*words: str) -> bytes | None:
        asked.extend(words)
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trust, "_ask", answer)
        require_local_state(root)
    assert asked == [root]


_NAMES = st.sampled_from(
    [".memhtml", ".memhtm", ".memhtml-x", ".memhtml0", ".Memhtml", "state", "sleep", "sandbox", "a"]
)
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(paths=st.sets(_PATHS, max_size=6), version=st.sampled_from([2, 4]))
def test_the_answer_is_that_of_gits_own_list(
    tmp_path_factory: pytest.TempPathFactory, paths: set[str], version: int
) -> None:
    root = str(tmp_path_factory.mktemp("store"))
    git(root, "init", "-q")
    blob = git(root, "hash-object", "-w", "--stdin", stdin=b"").decode().strip()
    lines = "".join(f"100644 {blob}\t{path}\n" for path in sorted(paths))
    git(root, "update-index", "--add", "--replace", "--index-info", stdin=lines.encode())
    git(root, "update-index", "--index-version", str(version))
    listed = git(root, "ls-files", "-z").decode().split("\0")[:-1]
    bad = [
        path
        for path in listed
        if path.lower().split("/")[0] == ".memhtml"
        and not path.startswith((".memhtml/state/", ".memhtml/sleep/"))
    ]

    with pytest.MonkeyPatch.context() as patch:
        no_child(patch)
        found = trust._first_tracked(root)
    assert found == (bad[0].encode() if bad else None)


@pytest.mark.parametrize("command", ["start", "status", "exec", "commit", "rebase", "prune"])
def test_every_command_on_a_session_refuses_such_a_store(root: str, command: str) -> None:
    add(root, ".memhtml/sandbox/probe.json")
    words = [sys.executable, "-m", "memhtml", "session", command, "--repo", root]
    words += {"prune": ["--older-than", "7d"], "commit": ["--id", "a", "--message", "x"]}.get(
        command, ["--id", "a"]
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        words, input="true\n", capture_output=True, check=False, text=True, env={"PYTHONPATH": path}
    )
    assert done.returncode == 1
    assert "store.tracked-state" in done.stdout + done.stderr
    assert not os.path.exists(f"{root}/.memhtml/sessions/a")


def test_the_common_case_takes_a_fraction_of_a_millisecond(root: str) -> None:
    fastest_s = 1.0
    for _ in range(50):
        begun_s = time.perf_counter()
        require_local_state(root)
        fastest_s = min(fastest_s, time.perf_counter() - begun_s)
    assert fastest_s < 0.0003


def test_the_common_case_imports_nothing_slow(root: str) -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        f"from memhtml.store.trust import require_local_state; require_local_state({root!r})\n"
        "print(sorted({'subprocess', 'pygit2', 'shlex'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], capture_output=True, check=True, text=True
    )
    assert done.stdout == "[]\n"
