"""What a read-only run sees, of which commit, and what it leaves as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.command import ROOTS
from tests.support.session import git, land, make_store, page, put_op, start_log

from memhtml.errors import MemhtmlError, StorageError
from memhtml.execute.readonly import Executed, commit_of, execute
from memhtml.execute.script import Script
from memhtml.store import snapshot
from memhtml.store.repo import Repo
from memhtml_sandbox.probe import probe

MAIN = "refs/heads/main"
A = "areas/inbox/a.html"
LISTING = "cd /mnt/memhtml && find . -type f | sort"

pytestmark = pytest.mark.skipif(
    probe(cache_dir=None).backend is None, reason="this host cannot confine a script"
)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Forty records, and one more in the second commit."""
    files = {f"areas/inbox/n{number}.html": page(f"Fact {number}.") for number in range(40)}
    root = make_store(str(tmp_path / "store"), files)
    return add(root, A, "Fact a holds.")


def add(root: str, path: str, claim: str) -> str:
    """One more record, committed by hand."""
    full = Path(root, path)
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_text(page(claim))
    git(root, "add", "--", path)
    git(root, "commit", "-qm", f"add {path}")
    return root


def run(root: str, text: str, *, commit: str = "HEAD", timeout_ms: int = 30_000) -> Executed:
    """One run in bash, its upkeep done."""
    done = execute(root, Script(text, "bash", timeout_ms), commit=commit)
    done.tidy()
    return done


def listing(root: str, commit: str = "HEAD") -> list[str]:
    """The files a script finds under the mount."""
    return str(run(root, LISTING, commit=commit).payload["stdout"]).split()


def test_run_sees_the_records_of_the_commit_and_nothing_else(store: str) -> None:
    Path(store, "areas/inbox/index.html").write_text("<p>listing</p>")
    Path(store, "areas/inbox/broken.html").write_text("<p>no record</p>")
    Path(store, "memhtml.config.json").write_text("{}")
    git(store, "add", "-A")
    git(store, "commit", "-qm", "other files")
    names = [f"./areas/inbox/n{number}.html" for number in range(40)]
    assert listing(store) == sorted([f"./{A}", *names])


def test_uncommitted_edit_is_not_visible(store: str) -> None:
    Path(store, A).write_text(page("Fact a is edited."))
    Path(store, "areas/inbox/untracked.html").write_text(page("New."))
    git(store, "rm", "-q", "--cached", "areas/inbox/n1.html")
    got = run(store, f"cat /mnt/memhtml/{A}; ls /mnt/memhtml/areas/inbox | wc -l").payload
    assert got["stdout"] == page("Fact a holds.") + "41\n"


