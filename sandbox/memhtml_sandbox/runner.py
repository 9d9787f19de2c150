"""One script over a copy-on-write view of the corpus, on a host that is known to manage it.

Puts the parts together: a job from limits, view and what the probe found; the spawner's start,
supervision, and the change set while the run is open. Two runs share nothing but the cache's
read-only trees. A set-up that fails is `SetupFailed` here; `sandbox` makes more of it.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Self

from memhtml_sandbox import cgroup, languages
from memhtml_sandbox.diagnose import SetupFailed
from memhtml_sandbox.errors import NodeMissing, SandboxFailed, SandboxUnavailable
from memhtml_sandbox.job import Request, build, caps, has_layer
from memhtml_sandbox.limits import DEFAULT, Limits, check
from memhtml_sandbox.lower import Lower, SessionLayer
from memhtml_sandbox.protocol import Forked, Job, StepFailed, memory_file
from memhtml_sandbox.result import Run
from memhtml_sandbox.spawner import Spawner, SpawnerGone
from memhtml_sandbox.supervise import Outcome, Started, Supervisor

if TYPE_CHECKING:
    from memhtml_sandbox.changes import ChangeSet
    from memhtml_sandbox.support import Support


class Runner:
    """Runs scripts as `support` says it can be done; see `sandbox.Sandbox`."""

    def __init__(self, support: Support, *, spawner: Spawner | None = None) -> None:
        self._support = support
        self._given = spawner
        self._own: Spawner | None = None
        self._lock = _thread.allocate_lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # At the end of the interpreter the spawner sees its caller go.
        if not sys.is_finalizing():
            self.close()

    def close(self) -> None:
        """End a spawner that this object started; runs that are left are killed."""
        with self._lock:
            own, self._own = self._own, None
        if own is not None:
            own.close()

    @contextlib.contextmanager
    def run(
        self,
        lower: Lower,
        layer: SessionLayer,
        *,
        script: bytes,
        lang: Literal["bash", "js"] = "bash",
        limits: Limits = DEFAULT,
        read_only: bool = False,
        meanwhile: Sequence[Callable[[], object]] = (),
    ) -> Iterator[Run]:
        """Run a script once; inside the block every process of it is dead and changes can be read.

        A read-only run has no change set and no layer (spec `sandbox` §4.2). The calls of
        `meanwhile` are made one by one whenever the run needs nothing, as far as its time goes; its
        deadlines wait for each, so they are of milliseconds. Raises `ValueError`
        for limits out of range, `SandboxUnavailable` or `NodeMissing` when this host cannot do it,
        `SandboxFailed` for a failure of the runtime, and here, not in `Sandbox`, `SetupFailed`. An
        interrupt kills the run before it goes on.
        """
        begun_s = time.monotonic()
        if read_only and has_layer(layer):
            raise ValueError("a read-only run has no session layer")
        language, limits = languages.find(lang), check(limits)
        until_s = begun_s + (limits.timeout_ms + limits.grace_ms) / 1_000
        request = Request(
            lower, layer, script, language, limits, read_only, begun_s, until_s, meanwhile
        )
        outcome, upper = self._attempt(request)
        run = Run(outcome, begun_s, until_s, self._reader(request, outcome, upper))
        try:
            yield run
        finally:
            run.close()
            if upper is not None:
                os.close(upper)

    def _attempt(self, request: Request) -> tuple[Outcome, int | None]:
        """Run it once; a cgroup that cannot be had is done without.

        The script has not started where a set-up failed, so a second try is still its only run.
        """
        try:
            return self._once(request)
        except SetupFailed as failed:
            if failed.step != "cgroup":
                raise
        self._support = self._support._replace(cgroup=None)
        return self._once(request)

    def _once(self, request: Request) -> tuple[Outcome, int | None]:
        support = self._support
        if support.backend is None:
            raise SandboxUnavailable(support.reason or "no sandbox here", support.remedy or "")
        if request.language.needs_node and support.node is None:
            raise NodeMissing(support.node_reason or "no node here", support.node_remedy or "")
        with contextlib.ExitStack() as keep, contextlib.ExitStack() as stack:
            group = self._group(request.limits, stack)
            ends = _Ends(stack, request.script)
            try:
                spawner, forked = self._start(build(support, request, group), ends, request)
            except TimeoutError:
                return _never_started(), None
            stack.callback(os.close, forked.pidfd)
            if forked.upper is not None:
                keep.callback(os.close, forked.upper)
            ends.close_theirs()
            started = Started(forked.pid, forked.pidfd, *ends.ours, sampled=group is None)
            before = self._before(spawner, request, forked.upper)
            supervisor = Supervisor(
                started, request.limits, request.begun_s, before, request.meanwhile
            )
            stack.callback(lambda: spawner.end(forked.pid, supervisor.init_pid))
            outcome = supervisor.watch()
            if group is not None and cgroup.ran_out_of_memory(group):
                outcome = outcome._replace(killed="memory")
            _require_end(outcome)
            keep.pop_all()
            return outcome, forked.upper

    def _start(self, job: Job, ends: _Ends, request: Request) -> tuple[Spawner, Forked]:
        layer = request.layer if has_layer(request.layer) and not self._copies() else None
        for _ in range(2):
            spawner = self._given or self._own_spawner()
            try:
                return spawner, spawner.launch(job, ends.theirs, layer, request.until_s)
            except SpawnerGone:
                if spawner is self._given:
                    break
                self.close()
            except StepFailed as failed:
                if failed.step == "seed":
                    reason = f"the view could not be written: {os.strerror(failed.errno)}"
                    raise SandboxFailed("exec.seed", reason) from failed
                raise SetupFailed(failed.step, failed.errno) from failed
        raise SandboxFailed("exec.run", "the process that starts runs has ended")

    def _own_spawner(self) -> Spawner:
        with self._lock:
            if self._own is None:
                self._own = Spawner.start()
            return self._own

    def _copies(self) -> bool:
        return self._support.backend == "copy"

    def _before(
        self, spawner: Spawner, request: Request, upper: int | None
    ) -> Callable[[int], None]:
        support = self._support

        def act(init_pid: int) -> None:
            _offer_for_memory(init_pid)
            if self._copies() and upper is not None:
                _fill(upper, request, support)
            _cap(spawner, init_pid, support, request.limits)

        return act

    def _group(self, limits: Limits, stack: contextlib.ExitStack) -> str | None:
        if self._support.cgroup is None:
            return None
        group = cgroup.create(self._support.cgroup, limits)
        if group is not None:
            stack.callback(cgroup.remove, group)
            stack.callback(cgroup.kill, group)
        return group

    def _reader(
        self, request: Request, outcome: Outcome, upper: int | None
    ) -> Callable[[], ChangeSet] | None:
        # A run that its deadline cut off before the script started has changed nothing.
        if upper is None or request.read_only or outcome.began_s is None:
            return None
        from memhtml_sandbox import changes

        read = changes.read_copy if self._copies() else changes.read_overlay
        return lambda: read(upper, request.lower, request.layer, request.limits)


class _Ends:
    """The pipes and files of a run: `ours` stay here, `theirs` go to bwrap by name."""

    def __init__(self, stack: contextlib.ExitStack, script: bytes) -> None:
        self.theirs: dict[str, int] = {}
        stack.callback(self.close_theirs)
        ours: list[int] = []
        for name in ("stdout", "stderr", "status"):
            reading, self.theirs[name] = os.pipe()
            stack.callback(os.close, reading)
            ours.append(reading)
        self.theirs["block"], writing = os.pipe()
        stack.callback(os.close, writing)
        self.ours = (ours[0], ours[1], ours[2], writing)
        self.theirs["script"] = memory_file("script", script)

    def close_theirs(self) -> None:
        """Close bwrap's ends here, or end of file would never come."""
        while self.theirs:
            os.close(self.theirs.popitem()[1])


