"""Real overlays for tests: starts `overlay_worker` as one user or another and talks to it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from types import TracebackType

from tests.support import overlay_worker
from tests.support.overlay_worker import Answer, Request

import memhtml_sandbox.lower

ORDINARY_UID = 65_533
"""A user id that belongs to nobody; the tests become it when they run as root."""

_SANDBOX_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(memhtml_sandbox.lower.__file__)))


class Unavailable(Exception):
    """This host cannot mount an overlay as that user; the text says why."""


class OverlayWorker:
    """A worker process; close it, or use it as a context manager."""

    def __init__(self, uid: int | None = None) -> None:
        """Start it as this user, or as `uid`. Raises `Unavailable`."""
        # The interpreter of a virtual environment may lie in a home that the user cannot enter.
        python = sys.executable if uid is None else "/usr/bin/python3"
        try:
            self.process = subprocess.Popen(
                [python, "-I", "-B", overlay_worker.__file__, _SANDBOX_ROOT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                user=uid,
                group=uid,
                extra_groups=None if uid is None else [],
                env={},
                cwd="/",
            )
        except OSError as error:
            raise Unavailable(f"cannot start {python} as uid {uid}: {error}") from error
        assert self.process.stdout is not None
        try:
            ready = pickle.load(self.process.stdout)
        except EOFError:
            _, said = self.process.communicate()
            raise Unavailable(said.decode(errors="replace").strip().splitlines()[-1]) from None
        assert ready == "ready"

    def ask(self, request: Request) -> Answer:
        """Do one request; an exception in the worker is an assertion here."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        pickle.dump(tuple(request), self.process.stdin)
        self.process.stdin.flush()
        answer = pickle.load(self.process.stdout)
        assert not isinstance(answer, str), answer
        return Answer(*answer)

    def close(self) -> None:
        self.process.communicate()

    def __enter__(self) -> OverlayWorker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
