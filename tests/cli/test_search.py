"""Whole envelopes of `search` and `recall`, and each failure of their sections (spec `cli` §11)."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import check_lines, here
from tests.support.command import Said, memhtml
from tests.support.reads import link, loaded, meta
from tests.support.retrieve import memory
from tests.support.session import git, make_store

from memhtml.schema.envelope import validate_envelope

DEPTH = "resources/queue/queue-depth-cap.html"
RELAY = "areas/inbox/relay.html"
ARC = "areas/arcs/limits.html"
OLD = "archive/2026/areas/inbox/cap.html"
FILES = {
    DEPTH: memory(
        "The ingest queue depth cap is 4096.",
        title="Queue depth cap",
        head=meta("entity", "service:ingest")
        + meta("confidence", "0.90")
        + meta("tag", "caps")
        + link("supersedes", OLD),
        more="<dl><dt>region</dt><dd>eu</dd></dl>\n",
    ),
    RELAY: memory("The relay batch limit is 11.", title="Relay"),
    ARC: memory("A year of limits.", title="Limits", kind="arc"),
    OLD: memory("The cap was 512.", title="Old cap", head=meta("tag", "gone")),
}
OFF = {"MEMHTML_EMBED": "off"}
HEAVY = {
    *("argparse", "asyncio", "dataclasses", "inspect", "logging", "numpy", "pathlib", "pydantic"),
    *("pygit2", "selectolax", "shutil", "sqlite3", "subprocess", "tempfile"),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store whose index holds every file."""
    folder = make_store(str(tmp_path_factory.mktemp("search") / "store"), FILES)
    assert memhtml("index", "update", "--repo", folder, env=OFF).status == 0
    return folder


def ask(root: str, *words: str, env: dict[str, str] | None = None) -> Said:
    """A call on the store; its envelope has the published shape."""
    said = memhtml(*words, "--repo", root, env={**OFF, **(env or {})})
    validate_envelope(said.envelope)
    return said


def test_search_answers_the_whole_envelope(root: str) -> None:
    said = ask(root, "search", "how deep may the ingest queue get", "--limit", "1")
    assert (said.status, said.stderr) == (0, "")
    assert said.envelope == {
        "apiVersion": "1",
        "type": "memory.hits",
        "data": {
            "hits": [
                {
                    "path": DEPTH,
                    "title": "Queue depth cap",
                    "gist": "The ingest queue depth cap is 4096.",
                    "memoryType": "semantic",
                    "score": 1,
                    "confidence": 0.9,
                    "updatedAt": "2026-05-04T09:00:00Z",
                    "snippet": "The ingest queue depth cap is 4096. region eu",
                    "entities": ["service:ingest"],
                    "supersededBy": None,
                    "estTokens": 12,
                }
            ],
            "degraded": True,
            "vectorCoverage": 0,
            "arms": ["fts", "recency", "salience"],
            "entityScope": None,
            "scopeEmpty": False,
            "archivedMatches": 0,
            "archived": [],
        },
    }


def test_recall_answers_the_whole_envelope(root: str) -> None:
    said = ask(root, "recall", "relay batch limit", "--type", "semantic", "--budget", "40")
    assert (said.status, said.stderr) == (0, "")
    assert said.envelope == {
        "apiVersion": "1",
        "type": "recall.pack",
        "data": {
            "arcs": {"disclosed": [], "indexLines": [], "spentChars": 0, "truncated": False},
            "memories": {
                "disclosed": [
                    {
                        "path": RELAY,
                        "title": "Relay",
                        "gist": "The relay batch limit is 11.",
                        "memoryType": "semantic",
                        "body": "The relay batch limit is 11.",
                    }
                ],
                "indexLines": [
                    {
                        "path": DEPTH,
                        "title": "Queue depth cap",
                        "gist": "The ingest queue depth cap is 4096.",
                        "memoryType": "semantic",
                        "estTokens": 12,
                    }
                ],
                "spentChars": 28,
                "truncated": True,
            },
            "spentChars": 28,
            "truncated": True,
            "degraded": True,
            "vectorCoverage": 0,
        },
    }


def test_every_scope_flag_narrows(root: str) -> None:
    for flags, paths in (
        (("--type", "semantic"), {DEPTH, RELAY}),
        (("--type", "verdict", "--type", "semantic"), {DEPTH, RELAY}),
        (("--workspace", "none"), set()),
        (("--tag", "caps", "--tag", "other"), {DEPTH}),
        (("--entity", "SERVICE:Ingest"), {DEPTH}),
        (("--facet", "region=eu", "--facet", "region=us"), {DEPTH}),
        (("--facet", "region=eu", "--facet", "tier=one"), set()),
        (("--include-archived",), {DEPTH, RELAY, ARC, OLD}),
        (("--as-of", "2026-05-05"), {DEPTH, RELAY, ARC, OLD}),
        (("--as-of", "2026-05-04T08:59:59Z"), set()),
        (("--tag", "", "--workspace", " ", "--entity=", "--as-of="), {DEPTH, RELAY, ARC}),
    ):
        said = ask(root, "search", "cap", *flags)
        assert {hit["path"] for hit in said.data["hits"]} == paths, flags


