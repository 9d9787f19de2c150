"""What an exec appends, when it appends nothing, and how it ends when it is cut short."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.command import ROOTS
from tests.support.session import add_ops, git, make_store, page, put_op, start_log, who

from memhtml.errors import MemhtmlError, StorageError
from memhtml.execute.script import Script
from memhtml.session import exec as session_exec
from memhtml.session.bound import Identity
from memhtml.session.log import log_path, read_log
from memhtml.store.lock import session_lock
from memhtml_format.ops import AddLabel
from memhtml_sandbox.probe import probe

A = "areas/inbox/a.html"
NEW = "/mnt/memhtml/areas/inbox/new.html"
WRITE = f"cat > {NEW} <<'HTML'\n{page('A new fact holds.')}HTML\n"

pytestmark = pytest.mark.skipif(
    probe(cache_dir=None).backend is None, reason="this host cannot confine a script"
)


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one record and one session."""
    root = make_store(str(tmp_path / "store"), {A: page("Fact a holds.")})
    start_log(root, "s", [])
    return root


def run(root: str, text: str, **fields: object) -> dict[str, object]:
    """The report of one script in session s."""
    script = Script(text)._replace(**fields)  # type: ignore[arg-type]
    done = session_exec.execute(root, who("s"), script)
    done.tidy()
    return done.payload


def test_exec_appends_the_harvest_of_a_clean_run(store: str) -> None:
    got = run(store, WRITE)
    assert got["appended"] == got["opsTotal"] == 1
    assert [op.path for op in read_log(store, "s").ops] == ["areas/inbox/new.html"]


def test_exec_that_fails_reports_its_harvest_and_appends_nothing(store: str) -> None:
    got = run(store, f"{WRITE}exit 3\n")
    assert (got["exitCode"], got["ops"], got["appended"]) == (3, 1, 0)
    assert read_log(store, "s").ops == ()


def test_second_exec_sees_what_the_first_one_wrote(store: str) -> None:
    run(store, WRITE)
    got = run(store, f"grep -c '<mark>A new fact' {NEW}\n")
    assert got["stdout"] == "1\n"
    assert got["appended"] == 0


def test_log_that_changed_while_the_script_ran_blocks_the_append(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = session_exec.judge_run

    def slow(*arguments: object) -> object:
        add_ops(store, "s", [put_op("meanwhile")])
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(session_exec, "judge_run", slow)
    got = run(store, WRITE)
    assert (got["appended"], got["opsTotal"]) == (0, 1)
    assert str(got["blocking"]).startswith("['session log:")
    assert [op.path for op in read_log(store, "s").ops] == ["areas/inbox/meanwhile.html"]


def test_log_that_went_away_while_the_script_ran_counts_nothing(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = session_exec.judge_run

    def slow(*arguments: object) -> object:
        os.unlink(log_path(store, "s"))
        return real(*arguments)  # type: ignore[arg-type]

    add_ops(store, "s", [put_op("before")])
    monkeypatch.setattr(session_exec, "judge_run", slow)
    got = run(store, WRITE)
    assert (got["ops"], got["appended"], got["opsTotal"]) == (1, 0, 0)
    assert "session log:" in str(got["blocking"])


def test_held_lock_blocks_the_append_and_the_call_still_answers(store: str) -> None:
    with session_lock(store, "s"):
        got = run(store, WRITE)
    assert got["exitCode"] == 0
    assert got["appended"] == 0
    assert "session log:" in str(got["blocking"])


def test_bad_policy_fails_before_the_script_runs(store: str, tmp_path: Path) -> None:
    Path(store, "memhtml.config.json").write_text("{", encoding="utf-8")
    with pytest.raises(StorageError) as caught:
        run(store, "echo ran\n")
    assert caught.value.reason == "policy.invalid"


def test_operation_that_no_longer_applies_fails_and_names_the_way_out(store: str) -> None:
    add_ops(store, "s", [AddLabel("areas/inbox/gone.html", "team:ops")])
    with pytest.raises(MemhtmlError) as caught:
        run(store, "true\n")
    assert caught.value.code == "ERR_INVALID_MEMORY"
    assert "areas/inbox/gone.html" in str(caught.value)
    assert "--drop-refused" in caught.value.suggestions[0]


def test_bound_run_starts_its_session_with_the_first_exec(store: str) -> None:
    bound = Identity("run-1", run_bound=True, implicit=True)
    first = session_exec.execute(store, bound, Script(WRITE)).payload
    assert first["started"]
    again = session_exec.execute(store, bound, Script("true\n")).payload
    assert not again["started"]
    assert again["opsTotal"] == 1


def test_script_that_deletes_everything_changes_nothing(store: str) -> None:
    got = run(store, "rm -rf /mnt/memhtml/* /tmp/* /home/user/* /workspace/* 2>/dev/null; true\n")
    assert got["ops"] == 0
    assert got["rejected"][0]["reason"].startswith("deleted:")  # type: ignore[index]
    assert git(store, "status", "--porcelain") == ""
    assert run(store, f"cat /mnt/memhtml/{A}\n")["stdout"] == page("Fact a holds.")


def test_script_past_its_bound_is_killed_and_appends_nothing(store: str) -> None:
    started = time.monotonic()
    got = run(store, f"{WRITE}sleep 60\n", timeout_ms=400)
    assert time.monotonic() - started < 5.4
    assert (got["exitCode"], got["timedOut"], got["appended"]) == (124, True, 0)
    assert got["ops"] == 1


def child(root: str, text: str, marker: str) -> subprocess.Popen[bytes]:
    """A `session exec` in a process of its own, running when this returns."""
    words = ["session", "exec", "--repo", root, "--id", "s", "--script", text]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)}
    started = subprocess.Popen(
        [sys.executable, "-m", "memhtml", *words],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: running(marker))
    return started


def running(marker: str) -> bool:
    """Whether a process with this word in its command line is alive."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:1] == [b"sleep"] and marker.encode() in words:
            return True
    return False


def wait_for(what: object) -> None:
    """Until `what()` holds, ten seconds at most."""
    assert callable(what)
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("sent", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_interrupted_exec_kills_the_run_and_appends_nothing(
    store: str, sent: signal.Signals, status: int
) -> None:
    marker = f"4{os.getpid() % 1000:03d}{int(sent):02d}"
    process = child(store, f"{WRITE}sleep {marker}\n", marker)
    process.send_signal(sent)
    out, _err = process.communicate(timeout=10)
    assert process.returncode == status
    assert out == b""
    wait_for(lambda: not running(marker))
    assert read_log(store, "s").ops == ()
    assert run(store, "true\n")["exitCode"] == 0
