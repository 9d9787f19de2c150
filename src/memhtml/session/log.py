"""The session log on disk: its shape, its decoding, and the one way to change it.

Every write replaces the whole file under the session lock and only when the stored operations are
still the ones the caller computed from (spec `sessions` §1.2). Readers need no lock.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.errors import StorageError
from memhtml.store import refs
from memhtml.store.atomic import write_atomic
from memhtml.store.lock import DirectoryLock, session_lock

if TYPE_CHECKING:
    from memhtml_format.ops import Op

FIELDS = frozenset({"id", "baseSha", "ref", "ops"})


class Log(NamedTuple):
    """One session. `pending` is a commit that was built and may have landed."""

    id: str
    base_sha: str
    ref: str
    ops: tuple[Op, ...] = ()
    pending: str | None = None
    pending_ops: int = 0
    """How many leading `ops` the pending commit carries."""

    @property
    def scope(self) -> str:
        """What the session may write (spec `write-bar` §2.2)."""
        return scope_of(self.ref)


def scope_of(ref: str) -> str:
    """`curate` for a curation branch, else `session` (spec `write-bar` §2.2)."""
    return "curate" if ref.startswith("refs/heads/curate/") else "session"


def sessions_folder(root: str) -> str:
    """Where logs, locks and trails live."""
    return os.path.join(root, ".memhtml", "sessions")


def log_path(root: str, session_id: str) -> str:
    """The log's file."""
    return os.path.join(sessions_folder(root), f"{session_id}.json")


def encode_log(log: Log) -> bytes:
    """Two-space JSON with a final newline; a decoded log holds no lone surrogates."""
    from memhtml_format.ops import encode

    value: dict[str, Any] = {
        "id": log.id,
        "baseSha": log.base_sha,
        "ref": log.ref,
        "ops": [encode(op) for op in log.ops],
    }
    if log.pending is not None:
        value["pending"] = log.pending
        value["pendingOps"] = log.pending_ops
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _sha(value: object) -> bool:
    return isinstance(value, str) and refs.is_hex_id(value)


@lru_cache(maxsize=1)  # A commit reads the same bytes again before each write.
def decode_log(data: bytes, session_id: str) -> Log:
    """The log, or `StorageError`: `session.parse`, `session.decode`, `session.id-mismatch`."""
    try:
        text = data.decode()
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad_log("session.parse", session_id, "is not JSON") from error
    problem = _unicode_problem(text, value) or _shape_problem(value)
    if problem is not None:
        raise _bad_log("session.decode", session_id, problem)
    ops = _decode_ops(value["ops"], session_id) if value["ops"] else ()
    if value["id"] != session_id:
        raise _bad_log(
            "session.id-mismatch", session_id, f"names the session {value['id'][:128]!r}"
        )
    pending = value.get("pending")
    carried = value.get("pendingOps", len(ops)) if pending is not None else 0
    if carried > len(ops):
        raise _bad_log("session.decode", session_id, "pendingOps counts more than ops holds")
    return Log(value["id"], value["baseSha"], value["ref"], ops, pending, carried)


def _decode_ops(values: list[object], session_id: str) -> tuple[Op, ...]:
    # Not at the top: most logs that an exec reads are empty, and start-up counts.
    from memhtml_format.ops import BadOperation, decode

    try:
        return tuple(decode(item) for item in values)
    except BadOperation as error:
        raise _bad_log("session.decode", session_id, str(error)) from error


def _bad_log(reason: str, session_id: str, problem: str) -> StorageError:
    """The failure on a log that cannot be used; nothing but a new one helps."""
    return StorageError(
        reason,
        f"the log of {session_id}: {problem}",
        suggestions=(f"memhtml session start --id {session_id} --force",),
    )


def _unicode_problem(text: str, value: object) -> str | None:
    """A lone surrogate is JSON but no text: nothing that holds one could be written again."""
    if "\\ud" not in text and "\\uD" not in text:
        return None
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return "it holds half of a surrogate pair"
    return None


