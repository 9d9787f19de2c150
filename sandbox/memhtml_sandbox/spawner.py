"""The small process that starts runs, and this side of the socket it is reached by.

A run needs a process with one thread that outlives its start: namespaces are made before bwrap is
executed, and bwrap dies with whoever forked it (spec `sandbox` §4.1). `Spawner.start` forks that
process; do it before the first thread, and early: it prepares itself while the caller goes on. It
ends with its caller, and kills every run that is left; also one whose time is long over, since a
caller that is stopped keeps no deadline. It judges nothing and reads no output.
"""

from __future__ import annotations

import _socket
import _thread
import contextlib
import errno
import gc
import marshal
import os
import select
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from memhtml_sandbox.protocol import LATE_S, Forked, Job, StepFailed, memory_file

if TYPE_CHECKING:
    from memhtml_sandbox.launch import Ground
    from memhtml_sandbox.lower import SessionLayer

# A message and the descriptors beside it; a job is a few KB, the session's layer travels as a file.
_MESSAGE_BYTES = 1 << 17
_MOST_FDS = 32

# How long to wait for an answer that needs no mounts, and for the process to end by itself.
_CAP_S = 2.0
_PATIENCE_MS = 2_000

_SIGKILL, _SIGTERM = 9, 15

_NEVER_S = float("inf")

_RUN, _CAP, _END = "run", "cap", "end"


class SpawnerGone(Exception):
    """The spawner has ended; a new one must be started."""


class Spawner:
    """This side. Methods may be called from several threads."""

    def __init__(self, channel: _socket.socket, pid: int) -> None:
        self._channel = channel
        self._lock = _thread.allocate_lock()
        self._pidfd = os.pidfd_open(pid)
        self._owner = os.getpid()
        self.pid = pid

    @classmethod
    def start(cls) -> Spawner:
        """Fork the process. The caller should have one thread; it is not waited for."""
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        parent = os.getpid()
        try:
            pid = os.fork()
            if pid == 0:
                _be_spawner(theirs.fileno(), parent)
        finally:
            theirs.close()
        return cls(ours, pid)

    def launch(
        self, job: Job, fds: Mapping[str, int], layer: SessionLayer | None, until_s: float
    ) -> Forked:
        """Start a job. Raises `StepFailed`, `SpawnerGone`, or `TimeoutError` at `until_s`.

        A run that is still there a second after that is killed, whatever the caller does. `fds`
        holds `stdout`, `stderr`, `status`, `block` and `script`.
        """
        extra: dict[str, int] = {}
        if layer is not None:
            content = marshal.dumps((dict(layer.files), tuple(layer.gone)))
            extra["layer"] = memory_file("layer", content)
        try:
            every = {**fds, **extra}
            answer, received = self._ask(
                (_RUN, tuple(job), tuple(every), until_s + LATE_S), list(every.values()), until_s
            )
        finally:
            for fd in extra.values():
                os.close(fd)
        if answer[0] != "started":
            raise StepFailed(answer[1], answer[2])
        return Forked(answer[1], received[0], received[1] if len(received) > 1 else None)

    def cap(self, pid: int, uid: int, gid: int, caps: Sequence[tuple[int, int]]) -> bool:
        """Set resource caps of another user's process, as that user; False when refused."""
        answer, _ = self._ask((_CAP, pid, uid, gid, tuple(caps)), [], time.monotonic() + _CAP_S)
        return bool(answer[0] == "capped")

    def end(self, pid: int, init_pid: int) -> None:
        """Have the processes of a finished run reaped; both must be dead."""
        try:
            _send(self._channel, (_END, pid, init_pid))
        except OSError:
            return

    def let_go(self) -> None:
        """Have the process end by itself when no run is left to start; `close` still waits."""
        self._channel.close()

    def close(self) -> None:
        """End the process and wait for it; its runs are killed. A second call does nothing."""
        self._end(patience_ms=_PATIENCE_MS)

    def _end(self, patience_ms: int) -> None:
        pid, self.pid = self.pid, 0
        if pid == 0:
            return
        self._channel.close()
        if os.getpid() != self._owner:
            # A forked copy of the caller; the process is not its own to end.
            os.close(self._pidfd)
            return
        watch = select.poll()
        watch.register(self._pidfd, select.POLLIN)
        if not watch.poll(patience_ms):
            # Stuck in the kernel, perhaps in a mount.
            os.kill(pid, _SIGKILL)
        os.close(self._pidfd)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)

    def _ask(
        self, question: tuple[Any, ...], fds: list[int], until_s: float
    ) -> tuple[tuple[Any, ...], list[int]]:
        with self._lock:
            try:
                self._channel.settimeout(max(0.001, until_s - time.monotonic()))
                _send(self._channel, question, fds)
                return _receive(self._channel)
            except TimeoutError:
                self._end(patience_ms=0)
                raise
            except (OSError, EOFError) as error:
                raise SpawnerGone from error
            except BaseException:
                # The answer would be taken for that of the next question, and its run be lost.
                self._end(patience_ms=_PATIENCE_MS)
                raise


