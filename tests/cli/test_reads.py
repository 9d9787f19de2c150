"""The reads at the command line: whole envelopes, for success and for each way to fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import check_lines, here
from tests.support.command import memhtml
from tests.support.reads import link, loaded, meta, task
from tests.support.session import copy_store, git, make_store, page

from memhtml.index.follow import update
from memhtml.schema.envelope import validate_envelope
from memhtml.store.repo import Repo

A, B = "areas/inbox/a.html", "resources/queue/b.html"
OLD, NEW = "archive/2026/areas/inbox/x.html", "areas/inbox/x-after-fix.html"
TASK, BLOCKER = "projects/pay/tasks/rotate.html", "areas/inbox/tasks/ask.html"
STAMP = "2026-05-04T09:00:00Z"

HEAVY = {
    *("argparse", "asyncio", "dataclasses", "inspect", "logging", "numpy", "pathlib", "pydantic"),
    *("pygit2", "selectolax", "shutil", "sqlite3", "subprocess", "tempfile"),
}
FILES = {
    A: page("Fact a.", title="A", head=meta("importance", "9") + link("relates_to", B)),
    B: page("Fact b.", title="B", head=meta("tag", "queue")),
    OLD: page("X is 1."),
    NEW: page("X is 2.", title="X after fix", head=link("supersedes", OLD)),
    TASK: task("Rotate", due="2026-12-24"),
    BLOCKER: task("Ask", head=link("blocks", TASK)),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An indexed store of six records."""
    root = make_store(str(tmp_path_factory.mktemp("template") / "store"), FILES)
    repo = Repo(root)
    update(root, repo=repo, embedder=None, dirty=False)
    repo.close()
    return root


@pytest.fixture
def root(tmp_path: Path, template: str) -> Iterator[str]:
    yield copy_store(template, str(tmp_path / "store"))


def run(root: str, *words: str) -> dict[str, Any]:
    """The envelope of a call that succeeds and says nothing else; it is valid."""
    said = memhtml(*words, "--repo", root)
    assert (said.status, said.stderr) == (0, ""), said
    validate_envelope(said.envelope)
    return said.envelope


