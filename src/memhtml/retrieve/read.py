"""`read`: one record in full, from the working tree (spec `cli` §10, `retrieval` §14).

Never follows a link and never leaves the tree. That a record was read is counted afterwards, as
well as that goes: the answer does not depend on it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml import log
from memhtml.errors import MemhtmlError, StorageError
from memhtml.retrieve.missing import path_not_found
from memhtml_format import paths, record, vocab
from memhtml_format.text import is_blank

if TYPE_CHECKING:
    from memhtml.index.database import Index
    from memhtml_format.record import Detail

LOCAL = ".memhtml"
LINK_WAIT_MS = 250
_CHECKED = {
    "confidence": "a number from 0 to 1",
    "importance": "a whole number from 1 to 10",
    "reprieves": "a whole number from 0",
}
"""Metas whose bad value is dropped on reading, and what they must be (spec `format` §3.2)."""


class Reader(NamedTuple):
    """The conversation that reads; blank counts as absent."""

    session_id: str | None = None
    prompt_id: str | None = None
    turn_uuid: str | None = None


def read(root: str, path: str, reader: Reader | None = None) -> dict[str, Any]:
    """The payload of `memory.detail`, and an access counted of the record that was read.

    Raises `MemhtmlError` `ERR_PATH_NOT_FOUND` and `ERR_INVALID_MEMORY` with the violations, and
    `StorageError` `read`.
    """
    path = paths.normalise(path)
    data = file_bytes(root, path)
    if data is None:
        raise path_not_found(path)
    reading = record.read_detail(path, data)
    if reading.detail is None:
        said = "; ".join(problem.text for problem in reading.problems)
        raise MemhtmlError("ERR_INVALID_MEMORY", f"{path}: {said}", suggestions=("memhtml doctor",))
    payload = _payload(reading.detail, data, reading.warnings)
    if paths.is_record_path(path):
        _count(root, path, reader or Reader())
    return payload


def file_bytes(root: str, path: str) -> bytes | None:
    """The bytes of the file at a normalised path of the working tree, None when there is none.

    A link, a folder, a pipe, git's own files and the store's local state are none. Raises
    `StorageError` `read` when it is there and cannot be read.
    """
    from memhtml.store.worktree import WorkTree

    if not _is_plain(path):
        return None
    try:
        with WorkTree(root) as files:
            return files.read(path) if files.look(path).kind == "file" else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StorageError("read", f"{path}: {error.strerror}") from error


def is_file(root: str, path: str) -> bool:
    """Whether `file_bytes` would find a file. Raises `StorageError` `read`."""
    from memhtml.store.worktree import WorkTree

    if not _is_plain(path):
        return False
    try:
        with WorkTree(root) as files:
            return files.look(path).kind == "file"
    except OSError as error:
        raise StorageError("read", f"{path}: {error.strerror}") from error


def _is_plain(path: str) -> bool:
    """Whether a path stays in the tree and names nothing of git's or the store's own."""
    if not _is_text(path):
        return False
    parts = path.split("/")
    if any(part in ("", ".", "..") or paths.segment_problem(part) for part in parts):
        return False
    return parts[0] != LOCAL and "\0" not in path


def _is_text(path: str) -> bool:
    """Whether a path can be a record's: no byte of it was other than UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _payload(detail: Detail, data: bytes, warnings: tuple[str, ...]) -> dict[str, Any]:
    found = detail.record
    raw = _raw_metas(data)
    return {
        "path": found.path,
        "title": found.title,
        "metas": _metas(detail, raw),
        "entities": list(found.entities),
        "tags": list(found.tags),
        "links": [{"rel": link.rel, "href": link.href} for link in found.links],
        "gist": found.claim,
        "body": found.body_text,
        "html": record.article_markup(data),
        "archived": found.status == "archived",
        "warnings": [*warnings, *_left_out(detail, raw)],
    }


def _raw_metas(data: bytes) -> dict[str, tuple[str, ...]]:
    """Name without prefix → the values as written."""
    view = record.head_view(data)
    pairs = view.metas if view is not None else ()
    return {name.removeprefix(vocab.PREFIX): values for name, values in pairs}


def _metas(detail: Detail, raw: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """The stated metas in the order of the contract; absent ones are absent keys."""
    found = detail.record
    metas: dict[str, Any] = {
        "memoryType": found.memory_type,
        "status": found.status,
        "createdAt": found.created_at,
        "updatedAt": found.updated_at,
        "confidence": found.confidence,
        "importance": found.importance,
        "contentHash": next(iter(raw["content-hash"]), None),
        "author": detail.author,
        "sessionId": detail.session_id,
        "promptId": detail.prompt_id,
        "turnUuid": detail.turn_uuid,
        "validFrom": detail.valid_from,
        "validUntil": detail.valid_until,
        "reprieves": detail.reprieves,
        "archivedAt": detail.archived_at,
        "supersededBy": detail.superseded_by,
        "needsRevision": detail.needs_revision if raw["needs-revision"] else None,
        "taskStatus": detail.task_status,
        "dueAt": detail.due_at,
    }
    return {name: value for name, value in metas.items() if value is not None}


def _left_out(detail: Detail, raw: dict[str, tuple[str, ...]]) -> list[str]:
    """A sentence for each meta that is stated, and not with a value that can be read."""
    values = {
        "confidence": detail.record.confidence,
        "importance": detail.record.importance,
        "reprieves": detail.reprieves,
    }
    return [
        f"memhtml-{name} is {stated!r}, not {wanted}; it is left out"
        for name, wanted in _CHECKED.items()
        for stated in raw[name]
        if values[name] is None and not is_blank(stated)
    ]


def _count(root: str, path: str, reader: Reader) -> None:
    """An access of the path and, from a known conversation, a `read` link. Fails with a warning."""
    import _sqlite3 as sqlite3

    from memhtml.index.database import open_index
    from memhtml.index.state import bump

    try:
        with open_index(root) as index:
            # A writer may keep either database locked for long; nobody who reads waits for that.
            index.conn.execute(f"PRAGMA busy_timeout = {LINK_WAIT_MS}")
            bump(index.conn, [path], "neutral", time.time(), patient=False)
            if reader.session_id is not None and not is_blank(reader.session_id):
                _link(index, path, reader)
    except (MemhtmlError, sqlite3.Error, OSError) as error:
        log.warn(f"the read of {path} was not counted: {error}")


def _link(index: Index, path: str, reader: Reader) -> None:
    """One row per place in a conversation, however often it reads there."""
    from memhtml_format.instants import second

    session, prompt, turn = (None if is_blank(each or "") else each for each in reader)
    index.conn.execute(
        "INSERT INTO memory_session_links(path, session_id, prompt_id, turn_uuid, link_kind, at)"
        " SELECT ?1, ?2, ?3, ?4, 'read', ?5 WHERE NOT EXISTS (SELECT 1 FROM memory_session_links"
        " WHERE path = ?1 AND session_id = ?2 AND prompt_id IS ?3 AND turn_uuid IS ?4"
        " AND link_kind = 'read')",
        (path, session, prompt, turn, second(time.time())),
    )