def test_an_empty_scope_says_so_and_points_at_the_archive(root: str) -> None:
    data = ask(root, "search", "cap", "--tag", "gone", "--entity", "service:x").data
    assert (data["scopeEmpty"], data["entityScope"]) == (True, "service:x")
    assert (data["archivedMatches"], data["archived"]) == (0, [])
    data = ask(root, "search", "cap", "--tag", "gone").data
    assert data["archived"] == [{"path": OLD, "supersededBy": DEPTH}]
    assert data["archivedMatches"] == 1


def test_a_blank_query_ranks_without_words(root: str) -> None:
    data = ask(root, "search", " ").data
    assert data["arms"] == ["recency", "salience"]
    assert {hit["path"] for hit in data["hits"]} == {DEPTH, RELAY, ARC}


def test_a_limit_of_zero_and_one_over_the_most(root: str) -> None:
    assert ask(root, "search", "cap", "--limit", "0").data["hits"] == []
    assert len(ask(root, "search", "cap", "--limit", "501").data["hits"]) == 3


def test_a_query_that_is_not_text_is_searched_as_far_as_it_is(root: str) -> None:
    said = memhtml("search", "relay \udcff", "--repo", root, env=OFF)
    assert said.data["hits"][0]["path"] == RELAY


def test_a_search_is_no_access(root: str) -> None:
    ask(root, "search", "relay")
    ask(root, "recall", "relay")
    conn = sqlite3.connect(f"{root}/.memhtml/state.db")
    assert conn.execute("SELECT count(*) FROM access").fetchone() == (0,)
    conn.close()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("search",), "ERR_MISSING_ARGUMENT", "query"),
        (("recall",), "ERR_MISSING_ARGUMENT", "query"),
        (("search", "a", "b"), "ERR_UNEXPECTED_ARGUMENT", "b"),
        (("recall", "a", "b"), "ERR_UNEXPECTED_ARGUMENT", "b"),
        (("search", "a", "--type", "arc"), "ERR_INVALID_FLAG", "allowed are episodic"),
        (("recall", "a", "--type", "story"), "ERR_INVALID_FLAG", "allowed are episodic"),
        (("search", "a", "--facet", "region"), "ERR_INVALID_FLAG", "name=value"),
        (("recall", "a", "--facet", " =eu"), "ERR_INVALID_FLAG", "name=value"),
        (("search", "a", "--as-of", "yesterday"), "ERR_INVALID_FLAG", "YYYY-MM-DD"),
        (("search", "a", "--as-of", "2026-02-30"), "ERR_INVALID_FLAG", "YYYY-MM-DD"),
        (("recall", "a", "--as-of", "2026-05-04T09:00:00"), "ERR_INVALID_FLAG", "YYYY-MM-DD"),
        (("search", "a", "--limit", "-1"), "ERR_INVALID_FLAG", "0 or more"),
        (("search", "a", "--limit", "ten"), "ERR_INVALID_FLAG", "whole number"),
        (("search", "a", "--limit", "1.5"), "ERR_INVALID_FLAG", "whole number"),
        (("recall", "a", "--budget", "-1"), "ERR_INVALID_FLAG", "0 or more"),
        (("recall", "a", "--budget", "much"), "ERR_INVALID_FLAG", "whole number"),
        (("search", "a", "--budget", "1"), "ERR_INVALID_FLAG", "--budget"),
        (("search", "a", "--entity"), "ERR_INVALID_FLAG", "--entity"),
    ],
)
def test_a_wrong_call_is_refused_before_the_store_opens(
    tmp_path: Path, words: tuple[str, ...], code: str, said: str
) -> None:
    ran = here(*words, "--repo", str(tmp_path / "nowhere"))
    assert (ran.status, ran.code) == (2, code)
    assert said in ran.envelope["error"]
    validate_envelope(ran.envelope)
    check_lines(ran.suggestions)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [("MEMHTML_EMBED", "maybe"), ("MEMHTML_VECTOR_COVERAGE_FLOOR", "1.5")],
)
@pytest.mark.parametrize("command", ["search", "recall"])
def test_a_bad_variable_is_refused_by_its_name(
    root: str, command: str, name: str, value: str
) -> None:
    said = ask(root, command, "relay", env={name: value})
    assert (said.status, said.envelope["code"]) == (2, "ERR_INVALID_FLAG")
    assert name in said.envelope["error"]


@pytest.mark.parametrize("command", ["search", "recall"])
def test_a_folder_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, command: str) -> None:
    said = ask(str(tmp_path), command, "relay")
    assert (said.status, said.envelope["code"]) == (1, "ERR_GIT")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["search", "recall"])
