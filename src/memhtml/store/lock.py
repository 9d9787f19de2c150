"""The two locks of a store: folders made by an atomic `mkdir`, with one file that names the holder.

Spec `sessions` §2. A lock whose folder was not touched for its stale time may be taken over; while
it is held a small thread touches it every third of that time. Nobody removes a lock that is not
theirs: whoever moves a folder aside looks at what it moved before removing it. A lock lives as long
as a git child that its holder started under it: such a child has a shared `flock` on the holder's
file, and whoever takes a lock over must have that `flock` for itself.

The thread needs the interpreter, and pygit2 keeps that to itself during each of its calls (0.8 s
for an object of 300 MB was seen, against 3.3 s between two touches).
"""

from __future__ import annotations

import _thread  # Built in; `threading` would cost every writer 2 ms.
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from memhtml.errors import StorageError
from memhtml.store.atomic import temporary_name, write_all

SESSION_STALE_S = 30.0
CHECKOUT_STALE_S = 10.0
CHECKOUT_WAIT_S = 15.0
POLL_S = 0.05

_HOLDER = "holder"
_HOLDER_LIMIT_BYTES = 4096

_held: list[DirectoryLock] = []
"""The locks of this process, for the children it starts."""


class DirectoryLock:
    """One lock folder. As a context manager it takes the lock or raises `StorageError` `reason`.

    `path` lies in a folder that must exist: `acquire` raises FileNotFoundError when it does not,
    and another OSError when the disk refuses. Not to be shared between threads.
    """

    def __init__(
        self,
        path: str,
        *,
        stale_s: float,
        wait_s: float = 0.0,
        reason: str = "session.locked",
        refused: str = "session.mkdir",
    ) -> None:
        self.path = path
        self.stale_s = stale_s
        self.wait_s = wait_s
        self.reason = reason
        self.refused = refused
        self._token: str | None = None
        self._pid = 0
        self._stop: _thread.LockType | None = None

    def acquire(self, wait_s: float = 0.0) -> bool:
        """Take the lock; False when it stayed busy for `wait_s` seconds (0: look once)."""
        deadline = time.monotonic() + wait_s
        while not self._take():
            if self.remove_if_stale():
                continue
            rest = deadline - time.monotonic()
            if rest <= 0:
                return False
            time.sleep(min(POLL_S, rest))
        _held.append(self)
        self._stop = _thread.allocate_lock()
        self._stop.acquire()
        _thread.start_new_thread(self._keep_fresh, (self._stop,))
        return True

    def release(self) -> None:
        """Give the lock back; does nothing when it is no longer ours."""
        token, self._token = self._token, None
        if self in _held:
            _held.remove(self)
        if self._stop is not None:
            self._stop.release()
            self._stop = None
        if token is None or self._pid != os.getpid():
            return  # A forked child carries a copy; the lock is its parent's.
        if _token_in(self.path) == token:
            _set_aside(self.path, lambda aside: _token_in(aside) == token)

    def refresh(self) -> None:
        """Say that the holder is alive; does nothing when the lock is no longer ours."""
        if self.still_ours():
            try:
                os.utime(self.path)
            except OSError:
                return  # Gone since the look: `still_ours` tells.

    def still_ours(self) -> bool:
        """Whether nobody took the lock over while this process was paused."""
        return self._token is not None and _token_in(self.path) == self._token

    def remove_if_stale(self) -> bool:
        """Remove the lock when its holder is gone; True when the way may be free now.

        Of many that try, one moves the folder; the others find nothing or a fresh lock.
        """
        with _one_at_a_time(os.path.dirname(self.path)):
            if not _is_left(self.path, self.stale_s):
                return not os.path.lexists(self.path)
            with _without_children(self.path) as alone:
                # Moving a folder does not touch it: its age can be looked at again afterwards.
                seen = _holder_text(self.path)
                free = alone and _set_aside(
                    self.path,
                    lambda aside: _holder_text(aside) == seen and _is_left(aside, self.stale_s),
                )
            return free

    def for_child(self) -> int | None:
        """A descriptor that keeps the lock ours while a child has it open; the caller closes it.

        None when a fork brought this lock here: it is not ours. Raises `StorageError` `reason`
        when the lock was lost.
        """
        if self._pid != os.getpid():
            return None
        try:
            descriptor = os.open(os.path.join(self.path, _HOLDER), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            raise self._lost() from None
        try:
            _flock_quietly(descriptor, fcntl.LOCK_SH)
            # Only now: from here on nobody can take the lock over.
            if not self.still_ours():
                raise self._lost()
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _lost(self) -> StorageError:
        name = os.path.basename(self.path)
        return StorageError(self.reason, f"{name} was lost while this process paused")

    def __enter__(self) -> DirectoryLock:
        try:
            taken = self.acquire(self.wait_s)
        except FileNotFoundError:
            raise
        except OSError as error:
            name = os.path.basename(self.path)
            raise StorageError(self.refused, f"{name}: {error.strerror}") from error
        if not taken:
            text = f"{_who_holds(self.path)}; run the same call again when it is done"
            raise StorageError(self.reason, text)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _take(self) -> bool:
        try:
            os.mkdir(self.path)
        except FileExistsError:
            return False
        token = os.urandom(16).hex()
        try:
            _write_holder(self.path, token)
        except (FileExistsError, FileNotFoundError):
            return False  # Paused for so long that another took the folder over.
        except OSError:
            _remove_folder(self.path)
            raise
        self._token, self._pid = token, os.getpid()
        return self.still_ours()

    def _keep_fresh(self, stop: _thread.LockType) -> None:
        while not stop.acquire(timeout=self.stale_s / 3):
            self.refresh()


def session_lock(root: str, session_id: str) -> DirectoryLock:
    """The lock of one session's log: busy is `session.locked` at once, stale after 30 s."""
    path = os.path.join(root, ".memhtml", "sessions", f"{session_id}.lock")
    return DirectoryLock(path, stale_s=SESSION_STALE_S)


def checkout_lock(root: str) -> DirectoryLock:
    """The lock of the shared index and working tree: waits 15 s, then `checkout.locked`."""
    folder = os.path.join(root, ".memhtml")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise StorageError("write", f".memhtml: {error.strerror}") from error
    return DirectoryLock(
        os.path.join(folder, "checkout.lock"),
        stale_s=CHECKOUT_STALE_S,
        wait_s=CHECKOUT_WAIT_S,
        reason="checkout.locked",
        refused="write",
    )


@contextmanager
def kept_by_child() -> Iterator[tuple[int, ...]]:
    """Descriptors to hand to one child: while it lives, no lock this process holds is taken over.

    Raises `StorageError` with the lock's reason when one was lost.
    """
    descriptors: list[int] = []
    try:
        for lock in _held:
            descriptor = lock.for_child()
            if descriptor is not None:
                descriptors.append(descriptor)
        yield tuple(descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def is_stale(path: str, stale_s: float) -> bool:
    """Whether the lock at `path` may be taken over; False when there is none.

    By age on the file system's own clock, or at once when its holder ran on this kernel, in this
    pid namespace, and is gone; never while a child that the holder started under it lives.
    """
    if not _is_left(path, stale_s):
        return False
    with _without_children(path) as alone:
        stale = alone
    return stale


def _is_left(path: str, stale_s: float) -> bool:
    """Whether nobody seems to hold the lock at `path` any more, its children apart."""
    try:
        touched_s = os.lstat(path).st_mtime
    except OSError:
        return False
    if _holder_died(path):
        return True
    return _file_system_now_s(_scratch(path)) - touched_s > stale_s


@contextmanager
def _without_children(path: str) -> Iterator[bool]:
    """Whether no child lives that the lock's holder started; none can start inside the block."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(os.path.join(path, _HOLDER), flags)
    except OSError:
        yield True
        return
    try:
        yield _flock_quietly(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)


def _scratch(path: str) -> str:
    """Where short-lived files beside a lock go: the folder git ignores, when there is one."""
    folder = os.path.dirname(path)
    ignored = os.path.join(folder, "sessions")
    return ignored if os.path.isdir(ignored) else folder


def _file_system_now_s(folder: str) -> float:
    """The time the folder's file system would stamp on a file now; ours when it takes no file."""
    probe = os.path.join(folder, temporary_name("clock"))
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return time.time()
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
        os.unlink(probe)


def _write_holder(path: str, token: str) -> None:
    holder = {
        "pid": os.getpid(),
        "started": _start_time(os.getpid()),
        "host": os.uname().nodename,
        "boot": _boot_id(),
        "pidNamespace": _pid_namespace(),
        "token": token,
    }
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(os.path.join(path, _HOLDER), flags, 0o644)
    try:
        write_all(descriptor, (json.dumps(holder) + "\n").encode())
    finally:
        os.close(descriptor)


def _holder_text(path: str) -> bytes | None:
    try:
        with open(os.path.join(path, _HOLDER), "rb") as file:
            return file.read(_HOLDER_LIMIT_BYTES)
    except OSError:
        return None


def _holder(path: str) -> dict[str, object]:
    try:
        value = json.loads(_holder_text(path) or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _token_in(path: str) -> object:
    return _holder(path).get("token")


def _who_holds(path: str) -> str:
    holder = _holder(path)
    name = os.path.basename(path)
    if "pid" not in holder:
        return f"{name} is held by another writer"
    if _holder_died(path):
        return f"{name} is held by a git child of process {holder['pid']}, which ended"
    return f"{name} is held by process {holder['pid']} on {holder.get('host')}"


def _holder_died(path: str) -> bool:
    """Whether the holder ran here and is gone; in another pid namespace its number says nothing."""
    holder = _holder(path)
    pid, boot, namespace = holder.get("pid"), _boot_id(), _pid_namespace()
    if not isinstance(pid, int) or pid <= 0 or boot is None or namespace is None:
        return False
    if holder.get("boot") != boot or holder.get("pidNamespace") != namespace:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    started = _start_time(pid)
    return started is not None and started != holder.get("started")


def _start_time(pid: int) -> str | None:
    """When a process started, in the kernel's ticks; `ended` for one not yet reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return "ended" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


def _boot_id() -> str | None:
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().decode("ascii").strip()
    except OSError:
        return None


def _pid_namespace() -> str | None:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


@contextmanager
def _one_at_a_time(folder: str) -> Iterator[None]:
    """Let one process at a time judge and move a stale lock; best effort where flock is missing."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        _flock_quietly(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _flock_quietly(descriptor: int, how: int) -> bool:
    """False when somebody else has it and `how` says not to wait."""
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    except OSError:
        return True  # Some network file systems have none; the other looks still guard.
    return True


def _set_aside(path: str, is_right: Callable[[str], bool]) -> bool:
    """Move a lock folder away, then remove it when it is the one that was meant, else put it back.

    True when the way may be free. A process paused between its look and its move can have moved a
    successor's lock: that one goes back, and if its place was taken meanwhile its holder finds out.
    """
    name = f".{os.path.basename(path)[:40]}.{os.urandom(8).hex()}.lock"
    aside = os.path.join(_scratch(path), name)
    try:
        if os.stat(_scratch(path)).st_dev != os.stat(os.path.dirname(path)).st_dev:
            aside = os.path.join(os.path.dirname(path), name)
        os.rename(path, aside)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    if is_right(aside):
        _remove_folder(aside)
        return True
    try:
        os.rename(aside, path)
    except OSError:
        _remove_folder(aside)
    return False


def _remove_folder(path: str) -> None:
    try:
        if not os.path.isdir(path) or os.path.islink(path):
            os.unlink(path)
            return
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        return