def fail(root: str, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit status and envelope of a call that fails; its suggestions parse and name the store."""
    ran = here(*words, "--repo", root)
    validate_envelope(ran.envelope)
    check_lines([each for each in ran.suggestions if each.startswith("memhtml ")])
    return ran.status, ran.envelope


def failure(error: str, code: str, *suggestions: str) -> dict[str, Any]:
    return {"apiVersion": "1", "error": error, "code": code, "suggestions": list(suggestions)}


def success(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "1", "type": kind, "data": data}


def test_read_answers_the_record(root: str) -> None:
    assert run(root, "read", f"/{A}", "--session-id", "s1") == success(
        "memory.detail",
        {
            "path": A,
            "title": "A",
            "metas": {
                "memoryType": "semantic",
                "status": "active",
                "createdAt": STAMP,
                "updatedAt": STAMP,
                "importance": 9,
            },
            "entities": ["system:billing"],
            "tags": [],
            "links": [{"rel": "relates_to", "href": f"/{B}"}],
            "gist": "Fact a.",
            "body": "Fact a.",
            "html": "<p><mark>Fact a.</mark></p>",
            "archived": False,
            "warnings": [],
        },
    )


@pytest.mark.parametrize("path", ["areas/inbox/none.html", "areas/inbox", "../outside.html"])
def test_read_of_no_record_says_where_to_look(root: str, path: str) -> None:
    words = {"none.html": "none", "inbox": "inbox", "outside.html": "outside"}
    assert fail(root, "read", path) == (
        1,
        failure(
            f"there is no memory at '{path}'",
            "ERR_PATH_NOT_FOUND",
            f"memhtml resolve {path} --repo {root}",
            f"memhtml search '{words[path.rpartition('/')[2]]}' --repo {root}",
            f"memhtml list --repo {root}",
        ),
    )


def test_read_of_a_broken_file_lists_its_violations(root: str) -> None:
    Path(root, A).write_text(
        page("Fact a.")
        .replace("<title>Fact a.</title>", "<title> </title>", 1)
        .replace("<mark>", "")
        .replace("</mark>", "")
    )
    assert fail(root, "read", A) == (
        1,
        failure(
            f"{A}: the title is blank; the article needs exactly one mark, there are 0",
            "ERR_INVALID_MEMORY",
            f"memhtml doctor --repo {root}",
        ),
    )


def test_read_of_an_unreadable_file_is_a_storage_failure(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memhtml.store.worktree import WorkTree

    def refuse(self: WorkTree, path: str) -> bytes:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(WorkTree, "read", refuse)
    error = f"storage operation failed: read: {A}: Permission denied"
    assert fail(root, "read", A) == (1, failure(error, "ERR_STORAGE"))


def test_neighbors_answers_what_edges_lead_to(root: str) -> None:
    assert run(root, "neighbors", A, "--depth", "7") == success(
        "memory.neighbors",
        {
            "center": A,
            "depth": 2,
            "limit": 200,
            "nodes": [{"path": B, "title": "B", "hop": 1, "rel": "relates_to", "derived": False}],
            "edges": 1,
            "nodesDropped": 0,
            "scanSaturated": False,
        },
    )
    unknown = run(root, "neighbors", "areas/none.html", "--rel", "supports")["data"]
    assert (unknown["nodes"], unknown["edges"]) == ([], 0)


def test_neighbors_refuses_a_rel_that_is_no_memory_rel(root: str) -> None:
    status, envelope = fail(root, "neighbors", A, "--rel", "blocks")
    assert (status, envelope["code"]) == (2, "ERR_INVALID_FLAG")
    assert envelope["error"].startswith("--rel is 'blocks'; allowed are supersedes, contradicts,")


def test_resolve_follows_a_path_to_where_its_fact_lives(root: str) -> None:
    assert run(root, "resolve", "areas/inbox/x.html") == success(
        "memory.resolved",
        {
            "requested": "areas/inbox/x.html",
            "path": NEW,
            "hops": 2,
            "steps": [
                {"from": "areas/inbox/x.html", "to": OLD, "via": "archive_move"},
                {"from": OLD, "to": NEW, "via": "supersedes"},
            ],
            "stopReason": "live",
            "title": "X after fix",
            "indexedCommit": git(root, "rev-parse", "HEAD"),
        },
    )


def test_resolve_of_anything_exits_well(root: str) -> None:
    for path in ("", "/", "a\u00e9", "..", "\udcff"):
        ran = here("resolve", path, "--repo", root)
        assert ran.status == 0
        assert ran.data["stopReason"] == "unindexed"


def test_reinforce_counts_and_then_cools_down(root: str) -> None:
    words = ("reinforce", A, B, A, "--signal", "positive")
    answer = {"bumped": [A, B], "cooledDown": [], "signal": "positive"}
    assert run(root, *words) == success("memory.reinforced", answer)
    assert run(root, *words)["data"] == {"bumped": [], "cooledDown": [A, B], "signal": "positive"}


def test_reinforce_of_an_unknown_path_writes_nothing(root: str) -> None:
    status, envelope = fail(root, "reinforce", A, "areas/none.html")
    assert (status, envelope["code"]) == (1, "ERR_PATH_NOT_FOUND")
    assert run(root, "reinforce", A)["data"]["bumped"] == [A]


def test_reinforce_refuses_an_unknown_signal(root: str) -> None:
    status, envelope = fail(root, "reinforce", A, "--signal", "great")
    assert (status, envelope["code"]) == (2, "ERR_INVALID_FLAG")
    assert "positive, negative, neutral" in envelope["error"]


def test_list_answers_a_page(root: str) -> None:
    file = {
        "path": B,
        "title": "B",
        "memoryType": "semantic",
        "gist": "Fact b.",
        "workspace": None,
        "para": "resources",
        "confidence": 1,
        "importance": 5,
        "archived": False,
        "updatedAt": STAMP,
        "estTokens": 2,
    }
    words = ("list", "--tag", "queue", "--limit", "0", "--type", "semantic")
    assert run(root, *words) == success("memory.list", {"files": [file], "nextCursor": None})


def test_list_goes_on_behind_the_cursor(root: str) -> None:
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page_ = run(root, "list", "--limit", "2", "--cursor", cursor, "--include-archived")["data"]
        seen += [file["path"] for file in page_["files"]]
        cursor = page_["nextCursor"]
    assert seen == sorted(FILES)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--facet", "owner"), "--facet is 'owner'; it must be name=value"),
        (("--facet", " =ops"), "--facet is ' =ops'; it must be name=value"),
        (("--limit", "many"), "--limit is 'many'; it must be a whole number"),
        (("--type", "fact"), "--type is 'fact'; allowed are episodic, semantic, procedural,"),
        (("--para", "inbox"), "--para is 'inbox'; allowed are projects, areas, resources, archive"),
        (("--status", "todo"), "list has no flag --status; other commands have it"),
    ],
)
def test_list_refuses_a_bad_flag(root: str, words: tuple[str, ...], error: str) -> None:
    status, envelope = fail(root, "list", *words)
    assert (status, envelope["code"]) == (2, "ERR_INVALID_FLAG")
    assert envelope["error"].startswith(error)


def test_entity_activity_answers_what_records_are_about(root: str) -> None:
    assert run(root, "entity", "activity", "--type", "SYSTEM", "--limit", "900") == success(
        "entity.activity",
        {
            "entities": [
                {
                    "entity": "system:billing",
                    "entityType": "system",
                    "entityName": "billing",
                    "fileCount": 5,
                    "lastActivityAt": STAMP,
                    "lastEventAt": None,
                    "lastWrittenAt": STAMP,
                }
            ],
            "entityCount": 1,
            "limit": 500,
        },
    )


def test_task_list_answers_tasks_and_what_blocks_them(root: str) -> None:
    rotate = {
        "path": TASK,
        "title": "Rotate",
        "taskStatus": "todo",
        "dueAt": "2026-12-24",
        "workspace": "pay",
        "archived": False,
        "updatedAt": STAMP,
        "blockedBy": [BLOCKER],
        "estTokens": 2,
    }
    words = ("task", "list", "--due-before", "2026-12-25", "--status", "todo")
    assert run(root, *words) == success("task.list", {"tasks": [rotate], "nextCursor": None})


def test_task_list_refuses_a_day_that_is_none(root: str) -> None:
    assert fail(root, "task", "list", "--due-before", "24.12.") == (
        1,
        failure(
            "--due-before is '24.12.', not YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ",
            "ERR_INVALID_MEMORY",
            f"memhtml task list --due-before 2026-12-31 --repo {root}",
        ),
    )


READS = (
    ("read", A),
    ("neighbors", A),
    ("resolve", A),
    ("reinforce", A),
    ("list",),
    ("entity", "activity"),
    ("task", "list"),
)


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_root_that_is_no_store_is_refused_and_nothing_is_made(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    status, envelope = fail(str(tmp_path), *words)
    assert (status, envelope["code"]) == (1, "ERR_GIT")
    assert envelope["suggestions"] == [f"memhtml init --repo {tmp_path}"]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("words", READS[1:], ids=" ".join)
def test_a_damaged_index_is_an_error_that_names_the_remedy(
    root: str, words: tuple[str, ...]
) -> None:
    for name in ("index.db-wal", "index.db-shm"):
        Path(root, ".memhtml", name).unlink(missing_ok=True)
    Path(root, ".memhtml/index.db").write_bytes(b"no database " * 500)
    assert fail(root, *words) == (
        1,
        failure(
            "storage operation failed: index.open: .memhtml/index.db: it is damaged",
            "ERR_STORAGE",
            f"memhtml index rebuild --repo {root}",
        ),
    )


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_missing_root_is_asked_for(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMHTML_REFUSE_ENV_ROOT", "1")
    ran = here(*words)
    assert (ran.status, ran.code) == (2, "ERR_REPO_REQUIRED")


@pytest.mark.parametrize("words", [("read",), ("resolve",), ("neighbors",), ("reinforce",)])
def test_a_path_that_is_not_given_is_missed(root: str, words: tuple[str, ...]) -> None:
    status, envelope = fail(root, *words)
    assert (status, envelope["code"]) == (2, "ERR_MISSING_ARGUMENT")


@pytest.mark.parametrize(
    "words",
    [("list",), ("task", "list"), ("entity", "activity"), ("neighbors", A), ("resolve", A)],
    ids=" ".join,
)
def test_a_list_from_an_index_that_is_missing_says_so(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    bare = make_store(str(tmp_path / "bare"), {A: FILES[A]})
    said = memhtml(*words, "--repo", bare)
    (warning,) = said.stderr.splitlines()
    assert said.status == 0
    assert warning.endswith(
        "there is no index yet, so nothing is found; run `memhtml index update`"
    )


def test_a_store_without_an_index_answers_no_rows(tmp_path: Path) -> None:
    bare = make_store(str(tmp_path / "bare"), {A: FILES[A]})
    assert here("list", "--repo", bare).data["files"] == []
    assert here("resolve", A, "--repo", bare).data["stopReason"] == "unindexed"
    assert run(bare, "reinforce", A)["data"]["bumped"] == [A]
    assert run(bare, "read", A)["data"]["title"] == "A"


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (("list",), set()),
        (("task", "list"), set()),
        (("resolve", A), set()),
        (("neighbors", A), set()),
        (("entity", "activity"), set()),
        (("reinforce", A), set()),
        # The parser, which brings logging.
        (("read", A), {"logging", "selectolax"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_read_loads_nothing_heavy(root: str, words: tuple[str, ...], needed: set[str]) -> None:
    assert loaded(*words, "--repo", root) & HEAVY == needed