def test_a_call_that_may_not_take_its_store_from_the_environment_needs_repo(command: str) -> None:
    said = memhtml(command, "relay", env={**OFF, "MEMHTML_REFUSE_ENV_ROOT": "1"})
    assert (said.status, said.envelope["code"]) == (2, "ERR_REPO_REQUIRED")
    validate_envelope(said.envelope)


@pytest.mark.parametrize("command", ["search", "recall"])
def test_a_damaged_index_is_refused_with_the_command_that_mends_it(
    tmp_path: Path, command: str
) -> None:
    folder = make_store(str(tmp_path / "store"), FILES)
    (tmp_path / "store" / ".memhtml").mkdir(exist_ok=True)
    (tmp_path / "store" / ".memhtml" / "index.db").write_bytes(b"no database at all" * 999)
    said = ask(folder, command, "relay")
    assert (said.status, said.envelope["code"]) == (1, "ERR_STORAGE")
    assert said.envelope["error"].startswith("storage operation failed: index.open")
    assert said.envelope["suggestions"] == [f"memhtml index rebuild --repo {folder}"]


def test_a_store_without_an_index_has_no_hits_and_says_what_helps(tmp_path: Path) -> None:
    folder = make_store(str(tmp_path / "store"), FILES)
    said = ask(folder, "search", "relay")
    assert (said.status, said.data["hits"], said.data["vectorCoverage"]) == (0, [], 1)
    assert "WARN: there is no index yet, so nothing is found; run `memhtml index update`" in (
        said.stderr
    )
    said = ask(folder, "recall", "relay")
    assert (said.status, said.data["spentChars"]) == (0, 0)
    assert "WARN" in said.stderr


def test_an_index_behind_its_store_is_read_with_a_warning(tmp_path: Path) -> None:
    folder = make_store(str(tmp_path / "store"), FILES)
    ask(folder, "index", "update")
    git(folder, "rm", "-q", RELAY)
    git(folder, "commit", "-qm", "no relay")
    said = ask(folder, "search", "relay")
    assert said.data["hits"][0]["path"] == RELAY
    assert "WARN: the index is of commit" in said.stderr
    assert "run `memhtml index update`" in said.stderr
    ask(folder, "index", "update")
    said = ask(folder, "search", "relay")
    assert RELAY not in [hit["path"] for hit in said.data["hits"]]
    assert said.stderr == ""


def test_an_embedder_ranks_by_vectors_and_warns_below_the_floor(tmp_path: Path) -> None:
    folder = make_store(str(tmp_path / "store"), FILES)
    hashed = {"MEMHTML_EMBED": "hash"}
    ask(folder, "index", "rebuild", env=hashed)
    data = ask(folder, "search", "relay", env=hashed).data
    assert (data["degraded"], data["vectorCoverage"]) == (False, 1)
    assert data["arms"] == ["fts", "vector", "recency", "salience"]
    assert data["hits"][0]["path"] == RELAY
    data = ask(folder, "recall", "relay", env=hashed).data
    assert (data["degraded"], data["vectorCoverage"]) == (False, 1)
    drop_a_vector(folder)
    said = ask(folder, "search", "relay", env=hashed)
    assert (said.data["degraded"], said.data["vectorCoverage"]) == (True, 0.75)
    assert "run `memhtml index embed`" in said.stderr
    low = {**hashed, "MEMHTML_VECTOR_COVERAGE_FLOOR": "0.5"}
    assert not ask(folder, "search", "relay", env=low).data["degraded"]


def drop_a_vector(root: str) -> None:
    """Forget one chunk's vector."""
    conn = sqlite3.connect(f"{root}/.memhtml/index.db")
    conn.execute("DELETE FROM embeddings WHERE rowid = (SELECT min(rowid) FROM embeddings)")
    conn.commit()
    conn.close()


def test_a_model_that_cannot_be_loaded_degrades_the_search(root: str) -> None:
    missing = {"MEMHTML_EMBED": "local", "MEMHTML_EMBED_MODEL": "/nonexistent"}
    said = ask(root, "search", "relay", env=missing)
    assert said.data["degraded"]
    assert said.data["hits"][0]["path"] == RELAY
    assert "WARN" in said.stderr


def test_dense_is_the_same_on_one_line(root: str) -> None:
    plain = ask(root, "search", "relay")
    dense = memhtml("search", "relay", "--dense", "--repo", root, env=OFF)
    assert dense.stdout.count("\n") == 1
    assert without_nulls(plain.envelope) == json.loads(dense.stdout)


def without_nulls(value: Any) -> Any:
    """The value without keys that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("command", ["search", "recall"])
def test_without_an_embedder_a_search_loads_nothing_heavy(
    root: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMHTML_EMBED", "off")
    assert loaded(command, "relay", "--repo", root) & HEAVY == set()