def _shape_problem(value: object) -> str | None:
    if not isinstance(value, dict):
        return "a log is a JSON object"
    extra = set(value) - FIELDS - {"pending", "pendingOps"}
    if extra or not set(value) >= FIELDS:
        return "it has unknown or missing fields"
    if not isinstance(value["id"], str) or not isinstance(value["ref"], str):
        return "id and ref are strings"
    if not refs.valid_ref(value["ref"]):
        return "ref is a full ref name"
    if not _sha(value["baseSha"]):
        return "baseSha is 40 lower-case hex digits"
    if not isinstance(value["ops"], list):
        return "ops is a list"
    return _pending_problem(value)


def _pending_problem(value: dict[str, Any]) -> str | None:
    if "pending" in value and not _sha(value["pending"]):
        return "pending is 40 lower-case hex digits"
    if "pendingOps" not in value:
        return None
    count = value["pendingOps"]
    if "pending" not in value or isinstance(count, bool) or not isinstance(count, int) or count < 0:
        return "pendingOps is a count beside pending"
    return None


def _read_regular(path: str) -> bytes:
    """The bytes of a regular file; a pipe or a link in its place is refused, not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def read_log(root: str, session_id: str) -> Log:
    """The stored log. Errors raised: `StorageError` of spec `sessions` §1.3."""
    try:
        data = _read_regular(log_path(root, session_id))
    except FileNotFoundError as error:
        raise StorageError(
            "session.read",
            f"no session {session_id} has started here",
            suggestions=(f"memhtml session start --id {session_id}",),
        ) from error
    except OSError as error:
        raise StorageError("session.read", f"{session_id}.json: {error.strerror}") from error
    return decode_log(data, session_id)


def make_folder(root: str) -> None:
    """Make `.memhtml/sessions/` and see that git ignores it (spec `sessions` §1)."""
    from memhtml.store.scaffold import ensure_ignored

    try:
        os.makedirs(sessions_folder(root), exist_ok=True)
    except OSError as error:
        raise StorageError("session.mkdir", f".memhtml/sessions: {error.strerror}") from error
    ensure_ignored(root)


def store_log(root: str, log: Log) -> None:
    """Replace the file. The caller holds the session lock. `StorageError` `session.write`."""
    try:
        write_atomic(log_path(root, log.id), encode_log(log))
    except OSError as error:
        raise StorageError("session.write", f"{log.id}.json: {error.strerror}") from error


def append(root: str, log: Log, ops: Sequence[Op]) -> Log:
    """Add `ops` to the stored log, the last step of put and exec; the log after it.

    `log` is the one the caller computed from. Errors raised: those of `update`; nothing is
    appended then.
    """
    return update(root, log.id, log.ops, lambda now: now._replace(ops=(*now.ops, *ops)))


def update(root: str, session_id: str, expected: Sequence[Op], change: Callable[[Log], Log]) -> Log:
    """Change the log, under its lock, when its operations are still `expected`; the new log.

    `change` gets the stored log, whose base may have moved by a rebase meanwhile. Errors raised:
    `session.locked`, `session.moved`, `session.write`, and those of `read_log`.
    """
    try:
        with session_lock(root, session_id):
            stored = read_log(root, session_id)
            if stored.ops != tuple(expected):
                raise moved(session_id)
            return _changed(root, stored, change)
    except FileNotFoundError as error:
        raise StorageError("session.read", f"no session {session_id} has started here") from error


def update_held(root: str, log: Log, change: Callable[[Log], Log], lock: DirectoryLock) -> Log:
    """Change the log under the `lock` that its commit has held since it read `log`.

    The stored operations and `pending` must still be those of `log` (spec `sessions` §1.2). Errors
    raised: `session.locked` when the lock was lost meanwhile, and those of `update`.
    """
    if not lock.still_ours():
        raise StorageError("session.locked", "the session lock was lost while the commit paused")
    stored = read_log(root, log.id)
    if (stored.ops, stored.pending) != (log.ops, log.pending):
        raise moved(log.id)
    return _changed(root, stored, change)


def moved(session_id: str) -> StorageError:
    """The failure of a writer whose log is no longer the one it read."""
    return StorageError(
        "session.moved",
        f"another call changed the session {session_id} meanwhile; nothing was written, "
        "so run the same call again",
        suggestions=(f"memhtml session status --id {session_id}",),
    )


def _changed(root: str, stored: Log, change: Callable[[Log], Log]) -> Log:
    log = change(stored)
    store_log(root, log)
    return log
