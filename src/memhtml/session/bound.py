"""The session a call works on, and starting one: on purpose, or for the first call of a bound run.

Spec `sessions` §11: a call is *run-bound* when its id equals MEMHTML_SESSION, however it was
spelled; only put and exec start a session, and only when the id came from the variable.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from memhtml.errors import MemhtmlError, StorageError
from memhtml.session.log import Log, make_folder, read_log, store_log
from memhtml.store import refs
from memhtml.store.lock import session_lock

MAIN = "refs/heads/main"
WAIT_S = 5.0
POLL_S = 0.025


class Identity(NamedTuple):
    """The session a call works on."""

    id: str
    run_bound: bool
    implicit: bool
    """The id came from the variable, so put and exec may start the session."""


def base_of(root: str, ref: str) -> str:
    """The commit a new or rebased session sees (spec `sessions` §3), else `ERR_INVALID_MEMORY`."""
    sha = refs.resolve(root, ref) or refs.head_commit(root)
    if sha is None and refs.is_broken(root, ref):
        raise MemhtmlError(
            "ERR_GIT", f"{ref} is broken: what it names is missing or no commit; mend it with git"
        )
    if sha is None:
        raise MemhtmlError(
            "ERR_INVALID_MEMORY",
            f"the repository has no commit, so there is no version for {ref} to see",
            suggestions=("memhtml init",),
        )
    return sha


def open_session(root: str, identity: Identity) -> tuple[Log, bool]:
    """The log, and whether this call started it. Errors raised: those of `read_log`."""
    try:
        return read_log(root, identity.id), False
    except StorageError as error:
        if error.reason != "session.read" or not identity.implicit:
            raise
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
    return _start_or_wait(root, identity.id)


def create(root: str, log: Log, *, force: bool = False) -> Log | None:
    """Write an empty log; the replaced one with `force`, if it decoded.

    Errors raised: `session.exists` without `force`, `session.locked`, `session.write`.
    """
    make_folder(root)
    with session_lock(root, log.id):
        replaced: Log | None = None
        try:
            replaced = read_log(root, log.id)
        except StorageError as error:
            missing = isinstance(error.__cause__, FileNotFoundError)
            if not missing and not force:
                raise _exists(log.id) from error
        if replaced is not None and not force:
            raise _exists(log.id)
        store_log(root, log)
        return replaced


def _exists(session_id: str) -> StorageError:
    return StorageError(
        "session.exists",
        f"the session {session_id} has a log already",
        suggestions=(
            f"memhtml session status --id {session_id}",
            f"memhtml session start --id {session_id} --force",
        ),
    )


def _start_or_wait(root: str, session_id: str) -> tuple[Log, bool]:
    """Start the run's session, or wait for the process that is starting it."""
    ref = refs.final(root, MAIN)
    log = Log(session_id, base_of(root, ref), ref)
    try:
        create(root, log)
    except StorageError as error:
        if error.reason not in ("session.exists", "session.locked"):
            raise
        return _wait_for_log(root, session_id), False
    return log, True


def _wait_for_log(root: str, session_id: str) -> Log:
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return read_log(root, session_id)
        except StorageError as error:
            if error.reason != "session.read":
                raise
            if time.monotonic() > deadline:
                raise StorageError(
                    "session.locked", f"another call holds {session_id} and has not started it"
                ) from error
        time.sleep(POLL_S)
