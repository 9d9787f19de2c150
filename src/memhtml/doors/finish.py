"""What follows a direct commit: the index catches up, and remembers who wrote (spec `cli` §8).

The commit stands whatever happens here: every failure is a warning, and the next pass catches up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memhtml import log

if TYPE_CHECKING:
    from memhtml.doors.provenance import SessionLink
    from memhtml.embed.port import Embedder
    from memhtml.store.repo import Repo
    from memhtml_format.record import Detail

BACKLOG_CHUNKS = 960
"""How many chunks of other commits a write embeds; more would take longer than a person waits."""

_LINK = (
    "INSERT INTO memory_session_links(path, session_id, prompt_id, turn_uuid, link_kind, at)"
    " VALUES(?, ?, ?, ?, ?, ?)"
)

_MOVE = "UPDATE memory_session_links SET path = ? WHERE path = ?"


def finish(
    root: str,
    repo: Repo | None = None,
    *,
    known: Mapping[str, Detail] | None = None,
    displaced: Mapping[str, str] | None = None,
    links: Sequence[SessionLink] = (),
    was_behind: bool = False,
) -> None:
    """Bring the index to the commit that just landed. Never raises but for a signal.

    `repo` has at hand what was written; `known` are readings that need not be made again, by path.
    `displaced` are memories whose path another one took in the same commit, old path to new: git
    sees no rename there. `links` are rows to add. `was_behind`: the call took other commits in
    before, without vectors.
    """
    from memhtml.embed.choose import bound_embedder
    from memhtml.errors import MemhtmlError
    from memhtml.index.follow import bring_forward
    from memhtml.store.repo import Repo

    try:
        embedder = bound_embedder()
    except MemhtmlError as error:
        log.warn(f"no vectors are written: {error}")
        embedder = None
    used = repo or Repo(root)
    try:
        bring_forward(root, used, embedder, known)
    finally:
        used.close()
    if displaced:
        _carry(root, displaced)
    if links:
        _remember(root, links)
    if was_behind and embedder is not None:
        _embed_backlog(root, embedder)


def _carry(root: str, displaced: Mapping[str, str]) -> None:
    """Accesses and conversations of a memory go where it went."""
    from memhtml.index import sqlite
    from memhtml.index.database import has_state_file, open_index, open_state
    from memhtml.index.state import move_access

    try:
        with open_index(root, state=False) as index, sqlite.writing(index.conn):
            index.conn.executemany(_MOVE, [(new, old) for old, new in displaced.items()])
        if not has_state_file(root):
            return
        state = open_state(root)
        try:
            move_access(state, list(displaced.items()))
        finally:
            state.close()
    except Exception as error:  # The commit stands, whatever became of its rows.
        log.warn(f"what is known of a moved memory stays behind: {error}")


def _remember(root: str, links: Sequence[SessionLink]) -> None:
    from memhtml.index import sqlite
    from memhtml.index.database import open_index

    try:
        with open_index(root, state=False) as index, sqlite.writing(index.conn):
            index.conn.executemany(_LINK, links)
    except Exception as error:  # As above.
        log.warn(f"the index does not know which conversation wrote this: {error}")


def _embed_backlog(root: str, embedder: Embedder) -> None:
    from memhtml.embed.port import may_be_space, space
    from memhtml.index import vectors
    from memhtml.index.database import open_index
    from memhtml.index.state import read_state

    try:
        with open_index(root, state=False) as index:
            state = read_state(index.conn)
            stored = None if state is None else state.embed_model
            if stored is not None and not may_be_space(embedder, stored):
                return  # The pass has said so.
            missing = vectors.missing(index.conn, space(embedder))
            if missing > BACKLOG_CHUNKS:
                log.warn(f"{missing} texts have no vector yet; `memhtml index embed` makes them")
            elif missing:
                vectors.fill(index.conn, embedder)
    except Exception as error:  # As above.
        log.warn(f"vectors are missing: {error}")