@pytest.mark.parametrize("back_end", ["overlay", "copy"])
@pytest.mark.parametrize("commit", ["HEAD~1", "HEAD"])
def test_write_fails_as_on_a_read_only_file_system(
    store: str, back_end: str, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMHTML_SANDBOX", back_end)
    run(store, "true", commit="HEAD~1")
    code = (
        "import fs from 'node:fs';\n"
        "for (const path of ['/mnt/memhtml/x', '/mnt/memhtml/areas/inbox/n1.html'])\n"
        "  try { fs.writeFileSync(path, 'x'); console.log('wrote'); }\n"
        "  catch (error) { console.log(error.code); }\n"
    )
    got = execute(store, Script(code, "js"), commit=commit).payload
    assert (got["exitCode"], got["stdout"]) == (0, "EROFS\nEROFS\n")
    assert git(store, "status", "--porcelain") == ""


NAMES: dict[str, Callable[[str], str]] = {
    "branch": lambda root: "main",
    "full ref": lambda root: MAIN,
    "sha": lambda root: git(root, "rev-parse", "HEAD"),
    "short sha": lambda root: git(root, "rev-parse", "--short", "HEAD"),
    "annotated tag": lambda root: "v1",
    "distance": lambda root: "side~1",
    "message": lambda root: ":/add areas/inbox/a",
    "reflog": lambda root: "HEAD@{0}",
}


@pytest.mark.parametrize("kind", NAMES)
def test_commit_goes_by_any_name_git_knows(store: str, kind: str) -> None:
    git(store, "tag", "-a", "v1", "-m", "a tag object")
    git(store, "checkout", "-qb", "side")
    add(store, "areas/inbox/side.html", "Side.")
    git(store, "checkout", "-q", "main")
    assert commit_of(store, NAMES[kind](store)) == git(store, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    "name",
    [
        *("nope", "", " ", "^HEAD", "HEAD..HEAD", "HEAD^@", "-h", "--all", "0" * 40, "a\nb"),
        *("HEAD:areas", f"HEAD:{A}", "HEAD^{tree}", "x" * 9000),
    ],
)
def test_name_of_no_commit_is_refused(store: str, name: str) -> None:
    with pytest.raises(MemhtmlError) as caught:
        run(store, "true", commit=name)
    assert caught.value.code == "ERR_INVALID_MEMORY"
    assert len(str(caught.value)) < 200
    assert caught.value.suggestions == ("memhtml exec --sha HEAD",)


def test_repository_without_a_commit_is_told_so(tmp_path: Path) -> None:
    root = str(tmp_path / "empty")
    subprocess.run(["git", "init", "-q", root], check=True)
    with pytest.raises(MemhtmlError, match="no commit") as caught:
        run(root, "true")
    assert caught.value.code == "ERR_INVALID_MEMORY"
    assert caught.value.suggestions == ("memhtml init",)


def test_older_commit_costs_the_difference(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(store, "true")
    older = git(store, "rev-parse", "HEAD~1")
    read: list[str] = []
    real = Repo.data

    def data(repo: Repo, oid: str) -> bytes:
        read.append(oid)
        return real(repo, oid)

    monkeypatch.setattr(Repo, "data", data)
    assert f"./{A}" not in listing(store, older)
    assert len(read) <= 2
    marker = Path(store, ".memhtml/sandbox/delta", f"{older}.json")
    assert json.loads(marker.read_text())["files"] == 1


def test_commit_ahead_of_the_branch_does_not_take_its_database_along(store: str) -> None:
    git(store, "checkout", "-qb", "side")
    add(store, "areas/inbox/side.html", "Side.")
    git(store, "checkout", "-q", "main")
    run(store, "true")
    assert "./areas/inbox/side.html" in listing(store, "side")
    assert snapshot.stands_at(store, MAIN, git(store, "rev-parse", "main"))
    assert "./areas/inbox/side.html" not in listing(store)


def test_first_run_of_another_branch_builds_the_database_of_the_one_checked_out(
    store: str,
) -> None:
    git(store, "checkout", "-q", "--orphan", "island")
    git(store, "rm", "-rfq", "--cached", ".")
    git(store, "commit", "-q", "--allow-empty", "-m", "nothing here")
    git(store, "checkout", "-qf", "main")
    assert listing(store, "island") == []
    assert snapshot.stands_at(store, MAIN, git(store, "rev-parse", "main"))


def test_detached_head_has_a_run_of_its_own(store: str) -> None:
    git(store, "checkout", "-q", "--detach", "HEAD~1")
    assert f"./{A}" not in listing(store)
    assert sorted(os.listdir(Path(store, ".memhtml/snapshots")))[0] == "HEAD.db"


def test_script_past_its_bound_is_killed(store: str) -> None:
    got = run(store, "echo begun; sleep 60", timeout_ms=300).payload
    assert (got["exitCode"], got["timedOut"], got["stdout"]) == (124, True, "begun\n")
    assert (got["timeoutMs"], got["durationMs"] < 5_000) == (300, True)


def test_missing_node_suggests_bash(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    support = probe(cache_dir=None)._replace(node=None, node_reason="no node", node_remedy="get it")
    monkeypatch.setattr("memhtml.execute.mount.support", lambda *_: support)
    monkeypatch.setattr(
        "memhtml_sandbox.tools.command_folder", lambda *_, **__: pytest.fail("it went on")
    )
    with pytest.raises(StorageError) as caught:
        execute(store, Script("0", "js"))
    assert caught.value.reason == "exec.node-missing"
    assert caught.value.suggestions == ("memhtml exec --lang bash <<'SH'",)


def exec_process(root: str, script: str) -> subprocess.Popen[bytes]:
    """An `exec` in a process of its own."""
    words = ["exec", "--repo", root, "--lang", "bash", "--script", script]
    return subprocess.Popen(
        [sys.executable, "-m", "memhtml", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_runs_beside_a_session_its_commit_and_a_prune_see_their_own_commit(store: str) -> None:
    base = git(store, "rev-parse", "HEAD")
    script = f"sleep 1.5; cat /mnt/memhtml/{A}; ls /mnt/memhtml/areas/inbox | wc -l"
    started = [exec_process(store, script) for _ in range(3)]
    start_log(store, "s", [put_op("meanwhile")])
    assert land(store, "s")["kind"] == "committed"
    words = ["session", "prune", "--older-than", "0s", "--repo", store]
    subprocess.run([sys.executable, "-m", "memhtml", *words], check=True, capture_output=True)
    for process in started:
        data = json.loads(process.communicate(timeout=60)[0])["data"]
        # Which commit each one found depends on when it looked; what it sees must be that one's.
        more = 0 if data["sha"] == base else 1
        assert data["stdout"] == f"{page('Fact a holds.')}{41 + more}\n"
    assert "./areas/inbox/meanwhile.html" in listing(store)
