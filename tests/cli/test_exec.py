"""`exec` as a caller meets it: whole envelopes, each failure, and what a warm call loads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_startup import AT_LAUNCH, HEAVY, PROBE
from tests.support.cli import check_lines, here
from tests.support.command import Said, memhtml
from tests.support.session import git, make_store, page

from memhtml.execute.script import MAX_REQUEST_BYTES
from memhtml.schema.envelope import validate_envelope
from memhtml_sandbox.probe import probe

A = "areas/inbox/a.html"
UNUSED = ("memhtml.corpus.head", "memhtml.session", "memhtml_format.record", "memhtml_harvest")

needs_sandbox = pytest.mark.skipif(
    probe(cache_dir=None).backend is None, reason="this host cannot confine a script"
)


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A store with one record."""
    return make_store(str(tmp_path / "store"), {A: page("Fact a holds.")})


def call(root: str, *words: str, text: str = "", env: dict[str, str] | None = None) -> Said:
    """An `exec`; its envelope has the published shape, and its suggestions parse."""
    said = memhtml("exec", *words, "--repo", root, text=text, env=env)
    validate_envelope(said.envelope)
    check_lines(
        [line for line in said.envelope.get("suggestions", []) if line.startswith("memhtml")]
    )
    return said


@needs_sandbox
def test_exec_runs_javascript_from_standard_input_by_default(root: str) -> None:
    script = (
        "import { corpus } from '/workspace/lib/corpus.mjs';\n"
        "for (const memory of corpus().values()) console.log(memory.claim);\n"
        "console.error('done'); process.exitCode = 7;\n"
    )
    said = call(root, text=script)
    assert said.status == 0
    assert said.data.pop("durationMs") >= 0
    assert said.envelope == {
        "apiVersion": "1",
        "type": "exec.report",
        "data": {
            "lang": "js",
            "corpusMount": "/mnt/memhtml",
            "sha": git(root, "rev-parse", "HEAD"),
            "exitCode": 7,
            "stdout": "Fact a holds.\n",
            "stderr": "done\n",
            "timeoutMs": 30000,
            "timedOut": False,
        },
    }
    assert git(root, "status", "--porcelain") == ""


@needs_sandbox
def test_exec_takes_its_script_through_every_door(root: str, tmp_path: Path) -> None:
    Path(tmp_path, "script").write_text("echo from a file")
    bash = ("--lang", "bash")
    assert call(root, *bash, "--file", f"{tmp_path}/script").data["stdout"] == "from a file\n"
    assert call(root, *bash, "--script", "echo inline").data["stdout"] == "inline\n"
    for door in (["-"], ["--file", "-"], []):
        assert call(root, *bash, *door, text="echo piped").data["stdout"] == "piped\n"


@needs_sandbox
def test_exec_past_its_bound_and_over_an_older_commit_is_still_a_success(root: str) -> None:
    Path(root, A).write_text(page("Fact a is new."))
    git(root, "commit", "-qam", "second")
    words = ("--sha", "HEAD~1", "--lang", "bash", "--timeout-ms", "400")
    said = call(root, *words, "--script", f"cat /mnt/memhtml/{A}; sleep 60")
    assert said.status == 0
    assert (said.data["exitCode"], said.data["timedOut"]) == (124, True)
    assert said.data["stdout"] == page("Fact a holds.")
    assert said.data["sha"] == git(root, "rev-parse", "HEAD~1")


@needs_sandbox
def test_exec_stays_open_in_a_bound_run_and_starts_no_session(root: str) -> None:
    said = call(root, "--lang", "bash", text="true", env={"MEMHTML_SESSION": "run-1"})
    assert said.data["exitCode"] == 0
    assert not Path(root, ".memhtml/sessions").exists()


@pytest.mark.parametrize(
    ("words", "text", "code", "mention"),
    [
        (("--script", "1", "-"), "", "ERR_INVALID_FLAG", "one place"),
        (("--script", "1", "--file", "x"), "", "ERR_INVALID_FLAG", "one place"),
        (("--file", "x", "-"), "", "ERR_INVALID_FLAG", "one place"),
        (("--file", "/nowhere/at/all"), "", "ERR_PATH_NOT_FOUND", "/nowhere/at/all"),
        ((), " \n\t", "ERR_MISSING_ARGUMENT", "blank"),
        (("--script", ""), "", "ERR_MISSING_ARGUMENT", "blank"),
        (("--timeout-ms", "0"), "1", "ERR_INVALID_FLAG", "from 1 to 600000"),
        (("--timeout-ms", "600001"), "1", "ERR_INVALID_FLAG", "from 1 to 600000"),
        (("--timeout-ms", "1.5"), "1", "ERR_INVALID_FLAG", "whole number"),
        (("--lang", "perl"), "1", "ERR_INVALID_FLAG", "bash, js"),
        (("--id", "s1"), "1", "ERR_INVALID_FLAG", "--id"),
        (("file.js",), "", "ERR_UNEXPECTED_ARGUMENT", "file.js"),
    ],
)
def test_wrong_call_is_refused_before_the_store_is_touched(
    root: str, words: tuple[str, ...], text: str, code: str, mention: str
) -> None:
    said = call(root, *words, text=text)
    assert (said.status, said.envelope["code"]) == (2, code)
    assert mention in said.envelope["error"]
    assert said.envelope["suggestions"][-1] == "memhtml help exec"
    assert not Path(root, ".memhtml/sandbox").exists()


