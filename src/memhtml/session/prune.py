"""`session prune`: remove what sessions leave behind and nothing reads any more (`sessions` §12).

A log that still holds operations is a run whose writes have not landed; it is listed, never
removed. The trails of dropped operations are kept for ever. What cannot be removed is a warning,
and the rest goes on.
"""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from memhtml import log as report
from memhtml.errors import MemhtmlError, StorageError
from memhtml.session.log import Log, log_path, read_log, sessions_folder
from memhtml.store import refs
from memhtml.store.atomic import is_temporary_name
from memhtml.store.lock import SESSION_STALE_S, DirectoryLock, is_stale, session_lock
from memhtml_format.instants import millisecond

OLD_REFS = "refs/memhtml/sessions/"


class Found(NamedTuple):
    """One entry of the folder that lies past the cutoff."""

    name: str
    size_bytes: int
    mtime_s: float


class Tally:
    """What one prune did, or with `dry_run` would do."""

    def __init__(self, root: str, *, dry_run: bool, now_s: float) -> None:
        self.root = root
        self.dry_run = dry_run
        self.now_s = now_s
        self.indexes = 0
        self.index_bytes = 0
        self.refs = 0
        self.locks = 0
        self.logs = 0
        self.unlanded: list[tuple[float, dict[str, Any]]] = []
        self.busy: list[str] = []
        self.unreadable: list[str] = []

    def remove(self, name: str) -> bool:
        """Remove one file of the folder; a failure is a warning and is not counted."""
        if self.dry_run:
            return True
        try:
            os.unlink(os.path.join(sessions_folder(self.root), name))
        except FileNotFoundError:
            return False
        except OSError as error:
            report.warn(f"{name} could not be removed: {error.strerror}")
            return False
        return True


def prune(root: str, *, older_than: str, older_than_ms: int, dry_run: bool) -> dict[str, Any]:
    """The payload of `session.pruned`; `older_than` is the duration as given."""
    now_s = time.time()
    cutoff_s = now_s - older_than_ms / 1000
    tally = Tally(root, dry_run=dry_run, now_s=now_s)
    # Locks first: taking a log's lock would remove a stale one uncounted.
    for entry in sorted(past(root, cutoff_s), key=lambda found: not is_lock(found.name)):
        sort_entry(tally, entry, cutoff_s)
    prune_refs(tally, cutoff_s)
    if not dry_run:
        prune_scratch(root)
    return {
        "dryRun": dry_run,
        "cutoff": millisecond(cutoff_s),
        "olderThanMs": older_than_ms,
        "indexes": {"count": tally.indexes, "bytes": tally.index_bytes},
        "refs": {"count": tally.refs},
        "locks": {"count": tally.locks},
        "logs": {"count": tally.logs},
        "unlanded": [shown for _age, shown in sorted(tally.unlanded, key=lambda item: -item[0])],
        "busy": sorted(tally.busy),
        "unreadable": sorted(tally.unreadable),
        "olderThan": older_than,
    }


def past(root: str, cutoff_s: float) -> list[Found]:
    """The folder's entries whose mtime is earlier than the cutoff, by name."""
    found = []
    try:
        with os.scandir(sessions_folder(root)) as entries:
            for entry in entries:
                try:
                    stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.st_mtime < cutoff_s:
                    found.append(Found(entry.name, stat.st_size, stat.st_mtime))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError("session.read", f".memhtml/sessions: {error.strerror}") from error
    return sorted(found)


def is_lock(name: str) -> bool:
    """Whether this may be a lock folder."""
    return name.endswith(".lock")


def sort_entry(tally: Tally, entry: Found, cutoff_s: float) -> None:
    """Told apart by the last suffix, so an id may itself contain `.lock`."""
    name = entry.name
    if name.endswith(".dropped.jsonl"):
        return
    if name.endswith(".json"):
        prune_log(tally, name[: -len(".json")], entry, cutoff_s)
    elif is_lock(name):
        prune_lock(tally, name)
    elif name.endswith(".idx"):
        if tally.remove(name):
            tally.indexes += 1
            tally.index_bytes += entry.size_bytes
    elif is_temporary_name(name):
        tally.remove(name)


def prune_log(tally: Tally, session_id: str, entry: Found, cutoff_s: float) -> None:
    """Remove an empty log under its lock; list any other by what it is."""
    lock_folder = os.path.join(sessions_folder(tally.root), f"{session_id}.lock")
    if os.path.isdir(lock_folder) and not is_stale(lock_folder, SESSION_STALE_S):
        tally.busy.append(session_id)
        return
    log = decoded(tally, session_id)
    if log is None:
        return
    if log.ops or log.pending is not None:
        age_ms = round((tally.now_s - entry.mtime_s) * 1000)
        shown = {"id": log.id, "ops": len(log.ops), "pending": log.pending, "ageMs": age_ms}
        tally.unlanded.append((age_ms, shown))
        return
    if tally.dry_run:
        tally.logs += 1
        return
    try:
        with session_lock(tally.root, session_id):
            remove_empty(tally, session_id, cutoff_s)
    except FileNotFoundError:
        return  # The whole folder went away.
    except StorageError as error:
        if error.reason == "session.locked":
            tally.busy.append(session_id)
        else:
            report.warn(f"the log of {session_id} could not be removed: {error}")


def decoded(tally: Tally, session_id: str) -> Log | None:
    """The log, or None after listing it as unreadable."""
    try:
        return read_log(tally.root, session_id)
    except StorageError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            tally.unreadable.append(session_id)
        return None


def remove_empty(tally: Tally, session_id: str, cutoff_s: float) -> None:
    """Look again under the lock: a put may have come, and a touched log is young again."""
    log = decoded(tally, session_id)
    if log is None or log.ops or log.pending is not None:
        return
    try:
        if os.stat(log_path(tally.root, session_id)).st_mtime >= cutoff_s:
            return
    except FileNotFoundError:
        return
    if tally.remove(f"{session_id}.json"):
        tally.logs += 1


def prune_lock(tally: Tally, name: str) -> None:
    """A lock folder that is also stale: a killed writer left it. A file locked an old index."""
    folder = os.path.join(sessions_folder(tally.root), name)
    if not os.path.isdir(folder):
        if name.endswith(".idx.lock"):
            tally.remove(name)
        return
    if not is_stale(folder, SESSION_STALE_S):
        return
    if tally.dry_run or DirectoryLock(folder, stale_s=SESSION_STALE_S).remove_if_stale():
        tally.locks += 1


def prune_refs(tally: Tally, cutoff_s: float) -> None:
    """Delete refs an earlier build wrote, each by compare-and-swap."""
    try:
        found = refs.list_refs(tally.root, OLD_REFS)
    except MemhtmlError as error:
        report.warn(f"refs of an earlier build were not looked for: {error}")
        return
    for name, sha, time_s in found:
        if time_s < cutoff_s and (tally.dry_run or delete_ref(tally.root, name, sha)):
            tally.refs += 1


def delete_ref(root: str, name: str, sha: str) -> bool:
    """Whether the ref is gone now because of us."""
    try:
        return refs.delete_ref_if(root, name, sha)
    except MemhtmlError as error:
        report.warn(f"{name} could not be removed: {error}")
        return False


def prune_scratch(root: str) -> None:
    """Empty the sandbox cache of what no recent run used; not counted."""
    from memhtml.execute.place import prune_cache
    from memhtml_sandbox.errors import SandboxFailed

    try:
        prune_cache(root)
    except (OSError, SandboxFailed) as error:
        report.warn(f"the sandbox cache was not pruned: {error}")
