"""Start-up is a feature: what a cheap call must not import (`style.md` of the project, §4.4).

A list of modules instead of a time, because a time depends on the machine; `scripts/bench` has the
times.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memhtml_sandbox.probe import probe

HEAVY = (
    "argparse",
    "asyncio",
    "dataclasses",
    "http.client",
    "importlib.metadata",
    "importlib.resources",
    "inspect",
    "logging",
    "lxml",
    "numpy",
    "pathlib",
    "psutil",
    "pydantic",
    "pygit2",
    "selectolax",
    "shutil",
    "sqlite3",
    "tempfile",
    "unittest",
)
PROBE = """
import os, sys
report = open(os.dup(2), "w")  # A call with upkeep lets go of the stream itself.
sys.argv[0] = "memhtml"
before = set(sys.modules)
import memhtml.__main__
from memhtml.cli.main import main
status = main()
heavy = sorted(name for name in {heavy!r} if name in sys.modules and name not in before)
print(status, *heavy, file=report, flush=True)
"""


# What an exec that changes nothing has no use for.
UNUSED_BY_A_NO_OP = (
    "datetime",
    "memhtml.bar",
    "memhtml.corpus.fold",
    "memhtml.corpus.view",
    "memhtml.corpus.watched",
    "memhtml.replay",
    "memhtml.session.evidence",
    "memhtml.session.view",
    "memhtml.store.scaffold",
    "memhtml_format.html",
    "memhtml_format.ops",
    "memhtml_format.record",
    "memhtml_format.violations",
    "memhtml_format.vocab",
    "memhtml_harvest",
    "memhtml_sandbox.launch",
    "memhtml_sandbox.trial",
    "subprocess",
    "threading",
)
# What it needs once the script has ended, and loads while the script runs.
LOADED_MEANWHILE = (
    "_sqlite3",
    "memhtml.cli.envelope",
    "memhtml.corpus.head",
    "memhtml.session.judgement",
    "memhtml.store.repo",
    "memhtml_sandbox.changes",
)
AT_LAUNCH = """
import sys
from memhtml_sandbox.spawner import Spawner
real = Spawner.launch
def launch(*arguments):
    print(*(name for name in {names!r} if name in sys.modules), file=sys.stderr)
    return real(*arguments)
Spawner.launch = launch
from memhtml.cli.main import main
sys.exit(main())
"""


def heavy_modules(*argv: str) -> tuple[int, list[str]]:
    """The exit status of a call in a fresh process, and the heavy modules it imported."""
    ran = subprocess.run(
        [sys.executable, "-c", PROBE.format(heavy=HEAVY), *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    status, *names = ran.stderr.decode().splitlines()[-1].split()
    return int(status), names


@pytest.mark.parametrize(
    ("argv", "status"),
    [
        ((), 0),
        (("manifest",), 0),
        (("help", "session", "exec"), 0),
        (("session", "commit"), 2),
        (("session", "exce"), 2),
        (("write",), 2),
        (("init", "--bogus"), 2),
    ],
)
def test_a_call_that_opens_nothing_imports_nothing_heavy(
    argv: tuple[str, ...], status: int
) -> None:
    assert heavy_modules(*argv) == (status, [])


def test_usage_errors_do_not_load_the_prose() -> None:
    probe = PROBE.format(heavy=("memhtml.cli.guide", "memhtml.cli.manifest", "memhtml.policy"))
    ran = subprocess.run(
        [sys.executable, "-c", probe, "session", "exce"], capture_output=True, check=True
    )
    assert ran.stderr.split() == [b"2"]


@pytest.fixture
def started(tmp_path: Path) -> str:
    """A store with a started session, its head database warm."""
    root = str(tmp_path / "store")
    for argv in (("init",), ("session", "start", "--id", "s1")):
        command = [sys.executable, "-m", "memhtml", *argv, "--repo", root]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    return root


def test_status_imports_nothing_heavy(started: str) -> None:
    assert heavy_modules("session", "status", "--id", "s1", "--repo", started) == (0, [])


needs_sandbox = pytest.mark.skipif(
    probe(cache_dir=None).backend is None, reason="this host cannot confine a script"
)


@pytest.fixture
def no_op(started: str) -> tuple[str, ...]:
    """The words of an exec that changes nothing, over a lower tree that stands ready."""
    words = ("session", "exec", "--id", "s1", "--repo", started, "--script", "true")
    command = [sys.executable, "-m", "memhtml", *words]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return words


@needs_sandbox
def test_an_exec_that_changes_nothing_loads_no_parser_no_bar_and_no_git(
    no_op: tuple[str, ...],
) -> None:
    probe = PROBE.format(heavy=(*HEAVY, *UNUSED_BY_A_NO_OP))
    ran = subprocess.run(
        [sys.executable, "-c", probe, *no_op], capture_output=True, timeout=60, check=True
    )
    assert ran.stderr.decode().split() == ["0"]


@needs_sandbox
def test_an_exec_starts_its_script_before_it_loads_what_comes_after(
    no_op: tuple[str, ...],
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", AT_LAUNCH.format(names=LOADED_MEANWHILE), *no_op],
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert ran.stderr.split() == []


def test_a_put_of_a_new_record_asks_git_for_nothing(started: str, tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    line = {"op": "write", "title": "A limit", "type": "semantic", "body": "The limit is 20."}
    lines.write_text(json.dumps(line) + "\n")
    words = ("session", "put", "--id", "s1", "--repo", started, "--file", str(lines))
    status, heavy = heavy_modules(*words)
    assert status == 0
    # The database and the parser (which brings logging) are what a put is about; git is not.
    assert set(heavy) <= {"logging", "selectolax", "sqlite3"}