def test_script_that_is_no_text_is_refused(root: str, tmp_path: Path) -> None:
    Path(tmp_path, "script").write_bytes(b"a\n\xff")
    said = call(root, "--file", f"{tmp_path}/script")
    assert (said.status, said.envelope["code"]) == (2, "ERR_INVALID_FLAG")
    assert "line 2" in said.envelope["error"]


@needs_sandbox
def test_request_may_have_as_many_bytes_as_the_limit_and_not_one_more(root: str) -> None:
    frame = len('{"sha":"HEAD","script":"","lang":"bash","timeoutMs":9000}')
    words = ("--lang", "bash", "--sha", "HEAD", "--timeout-ms", "9000")
    fits = "#" * (MAX_REQUEST_BYTES - frame)
    assert call(root, *words, text=fits).data["exitCode"] == 0
    said = call(root, *words, text=f"{fits}#")
    assert (said.status, said.envelope["code"]) == (2, "ERR_INVALID_FLAG")
    assert f"at most {MAX_REQUEST_BYTES} bytes" in said.envelope["error"]
    assert f"this request is {MAX_REQUEST_BYTES + 1}" in said.envelope["error"]
    assert "session put" not in said.envelope["error"]


@pytest.mark.parametrize("name", ["nope", "", "HEAD:areas"])
def test_name_of_no_commit_is_an_invalid_memory(root: str, name: str) -> None:
    said = call(root, "--script", "1", f"--sha={name}")
    assert (said.status, said.envelope["code"]) == (1, "ERR_INVALID_MEMORY")
    assert said.envelope["suggestions"] == [f"memhtml exec --sha HEAD --repo {root}"]


def test_repository_without_a_commit_is_an_invalid_memory(tmp_path: Path) -> None:
    git(str(tmp_path), "init", "-q")
    said = call(str(tmp_path), "--script", "1")
    assert (said.status, said.envelope["code"]) == (1, "ERR_INVALID_MEMORY")
    assert said.envelope["suggestions"] == [f"memhtml init --repo {tmp_path}"]


def test_root_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    said = call(str(tmp_path), "--script", "1")
    assert (said.status, said.envelope["code"]) == (1, "ERR_GIT")
    assert said.envelope["suggestions"] == [f"memhtml init --repo {tmp_path}"]
    assert list(tmp_path.iterdir()) == []


def test_refused_environment_root_needs_a_repo(root: str) -> None:
    said = memhtml(
        "exec", "--script", "1", env={"MEMHTML_ROOT": root, "MEMHTML_REFUSE_ENV_ROOT": "1"}
    )
    assert (said.status, said.envelope["code"]) == (2, "ERR_REPO_REQUIRED")


def test_sandbox_that_cannot_be_had_names_the_remedy(root: str) -> None:
    env = {"MEMHTML_BWRAP": "/nowhere/bwrap", "MEMHTML_SANDBOX_CACHE": f"{root}-cache"}
    said = call(root, "--script", "1", env={**env, "PATH": "/usr/bin:/bin"})
    if said.status == 0:
        pytest.skip("another bwrap is found on this host")
    assert "exec.sandbox-load: " in said.envelope["error"]
    bad = call(root, "--script", "1", env={"MEMHTML_SANDBOX": "none"})
    assert (bad.status, bad.envelope["code"]) == (2, "ERR_INVALID_FLAG")


@needs_sandbox
def test_cache_that_cannot_be_written_is_a_failure_to_seed(root: str, tmp_path: Path) -> None:
    Path(tmp_path, "taken").write_text("")
    said = call(root, "--script", "1", env={"MEMHTML_SANDBOX_CACHE": f"{tmp_path}/taken"})
    assert (said.status, said.envelope["code"]) == (1, "ERR_STORAGE")
    assert "exec.s" in said.envelope["error"]


@needs_sandbox
def test_host_without_node_still_runs_bash(root: str, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "git", "ls", "cat"):
        Path(tools, name).symlink_to(f"/usr/bin/{name}")
    env = {"PATH": str(tools)}
    said = call(root, "--script", "1", env=env)
    if said.status == 0:
        pytest.skip("the wheel with node is installed")
    assert (said.status, said.envelope["code"]) == (1, "ERR_STORAGE")
    assert "exec.node-missing" in said.envelope["error"]
    assert said.envelope["suggestions"] == [f"memhtml exec --lang bash --repo {root} <<'SH'"]
    assert call(root, "--lang", "bash", "--script", "echo yes", env=env).data["stdout"] == "yes\n"


@needs_sandbox
def test_warm_exec_opens_no_database_and_loads_no_parser(root: str) -> None:
    words = ("exec", "--lang", "bash", "--repo", root, "--script", "true")
    assert memhtml(*words).data["exitCode"] == 0
    probe = PROBE.format(heavy=(*HEAVY, *UNUSED, "_sqlite3"))
    ran = subprocess.run(
        [sys.executable, "-c", probe, *words], capture_output=True, timeout=60, check=True
    )
    assert ran.stderr.decode().split() == ["0"]
    code = AT_LAUNCH.format(names=("memhtml.cli.envelope",))
    ran = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, timeout=60, check=True
    )
    assert json.loads(ran.stdout)["type"] == "exec.report"
    assert ran.stderr.split() == []


def test_help_of_exec_names_its_flags_in_order() -> None:
    flags = [flag["name"] for flag in here("help", "exec").data["flags"]]
    assert flags == ["file", "script", "lang", "timeout-ms", "sha"]
