"""The session log on disk: its shape, its decoding, and the one way to change it.

Every write replaces the whole file under the session lock and only when the stored operations are
still the ones the caller computed from (spec `sessions` §1.2). Readers need no lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.errors import StorageError
from memhtml.store.atomic import write_atomic
from memhtml.store.lock import DirectoryLock, session_lock

if TYPE_CHECKING:
    from memhtml_format.ops import Op

FIELDS = frozenset({"id", "baseSha", "ref", "ops"})
HEX = frozenset("0123456789abcdef")


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
        """`curate` for a curation branch, else `session` (spec `write-bar` §2.2)."""
        return "curate" if self.ref.startswith("refs/heads/curate/") else "session"


def sessions_folder(root: str) -> str:
    """Where logs, locks and trails live."""
    return os.path.join(root, ".memhtml", "sessions")


def log_path(root: str, session_id: str) -> str:
    """The log's file."""
    return os.path.join(sessions_folder(root), f"{session_id}.json")


def encode_log(log: Log) -> bytes:
    """Two-space JSON with a final newline; lone surrogates cannot occur in decoded text."""
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
    return isinstance(value, str) and len(value) == 40 and HEX.issuperset(value)


def decode_log(data: bytes, session_id: str) -> Log:
    """The log, or `StorageError`: `session.parse`, `session.decode`, `session.id-mismatch`."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StorageError("session.parse", f"the log of {session_id} is not JSON") from error
    problem = _shape_problem(value)
    if problem is not None:
        raise StorageError("session.decode", f"the log of {session_id}: {problem}")
    ops = _decode_ops(value["ops"], session_id) if value["ops"] else ()
    if value["id"] != session_id:
        raise StorageError(
            "session.id-mismatch", f"the log of {session_id} names the session {value['id']}"
        )
    pending = value.get("pending")
    carried = value.get("pendingOps", len(ops)) if pending is not None else 0
    if carried > len(ops):
        raise StorageError(
            "session.decode", f"the log of {session_id}: pendingOps counts more than ops holds"
        )
    return Log(value["id"], value["baseSha"], value["ref"], ops, pending, carried)


def _decode_ops(values: list[object], session_id: str) -> tuple[Op, ...]:
    # Not at the top: most logs that an exec reads are empty, and start-up counts.
    from memhtml_format.ops import BadOperation, decode

    try:
        return tuple(decode(item) for item in values)
    except BadOperation as error:
        raise StorageError("session.decode", f"the log of {session_id}: {error}") from error


def _shape_problem(value: object) -> str | None:
    if not isinstance(value, dict):
        return "a log is a JSON object"
    extra = set(value) - FIELDS - {"pending", "pendingOps"}
    if extra or not set(value) >= FIELDS:
        return "it has unknown or missing fields"
    if not isinstance(value["id"], str) or not isinstance(value["ref"], str):
        return "id and ref are strings"
    if not value["ref"].startswith("refs/"):
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


def read_log(root: str, session_id: str) -> Log:
    """The stored log. Errors raised: `StorageError` of spec `sessions` §1.3."""
    try:
        with open(log_path(root, session_id), "rb") as file:
            data = file.read()
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

    folder = sessions_folder(root)
    if os.path.isdir(folder):
        return
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise StorageError("session.mkdir", f".memhtml/sessions: {error.strerror}") from error
    ensure_ignored(root)


def store_log(root: str, log: Log) -> None:
    """Replace the file. The caller holds the session lock. `StorageError` `session.write`."""
    try:
        write_atomic(log_path(root, log.id), encode_log(log))
    except OSError as error:
        raise StorageError("session.write", f"{log.id}.json: {error.strerror}") from error


def update(
    root: str,
    session_id: str,
    expected: Sequence[Op],
    change: Callable[[Log], Log],
    *,
    lock: DirectoryLock | None = None,
) -> Log:
    """Change the log when its operations are still `expected`; the new log.

    `change` gets the stored log, whose base may have moved by a rebase meanwhile. Takes the session
    lock unless the caller hands in the one it holds. Errors raised: `session.locked`,
    `session.moved`, `session.write`, and those of `read_log`.
    """
    if lock is not None:
        return _update_held(root, session_id, expected, change)
    try:
        with session_lock(root, session_id):
            return _update_held(root, session_id, expected, change)
    except FileNotFoundError as error:
        raise StorageError("session.read", f"no session {session_id} has started here") from error


def _update_held(
    root: str, session_id: str, expected: Sequence[Op], change: Callable[[Log], Log]
) -> Log:
    stored = read_log(root, session_id)
    if stored.ops != tuple(expected):
        raise StorageError(
            "session.moved",
            f"another call changed the session {session_id} meanwhile; nothing was written",
            suggestions=(f"memhtml session status --id {session_id}",),
        )
    log = change(stored)
    store_log(root, log)
    return log
