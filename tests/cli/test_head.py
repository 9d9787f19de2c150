"""Whole envelopes of the head commands: one commit, through the head database (spec `cli` §11)."""

from __future__ import annotations

import os
import pty
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.command import ROOTS, Said, memhtml
from tests.support.embed import endpoint
from tests.support.session import git, make_store, page, tip

from memhtml.schema.envelope import validate_envelope

HASH = {"MEMHTML_EMBED": "hash"}
FILES = {
    "areas/inbox/relay.html": page("The relay batch limit is 11."),
    "areas/inbox/roses.html": page("Roses need water every morning."),
    "areas/inbox/again.html": page("Roses need water every morning.", title="Said again"),
    "archive/2026/areas/inbox/old.html": page("The relay batch limit was 7."),
}
VECTOR_OFF = {
    "used": False,
    "reason": "embedder-off",
    "detail": None,
    "cached": None,
    "coverage": None,
    "loadMs": None,
    "embedMs": None,
}


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A store with three live records and one archived."""
    return make_store(str(tmp_path / "store"), FILES)


def call(root: str, *words: str, env: dict[str, str] | None = None) -> Said:
    """A head command on the store; its envelope has the published shape."""
    said = memhtml("head", *words, "--repo", root, env=env)
    validate_envelope(said.envelope)
    return said


def refused(said: Said) -> tuple[int, str]:
    return said.status, said.envelope["code"]


def database(root: str, name: str = "main.db") -> str:
    return os.path.join(root, ".memhtml", "snapshots", name)


def head_of(root: str, **changed: Any) -> dict[str, Any]:
    """The head object of a warm call."""
    return {
        "sha": tip(root),
        "records": 4,
        "skipped": None,
        "loadMs": changed["loadMs"],
        "source": "snapshot",
        "snapshotPath": database(root),
        "ancestorSha": None,
        "reparsed": None,
    }


def test_status_says_how_the_version_was_loaded(root: str) -> None:
    first = call(root, "status")
    assert first.envelope["type"] == "head.status"
    assert (first.data["source"], first.data["skipped"]) == ("git", 1)
    again = call(root, "status", "--no-server")
    assert again.data == {**head_of(root, loadMs=again.data["loadMs"]), "server": None}


def test_search_without_an_embedder_is_lexical(root: str) -> None:
    call(root, "status")
    said = call(root, "search", "relay limit")
    assert said.data["searchMs"] == round(said.data["searchMs"], 2)
    assert said.data == {
        "query": "relay limit",
        "hits": [
            {
                "path": "areas/inbox/relay.html",
                "score": 0.01639344262295082,
                "arms": ["lexical"],
                "claim": "The relay batch limit is 11.",
            }
        ],
        "vector": VECTOR_OFF,
        "searchMs": said.data["searchMs"],
        "head": head_of(root, loadMs=said.data["head"]["loadMs"]),
    }


def test_a_limit_cuts_and_a_query_of_nothing_finds_nothing(root: str) -> None:
    assert len(call(root, "search", "roses relay").data["hits"]) == 3
    assert len(call(root, "search", "roses relay", "--limit", "1").data["hits"]) == 1
    assert call(root, "search", "roses", "--limit=0").data["hits"] == []
    assert call(root, "search", " \t?!").data["hits"] == []


def test_embed_then_search_uses_both_arms(root: str) -> None:
    said = call(root, "embed", env=HASH)
    cache = os.path.join(root, ".memhtml", "vectors", "hash@256.vec")
    head = said.data["head"]
    times = {name: said.data[name] for name in ("loadMs", "embedMs", "saveMs", "ms")}
    assert said.data == {
        "path": cache,
        "modelId": "hash",
        "dimension": 256,
        "records": 3,
        "reused": 0,
        # Two records share one article, and so one vector.
        "embedded": 2,
        "empty": 0,
        "cached": 2,
        "bytes": os.stat(cache).st_size,
        "written": True,
        **times,
        "head": head,
    }
    assert git(root, "status", "--porcelain") == ""
    again = call(root, "embed", env=HASH).data
    assert (again["reused"], again["embedded"], again["written"]) == (3, 0, False)
    assert again["bytes"] == said.data["bytes"]
    found = call(root, "search", "batch of the relay", env=HASH).data
    assert found["hits"][0]["arms"] == ["lexical", "vector"]
    assert (found["vector"]["used"], found["vector"]["cached"]) == (True, 2)
    assert found["vector"]["coverage"] == 1.0


def test_a_put_is_near_what_its_text_is_near_to(root: str) -> None:
    line = '{"op":"write","title":"T","type":"semantic","body":"Water every morning, roses need."}'
    memhtml("session", "start", "--id", "s1", "--repo", root)
    first = memhtml("session", "put", "--id", "s1", "--repo", root, text=line, env=HASH)
    assert first.data["vector"]["reason"] == "no-cache"
    call(root, "embed", env=HASH)
    said = memhtml("session", "put", "--id", "s1", "--repo", root, text=line, env=HASH)
    validate_envelope(said.envelope)
    assert said.data["vector"]["used"] is True
    hits = said.data["neighbors"][0]["hits"]
    assert {hit["path"] for hit in hits} >= {"areas/inbox/roses.html", "areas/inbox/again.html"}
    assert "vector" in hits[0]["arms"]


def test_a_snapshot_is_written_and_read(root: str) -> None:
    written = call(root, "snapshot", "--write").data
    assert written == {
        "mode": "write",
        "sha": tip(root),
        "path": database(root),
        "rows": 4,
        "bytes": os.stat(database(root)).st_size,
        "ms": written["ms"],
        "pruned": [],
    }
    assert call(root, "snapshot", "--read").data == {
        "mode": "read",
        "sha": tip(root),
        "path": database(root),
        "rows": 4,
        "bytes": None,
        "ms": None,
        "pruned": None,
    }


def test_writing_a_snapshot_reads_git_and_prunes_what_no_ref_needs(root: str) -> None:
    git(root, "checkout", "-q", "-b", "side")
    call(root, "status")
    side = tip(root)
    with open(database(root, "side.db"), "r+b") as file:
        file.truncate(100)
    assert call(root, "snapshot", "--write").data["path"] == database(root, "side.db")
    git(root, "checkout", "-q", "main")
    git(root, "branch", "-qD", "side")
    assert call(root, "snapshot", "--write").data["pruned"] == [side]
    assert os.listdir(os.path.dirname(database(root))).count("side.db") == 0


def test_a_detached_head_has_a_database_of_its_own(root: str) -> None:
    sha = tip(root)
    git(root, "checkout", "-q", "--detach")
    assert call(root, "snapshot", "--write").data["path"] == database(root, "HEAD.db")
    assert call(root, "snapshot", "--read").data["sha"] == sha
    found = call(root, "search", "relay").data
    assert found["head"]["snapshotPath"] == database(root, "HEAD.db")
    assert call(root, "status").data["sha"] == sha


def test_reading_a_snapshot_that_is_not_there_or_stands_elsewhere_is_a_failure(root: str) -> None:
    none = call(root, "snapshot", "--read")
    assert refused(none) == (1, "ERR_STORAGE")
    assert none.envelope["error"].startswith("storage operation failed: snapshot.read: ")
    way = f"memhtml head snapshot --write --repo {root}"
    assert none.envelope["suggestions"] == [way]
    call(root, "snapshot", "--write")
    git(root, "commit", "-q", "--allow-empty", "-m", "on")
    moved = call(root, "snapshot", "--read")
    assert refused(moved) == (1, "ERR_STORAGE")
    assert moved.envelope["error"].startswith("storage operation failed: snapshot.sha-mismatch: ")
    assert moved.envelope["suggestions"] == [way]


def test_a_snapshot_that_cannot_be_written_is_a_failure(root: str) -> None:
    os.makedirs(os.path.dirname(os.path.dirname(database(root))), exist_ok=True)
    Path(os.path.dirname(database(root))).write_text("in the way")
    said = call(root, "snapshot", "--write")
    assert refused(said) == (1, "ERR_STORAGE")
    assert said.envelope["error"].startswith("storage operation failed: snapshot.write: ")
    assert "WARN" in said.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("snapshot",), "ERR_MISSING_ARGUMENT"),
        (("snapshot", "--no-read"), "ERR_MISSING_ARGUMENT"),
        (("snapshot", "--read", "--write"), "ERR_INVALID_FLAG"),
        (("snapshot", "--read", "--server"), "ERR_INVALID_FLAG"),
        (("search",), "ERR_MISSING_ARGUMENT"),
        (("search", "two", "words"), "ERR_UNEXPECTED_ARGUMENT"),
        (("search", "x", "--limit", "-1"), "ERR_INVALID_FLAG"),
        (("search", "x", "--limit", "many"), "ERR_INVALID_FLAG"),
        (("embed", "--force"), "ERR_INVALID_FLAG"),
    ],
)
def test_a_wrong_call_opens_nothing(words: tuple[str, ...], code: str, tmp_path: Path) -> None:
    said = call(str(tmp_path / "nowhere"), *words)
    assert refused(said) == (2, code)


@pytest.mark.parametrize(
    ("words", "variable", "value"),
    [
        (("search", "x"), "MEMHTML_EMBED", "bedrock"),
        (("search", "x"), "MEMHTML_EMBED_DEADLINE_MS", "soon"),
        (("embed",), "MEMHTML_EMBED", "remote"),
    ],
)
def test_a_bad_variable_is_named_before_the_store_opens(
    words: tuple[str, ...], variable: str, value: str, tmp_path: Path
) -> None:
    said = call(str(tmp_path / "nowhere"), *words, env={variable: value})
    assert refused(said) == (2, "ERR_INVALID_FLAG")
    assert variable.partition("_DEADLINE")[0] in said.envelope["error"]


def test_a_damaged_database_is_replaced_and_searched_again(root: str) -> None:
    call(root, "status")
    conn = sqlite3.connect(database(root))
    conn.execute("DELETE FROM fts_data WHERE id > 10")
    conn.commit()
    conn.close()
    said = call(root, "search", "relay limit")
    assert [hit["path"] for hit in said.data["hits"]] == ["areas/inbox/relay.html"]
    assert "is damaged" in said.stderr
    assert said.data["head"]["source"] == "git"
    assert call(root, "search", "relay").stderr == ""


def test_a_put_does_not_load_numpy_without_a_cache(root: str) -> None:
    probe = (
        "import sys; from memhtml.cli.main import main; main(sys.argv[1:]);"
        "print('numpy' in sys.modules, file=sys.stderr)"
    )
    line = '{"op":"write","title":"T","type":"semantic","body":"Roses need water."}'
    memhtml("session", "start", "--id", "s1", "--repo", root)
    for embedder in ("off", "on", "hash"):
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS), "MEMHTML_EMBED": embedder}
        ran = subprocess.run(
            [sys.executable, "-c", probe, "session", "put", "--id", "s1", "--repo", root],
            input=line.encode(),
            env=variables,
            capture_output=True,
            check=True,
        )
        assert ran.stderr.decode().split()[-1] == "False"


def test_a_repository_without_a_commit_has_no_version(tmp_path: Path) -> None:
    git(str(tmp_path), "init", "-q")
    for words in (("status",), ("search", "x"), ("snapshot", "--write"), ("embed",)):
        said = call(str(tmp_path), *words, env=HASH)
        assert refused(said) == (1, "ERR_INVALID_MEMORY")
        assert said.envelope["suggestions"] == [f"memhtml init --repo {tmp_path}"]


def test_a_root_that_is_no_repository_is_a_git_failure(tmp_path: Path) -> None:
    assert refused(call(str(tmp_path), "status")) == (1, "ERR_GIT")
    assert os.listdir(tmp_path) == []


def test_embedding_without_an_embedder_is_a_failure(root: str) -> None:
    off = call(root, "embed")
    assert refused(off) == (1, "ERR_MODEL_UNAVAILABLE")
    assert "MEMHTML_EMBED" in off.envelope["error"]
    assert not os.path.exists(os.path.join(root, ".memhtml", "vectors"))


def test_a_model_by_url_embeds_and_its_failures_keep_what_is_stored(root: str) -> None:
    with endpoint() as server:
        remote = {
            "MEMHTML_EMBED": "remote",
            "MEMHTML_LLM_BASE_URL": server.url,
            "MEMHTML_EMBED_MODEL": "some/model",
            "MEMHTML_EMBED_DEADLINE_MS": "0",
        }
        said = call(root, "embed", env=remote)
        assert (said.data["modelId"], said.data["dimension"]) == ("some/model", 3)
        assert said.data["path"].endswith("some_model@3.vec")
        found = call(root, "search", "anything else", env=remote)
        assert found.data["vector"]["used"] is True
        server.answers = [(401, {}, b"no")]
        failed = call(root, "search", "relay", env=remote)
        assert failed.data["vector"]["detail"] == "the endpoint answered 401"
        assert [hit["path"] for hit in failed.data["hits"]] == ["areas/inbox/relay.html"]
        refusal = call(root, "embed", env=remote)
    assert refused(refusal) == (1, "ERR_MODEL_UNAVAILABLE")
    assert "the endpoint answered 401" in refusal.envelope["error"]


def test_an_endpoint_that_says_nothing_holds_up_neither_search_nor_process(root: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        remote = {
            "MEMHTML_EMBED": "remote",
            "MEMHTML_LLM_BASE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "MEMHTML_EMBED_MODEL": "m",
            "MEMHTML_EMBED_DEADLINE_MS": "50",
        }
        place = Path(root, ".memhtml", "vectors", "m@3.vec")
        place.parent.mkdir()
        place.touch()
        started = time.monotonic()
        said = call(root, "search", "relay", env=remote)
        # The request itself would be waited for 30 s.
        assert time.monotonic() - started < 15
    assert said.data["vector"]["reason"] == "embed-timeout"
    assert len(said.data["hits"]) == 1


def test_an_unreadable_cache_fails_embed_and_not_search(root: str) -> None:
    place = Path(root, ".memhtml", "vectors", "hash@256.vec")
    place.parent.mkdir()
    place.write_bytes(b"something else\n")
    said = call(root, "embed", env=HASH)
    assert refused(said) == (1, "ERR_STORAGE")
    assert said.envelope["error"].startswith("storage operation failed: vectors.read: ")
    assert said.envelope["suggestions"] == [f"rm {place}"]
    assert place.read_bytes() == b"something else\n"
    found = call(root, "search", "relay", env=HASH)
    assert found.data["vector"]["reason"] == "cache-unreadable"
    assert len(found.data["hits"]) == 1


def test_a_vector_folder_that_is_a_link_is_refused(root: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", os.path.join(root, ".memhtml", "vectors"))
    assert refused(call(root, "embed", env=HASH)) == (1, "ERR_STORAGE")
    assert os.listdir(tmp_path / "elsewhere") == []


def on_terminal(*words: str, env: dict[str, str]) -> str:
    """What a call writes to standard error when that is a terminal."""
    master, slave = pty.openpty()
    variables = {**os.environ, **env, "PYTHONPATH": os.pathsep.join(ROOTS)}
    with open(slave, "wb") as stderr:
        subprocess.run(
            [sys.executable, "-m", "memhtml", *words],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=variables,
            check=True,
        )
    found = b""
    try:
        while part := os.read(master, 65536):
            found += part
    except OSError:  # The terminal's other end is closed: everything was read.
        pass
    os.close(master)
    return found.decode()


def test_a_bar_is_drawn_on_a_terminal_and_nowhere_else(root: str) -> None:
    call(root, "status")
    shown = on_terminal("head", "embed", "--repo", root, env=HASH)
    assert "embedding records [##############################] 3/3" in shown
    assert shown.endswith("\r\x1b[K")
    assert call(root, "embed", env=HASH).stderr == ""
