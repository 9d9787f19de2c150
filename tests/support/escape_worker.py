"""One call of the sandbox in a process of its own, for the escape suites.

Run as a script with a request file and a file for the answer. It adopts what the call leaves
behind, so that a process that outlives a run is seen. It calls the sandbox package itself, or any
command line such as `session exec`. Standard library only until the request's paths are in place.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import sys
import termios
import time
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
SHA = "5eed" * 10


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    sys.path[:0] = request["paths"]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if request["terminal"]:
        # It leads a session of its own, so the terminal on its input becomes the session's.
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    mounts = _mounts()
    call = run_library if "script" in request else run_command
    try:
        answer = call(request)
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    answer["left"] = _left_after(1.0)
    answer["mounts"] = sorted(line for line in _mounts() - mounts if _is_ours(line, request))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(answer, file)


def _mounts() -> set[str]:
    """The mount table; other programs of the host mount as well, so callers pick their own."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as lines:
        return set(lines)


def _is_ours(line: str, request: dict[str, Any]) -> bool:
    point = line.split()[1]
    return point in ("/", "/tmp") or request["world"] in point or not point.startswith("/tmp/")


def _left_after(wait_s: float) -> list[str]:
    """Command names of processes that still run after a while; dead ones are reaped."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return []
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    with open("/proc/self/task/self/children", encoding="ascii") as file:
        return file.read().split()


class _Source:
    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def files(self, sha: str) -> list[tuple[str, bytes]]:
        return [(path, text.encode()) for path, text in sorted(self._files.items())]

    def difference(self, old: str, new: str) -> list[tuple[str, bytes | None]]:
        raise LookupError(old)


def run_library(request: dict[str, Any]) -> dict[str, Any]:
    """`Sandbox.run`, the change set, and the harvester over it where it can be imported."""
    from memhtml_sandbox.cache import CorpusCache
    from memhtml_sandbox.errors import SandboxFailed
    from memhtml_sandbox.limits import Limits
    from memhtml_sandbox.lower import NO_LAYER
    from memhtml_sandbox.probe import probe
    from memhtml_sandbox.sandbox import Sandbox

    support = probe(backend=request["backend"], cache_dir=request["cache"])
    if support.backend != request["backend"]:
        return {"unavailable": support.reason or f"the back end is {support.backend}"}
    cache = CorpusCache(request["cache"], uid=support.uid, gid=support.gid)
    lower = cache.ensure(_Source(request["seed"]), SHA)
    limits = Limits(timeout_ms=request["timeout_ms"])
    answer: dict[str, Any] = {"ops": None, "rejected": None, "appended": None}
    with Sandbox(support).run(
        lower,
        NO_LAYER,
        script=request["script"].encode(),
        lang=request["lang"],
        limits=limits,
    ) as run:
        try:
            changes = run.changes()
        except SandboxFailed as failed:
            answer["harvest_error"] = str(failed)
        else:
            answer.update(_harvested(request["seed"], changes))
        answer.update(
            exit_code=run.exit_code,
            timed_out=run.timed_out,
            stdout=run.stdout.decode(errors="replace"),
            stderr=run.stderr.decode(errors="replace"),
        )
    return answer


def _harvested(seed: dict[str, str], changes: Any) -> dict[str, Any]:
    from memhtml_format.ops import encode
    from memhtml_harvest.diff import harvest
    from memhtml_harvest.seed import MapSeed

    found = harvest(
        changes.changed,
        changes.vanished,
        MapSeed({path: text.encode() for path, text in seed.items()}),
        scope="session",
    )
    return {
        "ops": [[encode(op)["kind"], encode(op)["path"]] for op in found.ops],
        "rejected": [[item.reason, item.path] for item in found.rejected],
    }


def run_command(request: dict[str, Any]) -> dict[str, Any]:
    """Any command line, with its whole output."""
    import subprocess

    done = subprocess.run(
        request["argv"],
        input=request["input"].encode(),
        capture_output=True,
        env={**os.environ, **request["env"]},
        check=False,
    )
    return {
        "status": done.returncode,
        "output": done.stdout.decode(errors="replace"),
        "errors": done.stderr.decode(errors="replace"),
    }


if __name__ == "__main__":
    main()