def _send(channel: _socket.socket, message: tuple[Any, ...], fds: Sequence[int] = ()) -> None:
    rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds)
    ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)] if rights else []
    channel.sendmsg([marshal.dumps(message)], ancillary)


def _receive(channel: _socket.socket) -> tuple[tuple[Any, ...], list[int]]:
    """The next message with its descriptors, close-on-exec; `EOFError` when there is none."""
    data, ancillary, _, _ = channel.recvmsg(
        _MESSAGE_BYTES, _socket.CMSG_SPACE(4 * _MOST_FDS), _socket.MSG_CMSG_CLOEXEC
    )
    fds = [
        int.from_bytes(content[place : place + 4], sys.byteorder)
        for _, _, content in ancillary
        for place in range(0, len(content), 4)
    ]
    if not data:
        raise EOFError
    return marshal.loads(data), fds


# The other side. ---------------------------------------------------------------------------------


def _be_spawner(channel_fd: int, parent: int) -> NoReturn:
    status = 1
    try:
        # Nothing of the caller's may be finalised here: its descriptors are other files by now.
        gc.freeze()
        channel = _socket.socket(fileno=_keep_only(channel_fd))
        _Server(channel, parent).serve()
        status = 0
    finally:
        # Never back into the caller's code, whatever happened here.
        os._exit(status)


def _keep_only(wanted: int) -> int:
    """Close every descriptor but one, and put nothing in the place of the standard ones.

    A pipe of the caller's would otherwise stay open for whoever reads it to the end.
    """
    kept = wanted if wanted == 3 else os.dup2(wanted, 3, inheritable=False)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 3 and fd != nothing:
            _close([fd])
    for fd in range(3):
        os.dup2(nothing, fd)
    if nothing > 3:
        os.close(nothing)
    return kept


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


class _CallerGone(BaseException):
    """The caller's process has ended."""


