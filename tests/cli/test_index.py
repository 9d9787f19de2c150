"""The index commands at the command line: whole envelopes, for success and each way to fail."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.command import ROOTS, Said, memhtml
from tests.support.index import A, B, C, commit, write_file
from tests.support.sandbox import support_for
from tests.support.session import git, make_store, page, tip

from memhtml.index.database import open_index
from memhtml.schema.envelope import validate_envelope

HASH = {"MEMHTML_EMBED": "hash"}
STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two memories and a page that is none, not indexed yet."""
    link = f'<link rel="memhtml-supports" href="/{B}">\n<meta name="memhtml-tag" content="t">\n'
    return make_store(
        str(tmp_path_factory.mktemp("template") / "store"),
        {A: page("The limit is 11.", head=link), B: page("The port is 8080."), C: "<p>none</p>"},
    )


@pytest.fixture
def root(template: str, tmp_path: Path) -> str:
    return str(shutil.copytree(template, str(tmp_path / "store"), symlinks=True))


def ask(root: str, *words: str, env: dict[str, str] | None = None) -> Said:
    """`memhtml index …`, its envelope valid."""
    said = memhtml("index", *words, "--repo", root, env=env)
    validate_envelope(said.envelope)
    return said


def answered(root: str, *words: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    """The payload of a call that succeeds and says nothing else."""
    said = ask(root, *words, env=env)
    assert (said.status, said.stderr) == (0, ""), said
    assert said.envelope["type"] == "index.report"
    return said.data


def refused(said: Said, code: str, *suggestions: str) -> str:
    """The sentence of a failure that was said in one envelope."""
    assert (said.status, said.envelope["code"]) == (1, code)
    assert said.envelope["suggestions"] == list(suggestions)
    return str(said.envelope["error"])


def test_rebuild_answers_its_whole_report(root: str) -> None:
    data = answered(root, "rebuild")
    reason = data["skipped"][0].pop("reason")
    assert data == {
        "mode": "rebuild",
        "headSha": tip(root),
        "filesIndexed": 2,
        "chunksIndexed": 2,
        "edgesIndexed": 1,
        "embeddingsWritten": 0,
        "embeddingsPreserved": 0,
        "skipped": [{"path": C}],
    }
    assert "title" in reason


def test_update_answers_its_whole_report_and_the_second_time_that_nothing_changed(
    root: str,
) -> None:
    answered(root, "rebuild")
    write_file(root, A, page("The limit is 12."))
    git(root, "mv", B, "areas/b.html")
    commit(root)
    write_file(root, "areas/new.html", page("Not committed yet."))
    expected = {
        "mode": "update",
        "headSha": tip(root),
        "unchanged": False,
        "added": 0,
        "modified": 1,
        "removed": 0,
        "renamed": 1,
        "dirty": 1,
        "embeddingsWritten": 0,
        "skipped": [],
    }
    assert answered(root, "update") == expected
    os.unlink(f"{root}/areas/new.html")
    answered(root, "update")
    nothing = {**expected, "unchanged": True, "modified": 0, "renamed": 0, "dirty": 0}
    assert answered(root, "update") == nothing


def test_embed_answers_its_whole_report(root: str) -> None:
    answered(root, "rebuild", "--no-embed")
    dry = {
        "mode": "embed",
        "headSha": tip(root),
        "chunks": 2,
        "embeddings": 0,
        "embeddingsWritten": 0,
        "embeddingsRemaining": 2,
    }
    assert answered(root, "embed") == dry
    assert answered(root, "embed", "--dry-run", env=HASH) == dry
    whole = {**dry, "embeddings": 2, "embeddingsWritten": 2, "embeddingsRemaining": 0}
    assert answered(root, "embed", env=HASH) == whole
    assert answered(root, "embed", env=HASH) == {**whole, "embeddingsWritten": 0}


def test_status_answers_its_whole_report(root: str) -> None:
    answered(root, "rebuild", env=HASH)
    data = answered(root, "status", env=HASH)
    assert STAMP.fullmatch(data.pop("rebuiltAt"))
    assert STAMP.fullmatch(data.pop("updatedAt"))
    assert data == {
        "mode": "status",
        "headSha": tip(root),
        "embedModel": "hash@256",
        "embedDim": 256,
        "embedModelMatches": True,
        "configuredEmbedModel": "hash@256",
        "files": 2,
        "activeFiles": 2,
        "chunks": 2,
        "embeddings": 2,
        "vectorCoverage": 1.0,
        "vectorCoverageFloor": 0.95,
        "edges": 1,
        "derivedEdges": 0,
        "tags": 1,
        "entities": 2,
        "traces": 0,
        "hasState": True,
    }


def test_status_of_a_store_without_an_index_says_so_with_empty_fields(root: str) -> None:
    data = answered(root, "status")
    empty = ("headSha", "embedModel", "embedDim", "configuredEmbedModel", "rebuiltAt", "updatedAt")
    assert {name: data[name] for name in empty} == dict.fromkeys(empty)
    assert (data["files"], data["vectorCoverage"]) == (0, 1.0)


def test_status_writes_nothing_into_the_index(root: str) -> None:
    answered(root, "rebuild")
    before = Path(root, ".memhtml/index.db").read_bytes()
    answered(root, "status")
    assert Path(root, ".memhtml/index.db").read_bytes() == before


def test_an_update_after_a_rebuild_that_was_cut_short_is_stale(root: str) -> None:
    answered(root, "rebuild")
    with open_index(root) as index:
        index.conn.execute("UPDATE index_state SET head_sha = NULL")
    refused(ask(root, "update"), "ERR_INDEX_STALE", f"memhtml index rebuild --repo {root}")
    answered(root, "rebuild")
    assert answered(root, "update")["unchanged"]


def test_another_vector_space_is_refused_where_vectors_are_written(root: str) -> None:
    answered(root, "rebuild", env=HASH)
    with open_index(root) as index:
        index.conn.execute("UPDATE index_state SET embed_model = 'other@3', embed_dim = 3")
        index.conn.execute("UPDATE embeddings SET model = 'other@3'")
    for words in (("update",), ("embed",), ("rebuild", "--no-embed", "--force")):
        said = ask(root, *words, env=HASH)
        text = refused(
            said, "ERR_EMBED_MODEL_MISMATCH", f"memhtml index rebuild --embed --repo {root}"
        )
        assert "other@3" in text
    assert answered(root, "status", env=HASH)["embedModelMatches"] is False
    assert answered(root, "rebuild", "--embed", env=HASH)["embeddingsWritten"] == 2


def test_vectors_are_not_risked_without_force(root: str) -> None:
    answered(root, "rebuild", env=HASH)
    refused(
        ask(root, "rebuild"),
        "ERR_REBUILD_NO_EMBED_REFUSED",
        f"memhtml index rebuild --embed --repo {root}",
        f"memhtml index rebuild --no-embed --force --repo {root}",
        f"memhtml index embed --repo {root}",
    )
    assert answered(root, "rebuild", "--force")["embeddingsPreserved"] == 2


def test_force_where_vectors_can_be_written_does_nothing(root: str) -> None:
    assert answered(root, "rebuild", "--force", env=HASH)["embeddingsWritten"] == 2
    assert answered(root, "rebuild", "--force", env=HASH)["embeddingsPreserved"] == 2


@pytest.mark.parametrize("command", ["update", "embed", "status"])
def test_a_damaged_index_is_refused_with_the_remedy_which_works(root: str, command: str) -> None:
    Path(root, ".memhtml/index.db").write_bytes(b"garbage " * 100)
    text = refused(ask(root, command), "ERR_STORAGE", f"memhtml index rebuild --repo {root}")
    assert text == "storage operation failed: index.open: .memhtml/index.db: it is damaged"
    said = ask(root, "rebuild")
    assert (said.status, said.data["filesIndexed"]) == (0, 2)
    assert "is moved aside" in said.stderr
    answered(root, command)


def test_a_state_row_that_does_not_decode_is_refused_with_the_remedy(root: str) -> None:
    answered(root, "rebuild")
    with open_index(root) as index:
        index.conn.execute("UPDATE index_state SET dirty_paths = 'no list'")
    for command in ("update", "status"):
        text = refused(ask(root, command), "ERR_STORAGE", f"memhtml index rebuild --repo {root}")
        assert text.startswith("storage operation failed: index_state.decode")
    answered(root, "rebuild")
    answered(root, "status")


def test_a_damaged_state_is_refused_and_kept(root: str) -> None:
    Path(root, ".memhtml/state.db").write_bytes(b"precious " * 100)
    said = ask(root, "status")
    text = refused(said, "ERR_STORAGE", f"memhtml state import --repo {root}")
    assert text.startswith("storage operation failed: state.open")
    assert answered(root, "rebuild")["filesIndexed"] == 2
    assert Path(root, ".memhtml/state.db").read_bytes() == b"precious " * 100


LOCKED = """
import sys
from memhtml.index import files, follow, sqlite
sqlite.BUSY_S, sqlite.RETRY_S, follow.WRITER_WAIT_S = 0.01, 0.05, 0.05
from memhtml.__main__ import main
sys.exit(main())
"""


def test_a_locked_index_is_refused_after_the_bound(root: str) -> None:
    answered(root, "rebuild")
    write_file(root, A, page("The limit is 12."))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
    words = [sys.executable, "-c", LOCKED, "index", "update", "--repo", root, "--dense"]
    with open_index(root) as index:
        index.conn.execute("BEGIN IMMEDIATE")
        busy = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    with open(f"{root}/.memhtml/index.db-writer") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        filled = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    for done in (busy, filled):
        assert done.returncode == 1
        assert '"error":"storage operation failed: index.locked: ' in done.stdout
    assert answered(root, "update")["dirty"] == 1


@pytest.mark.parametrize("command", ["rebuild", "update", "embed", "status"])
def test_a_root_that_is_no_store_is_refused_and_nothing_is_made(
    tmp_path: Path, command: str
) -> None:
    said = ask(str(tmp_path), command)
    refused(said, "ERR_GIT", f"memhtml init --repo {tmp_path}")
    assert os.listdir(tmp_path) == []


def test_a_bad_embedder_or_floor_is_refused_by_name(root: str) -> None:
    for env in ({"MEMHTML_EMBED": "maybe"}, {"MEMHTML_VECTOR_COVERAGE_FLOOR": "2"}):
        said = ask(root, "status", env=env)
        assert (said.status, said.envelope["code"]) == (2, "ERR_INVALID_FLAG")
        assert next(iter(env)) in said.envelope["error"]


def test_a_model_that_cannot_work_is_a_warning_and_leaves_the_rest_to_be_embedded(
    root: str, tmp_path: Path
) -> None:
    env = {"MEMHTML_EMBED": "local", "MEMHTML_EMBED_MODEL": str(tmp_path / "no-weights")}
    said = ask(root, "rebuild", env=env)
    assert (said.status, said.data["filesIndexed"], said.data["embeddingsWritten"]) == (0, 2, 0)
    assert "embedding stopped" in said.stderr
    said = ask(root, "embed", env=env)
    assert (said.status, said.data["embeddingsRemaining"]) == (0, 2)


def test_a_bar_shows_on_a_terminal_and_not_in_the_answer(root: str) -> None:
    answered(root, "rebuild", "--no-embed")
    above, below = pty.openpty()
    env = {**os.environ, **HASH, "PYTHONPATH": os.pathsep.join(ROOTS)}
    done = subprocess.run(
        [sys.executable, "-m", "memhtml", "index", "embed", "--repo", root],
        stdout=subprocess.PIPE,
        stderr=below,
        env=env,
        check=True,
    )
    os.close(below)
    shown = os.read(above, 4096).decode()
    os.close(above)
    assert "embedding [##############################] 2/2" in shown
    assert shown.endswith("\r\x1b[K")
    assert done.stdout.startswith(b'{\n  "apiVersion": "1"')


def test_an_interrupted_rebuild_ends_with_130_and_is_stale(root: str) -> None:
    answered(root, "rebuild")
    script = LOCKED.replace("from memhtml.__main__", INTERRUPT + "from memhtml.__main__")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
    words = [sys.executable, "-c", script, "index", "rebuild", "--repo", root]
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    refused(ask(root, "update"), "ERR_INDEX_STALE", f"memhtml index rebuild --repo {root}")


INTERRUPT = """
import os, signal
from memhtml.index import projection
projection.Rows.insert = lambda *_given: os.kill(os.getpid(), signal.SIGINT)
"""


def test_a_read_only_mount_is_reported_on_and_not_filled(root: str, tmp_path: Path) -> None:
    answered(root, "rebuild")
    bwrap = support_for(str(tmp_path)).bwrap
    assert bwrap is not None
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
    mount = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", sys.executable, "-m", "memhtml"]

    def there(command: str) -> dict[str, Any]:
        words = [*mount, "index", command, "--repo", root]
        done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
        envelope: dict[str, Any] = json.loads(done.stdout)
        validate_envelope(envelope)
        return envelope

    assert there("status")["data"]["files"] == 2
    for command in ("update", "rebuild"):
        refusal = there(command)
        assert refusal["error"].startswith("storage operation failed: index.open: it cannot be")
        assert refusal["suggestions"] == []
