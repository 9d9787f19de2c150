"""`status`: counts, freshness, the checkout, and what it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.reads import link, meta
from tests.support.session import copy_store, git, make_store, page

from memhtml.doctor import health
from memhtml.doctor.health import dirty_paths, status
from memhtml.errors import MemhtmlError, StorageError
from memhtml.index.follow import update
from memhtml.store.repo import Repo

A, B, OLD = "areas/inbox/a.html", "areas/inbox/b.html", "archive/2026/areas/inbox/old.html"
FILES = {
    A: page("Fact a.", head=link("supports", B)),
    B: page("Fact b.", kind="procedural"),
    OLD: page("Fact old."),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of three records, indexed."""
    root = make_store(str(tmp_path_factory.mktemp("template") / "store"), FILES)
    follow(root)
    return root


@pytest.fixture
def root(tmp_path: Path, template: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("MEMHTML_EMBED", "off")
    yield copy_store(template, str(tmp_path / "store"))


def follow(root: str) -> None:
    repo = Repo(root)
    update(root, repo=repo, embedder=None, dirty=False)
    repo.close()


def land(root: str, path: str, html: str) -> None:
    Path(root, path).write_text(html)
    git(root, "add", path)
    git(root, "commit", "-qm", "edit")


def test_every_field_is_answered_in_order(root: str) -> None:
    head = git(root, "rev-parse", "HEAD")
    answer = status(root)
    assert list(answer.items()) == [
        ("root", root),
        ("headSha", head),
        ("dirty", False),
        ("dirtyPaths", []),
        ("countsByType", {"procedural": 1, "semantic": 1}),
        ("archivedCount", 1),
        ("edges", 1),
        ("derivedEdges", 0),
        ("chunks", 3),
        ("embeddings", 0),
        ("traces", 0),
        ("indexFresh", True),
        ("indexHeadSha", head),
        ("embedModel", None),
        ("embedderUp", False),
        ("vectorCoverage", 0.0),
        ("vectorCoverageFloor", 0.95),
        ("hasState", True),
    ]


def test_an_index_that_is_behind_is_said_and_logged(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = git(root, "rev-parse", "HEAD")
    land(root, B, page("Fact b, changed."))
    answer = status(root)
    assert (answer["indexFresh"], answer["indexHeadSha"]) == (False, before)
    warning = f"WARN: the index is of commit {before[:12]}, not {answer['headSha'][:12]}; "
    assert warning in capsys.readouterr().err
    follow(root)
    assert status(root)["indexFresh"] is True
    assert capsys.readouterr().err == ""


def test_a_store_that_was_never_indexed_counts_nothing(tmp_path: Path) -> None:
    bare = make_store(str(tmp_path / "bare"))
    answer = status(bare)
    assert (answer["countsByType"], answer["chunks"], answer["vectorCoverage"]) == ({}, 0, 1.0)
    assert (answer["indexFresh"], answer["indexHeadSha"]) == (False, None)


def test_a_repository_without_a_commit_has_no_head_and_nothing_to_follow(tmp_path: Path) -> None:
    empty = str(tmp_path / "empty")
    os.mkdir(empty)
    git(empty, "init", "-q")
    answer = status(empty)
    assert (answer["headSha"], answer["indexHeadSha"], answer["indexFresh"]) == (None, None, True)


def test_an_update_that_was_cut_short_is_not_fresh(root: str) -> None:
    from memhtml.index.database import open_index

    with open_index(root) as index:
        index.conn.execute("UPDATE index_state SET unfinished = 1")
    assert status(root)["indexFresh"] is False


def test_each_uncommitted_change_is_a_path(root: str) -> None:
    Path(root, A).write_text(page("Fact a, edited."))
    Path(root, B).unlink()
    git(root, "mv", OLD, "archive/2026/areas/inbox/moved.html")
    Path(root, "areas/new folder").mkdir()
    Path(root, "areas/new folder/é.html").write_text(page("New."))
    answer = status(root)
    assert answer["dirty"] is True
    assert answer["dirtyPaths"] == sorted(
        [A, B, OLD, "archive/2026/areas/inbox/moved.html", "areas/new folder/é.html"]
    )


def test_local_state_is_no_change_even_where_nothing_ignores_it(root: str) -> None:
    git(root, "rm", "-q", ".gitignore")
    git(root, "commit", "-qm", "an old store")
    Path(root, ".memhtml/state/access.jsonl").write_text("{}\n")
    assert dirty_paths(root) == [".memhtml/state/access.jsonl"]


def test_git_that_fails_is_a_git_failure(root: str) -> None:
    Path(root, ".git/index").write_bytes(b"DIRC nonsense")
    with pytest.raises(MemhtmlError) as caught:
        dirty_paths(root)
    assert (caught.value.code, str(caught.value)) == ("ERR_GIT", "git status failed (exit 128)")


@pytest.mark.parametrize(
    ("name", "reason", "remedy"),
    [
        ("index.db", "index.open", "memhtml index rebuild"),
        ("state.db", "state.open", "memhtml state import"),
    ],
)
def test_a_damaged_database_is_an_error_with_its_remedy(
    root: str, name: str, reason: str, remedy: str
) -> None:
    for suffix in ("-wal", "-shm"):
        Path(root, f".memhtml/{name}{suffix}").unlink(missing_ok=True)
    Path(root, f".memhtml/{name}").write_bytes(b"no database " * 500)
    with pytest.raises(StorageError) as caught:
        status(root)
    assert (caught.value.reason, caught.value.suggestions) == (reason, (remedy,))


def test_a_bound_embedder_that_answers_is_up(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    monkeypatch.setenv("MEMHTML_EMBED", "hash")
    answer = status(root)
    assert (answer["embedderUp"], answer["vectorCoverage"]) == (True, 0.0)


def test_a_bound_embedder_that_does_not_answer_is_down_and_said(
    root: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "remote")
    monkeypatch.setenv("MEMHTML_EMBED_MODEL", "m")
    # Port 9 is nobody's: the connection is refused at once.
    monkeypatch.setenv("MEMHTML_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    assert status(root)["embedderUp"] is False
    assert "WARN: m: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value"), [("MEMHTML_EMBED", "cloud"), ("MEMHTML_VECTOR_COVERAGE_FLOOR", "2")]
)
def test_a_bad_variable_is_named(
    root: str, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(MemhtmlError) as caught:
        status(root)
    assert caught.value.code == "ERR_INVALID_FLAG"
    assert name in str(caught.value)


def test_the_floor_is_the_configured_one(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHTML_VECTOR_COVERAGE_FLOOR", "0.5")
    assert status(root)["vectorCoverageFloor"] == 0.5


def test_nothing_of_git_and_no_row_is_written(root: str) -> None:
    land(root, B, page("Fact b, changed.", head=meta("tag", "x")))
    before = git(root, "rev-parse", "HEAD"), Path(root, ".git/index").read_bytes()
    first, second = status(root), status(root)
    assert first == second
    assert (git(root, "rev-parse", "HEAD"), Path(root, ".git/index").read_bytes()) == before


def test_without_an_embedder_neither_numpy_nor_pygit2_is_loaded(root: str) -> None:
    probe = (
        "import sys; from memhtml.doctor.health import status; status(sys.argv[1]);"
        "print(*sorted({'numpy', 'pygit2', 'pydantic', 'selectolax'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", probe, root], capture_output=True, check=True)
    assert ran.stdout.split() == []


def test_freshness_asks_for_the_commit_and_a_finished_update() -> None:
    from memhtml.index.report import Health

    values = dict.fromkeys(Health._fields)
    found = Health(**{**values, "head_sha": "a", "unfinished": False})  # type: ignore[arg-type]
    assert health.is_fresh(found, "a") is True
    assert health.is_fresh(found, "b") is False
    assert health.is_fresh(found._replace(unfinished=True), "a") is False
