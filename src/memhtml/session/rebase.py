"""`session rebase`: move a session's base to its ref's tip; judge nothing (spec `sessions` §8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memhtml.session.bound import Identity, base_of
from memhtml.session.log import Log, moved, read_log, update

if TYPE_CHECKING:
    from memhtml.store.repo import Repo

ROUNDS = 4


class BaseMoved(Exception):
    """Another call moved the base while the head was loaded."""


def rebase(root: str, identity: Identity) -> dict[str, Any]:
    """The payload of `session.rebased`. Errors raised: `session.locked`, `session.moved`."""
    from memhtml.store.repo import Repo

    repo = Repo(root)
    for _round in range(ROUNDS):
        try:
            return once(repo, identity.id)
        except BaseMoved:
            continue  # Its tip may be newer than the one found here: look at both again.
    raise moved(identity.id)


def once(repo: Repo, session_id: str) -> dict[str, Any]:
    """Look at log and ref, load the tip, write the base unless it moved meanwhile."""
    from memhtml.corpus.head import open_head

    log = read_log(repo.root, session_id)
    tip = base_of(repo.root, log.ref)
    with open_head(repo.root, log.ref, tip, repo=repo) as head:
        loaded = head.report.to_json()

    def onto_tip(stored: Log) -> Log:
        if stored.base_sha != log.base_sha:
            raise BaseMoved
        return stored._replace(base_sha=tip)

    if tip != log.base_sha:
        update(repo.root, session_id, log.ops, onto_tip)
    return {
        "id": log.id,
        "ref": log.ref,
        "from": log.base_sha,
        "baseSha": tip,
        "moved": tip != log.base_sha,
        "ops": len(log.ops),
        "head": loaded,
    }