def _fill(upper: int, request: Request, support: Support) -> None:
    # Needed on few hosts.
    from memhtml_sandbox import copy_backend

    owner = (support.uid, support.gid) if support.as_root else None
    try:
        copy_backend.fill(upper, request.lower, request.layer, owner)
    except OSError as error:
        raise SandboxFailed("exec.seed", f"the view could not be written: {error}") from error


def _cap(spawner: Spawner, init_pid: int, support: Support, limits: Limits) -> None:
    """Set the caps of spec `sandbox` §7 here, or where only its own user may, in the spawner."""
    wanted = caps(limits)
    try:
        for kind, value in wanted:
            resource.prlimit(init_pid, kind, (value, value))
    except PermissionError as error:
        if not support.as_root or not spawner.cap(init_pid, support.uid, support.gid, wanted):
            raise SetupFailed("prlimit", error.errno or errno.EPERM) from error
    except ProcessLookupError:
        return


def _offer_for_memory(init_pid: int) -> None:
    """Where memory runs out, the kernel is to end the run rather than something of the host."""
    with contextlib.suppress(OSError):
        fd = os.open(f"/proc/{init_pid}/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"1000")
        finally:
            os.close(fd)


def _never_started() -> Outcome:
    return Outcome(None, "timeout", b"", b"", 0, 0, None, time.monotonic(), 0)


def _require_end(outcome: Outcome) -> None:
    """bwrap exits 1 for a script's `exit 1` too, so only its own word for the exit code counts."""
    if outcome.exit_code is not None or outcome.killed is not None:
        return
    lines = outcome.stderr.decode("utf-8", "replace").splitlines()
    if lines and lines[0].startswith("bwrap: "):
        raise SetupFailed("bwrap", 0, lines[0])
    raise SandboxFailed("exec.run", "the sandbox ended without an exit code")