class _Server:
    def __init__(self, channel: _socket.socket, parent: int) -> None:
        self._channel = channel
        self._parent = parent
        self._ground: Ground | StepFailed | None = None
        # Each bwrap, and when its run is to be over on the monotonic clock.
        self._running: dict[int, float] = {}

    def serve(self) -> None:
        """Answer until the caller is gone, then kill what still runs."""
        try:
            self._detach()
            # The slow imports and the mounts of the ground, while the caller goes on.
            from memhtml_sandbox import launch

            try:
                self._ground = launch.prepare_ground()
            except StepFailed as failed:
                self._ground = failed
            while True:
                self._keep_time()
                message, fds = _receive(self._channel)
                try:
                    self._answer(message, fds)
                finally:
                    _close(fds)
                self._follow_caller()
                if isinstance(self._ground, launch.Ground):
                    launch.make_ready(self._ground)
        except (EOFError, OSError, _CallerGone):
            return
        finally:
            self._kill_all()

    def _detach(self) -> None:
        """Own session, default signals in what is executed, death with the caller."""
        import signal

        from memhtml_sandbox import kernel

        def caller_gone(_number: int, _frame: object) -> None:
            # Also sent when only the thread that forked this process has ended.
            if os.getppid() != self._parent:
                raise _CallerGone

        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for name in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            # A handler, not "ignore": that would be inherited by the script.
            signal.signal(name, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, caller_gone)
        os.setsid()
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        self._follow_caller()

    def _follow_caller(self) -> None:
        """Be told when the caller ends. A change of identity makes the kernel forget it."""
        from memhtml_sandbox import kernel

        # Not SIGKILL: the runs have to be killed in an order that leaves none behind.
        kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGTERM)
        if os.getppid() != self._parent:
            raise _CallerGone

    def _keep_time(self) -> None:
        """Wait for a message, and kill each run whose time is over meanwhile."""
        watch = select.poll()
        watch.register(self._channel.fileno(), select.POLLIN)
        while True:
            now = time.monotonic()
            for pid in [pid for pid, until_s in self._running.items() if until_s <= now]:
                self._running[pid] = _NEVER_S
                _kill_run(pid)
            first_s = min(self._running.values(), default=_NEVER_S)
            if watch.poll(None if first_s == _NEVER_S else (first_s - now) * 1_000):
                return

    def _answer(self, message: tuple[Any, ...], fds: list[int]) -> None:
        kind, *values = message
        if kind == _RUN:
            self._run(values[0], dict(zip(values[1], fds, strict=True)), values[2])
        elif kind == _CAP:
            _send(self._channel, ("capped" if _cap(*values) else "refused",))
        else:
            self._reap(*values)

    def _run(self, job: tuple[Any, ...], fds: dict[str, int], until_s: float) -> None:
        from memhtml_sandbox import launch

        if not isinstance(self._ground, launch.Ground):
            failed = self._ground or StepFailed("start", errno.EINVAL)
            _send(self._channel, ("failed", failed.step, failed.errno))
            return
        layer = _read_layer(fds.pop("layer")) if "layer" in fds else None
        try:
            forked = launch.launch(self._ground, Job(*job), fds, layer)
        except StepFailed as failed:
            _send(self._channel, ("failed", failed.step, failed.errno))
            return
        self._running[forked.pid] = until_s
        own = [forked.pidfd] if forked.upper is None else [forked.pidfd, forked.upper]
        try:
            _send(self._channel, ("started", forked.pid), own)
        finally:
            _close(own)

    def _reap(self, pid: int, init_pid: int) -> None:
        """bwrap, and its init: an orphan that came here because this is a subreaper."""
        for dead in (pid, init_pid):
            with contextlib.suppress(ChildProcessError):
                if dead and os.waitpid(dead, os.WNOHANG)[0] == pid:
                    self._running.pop(pid, None)

    def _kill_all(self) -> None:
        """Kill until no child is left: whoever loses its parent in a run comes here."""
        from memhtml_sandbox.processes import children

        while left := children(os.getpid()):
            for pid in left:
                _kill_run(pid)
            for pid in left:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def _kill_run(pid: int) -> None:
    """The init before its bwrap: one that is not yet bound to it would live on."""
    from memhtml_sandbox.processes import children

    for victim in (*children(pid), pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, _SIGKILL)


def _read_layer(fd: int) -> SessionLayer:
    from memhtml_sandbox.lower import SessionLayer, read_all

    files, gone = marshal.loads(read_all(fd))
    return SessionLayer(files, frozenset(gone))


def _cap(pid: int, uid: int, gid: int, caps: Sequence[tuple[int, int]]) -> bool:
    """`prlimit` lets a process with the same real ids do it, where root lacks the capability."""
    import resource

    try:
        os.setresgid(gid, -1, -1)
        os.setresuid(uid, -1, -1)
        for kind, value in caps:
            resource.prlimit(pid, kind, (value, value))
    except PermissionError:
        return False
    except ProcessLookupError:
        return True
    finally:
        os.setresuid(0, -1, -1)
        os.setresgid(0, -1, -1)
    return True
