"""`session rebase`: move a session's base to its ref's tip; judge nothing (spec `sessions` §8)."""

from __future__ import annotations

from typing import Any

from memhtml.session.bound import Identity, base_of
from memhtml.session.log import read_log, update


def rebase(root: str, identity: Identity) -> dict[str, Any]:
    """The payload of `session.rebased`. Errors raised: `session.locked`, `session.moved`."""
    from memhtml.corpus.head import open_head
    from memhtml.store.repo import Repo

    log = read_log(root, identity.id)
    tip = base_of(root, log.ref)
    with open_head(root, log.ref, tip, repo=Repo(root)) as head:
        loaded = head.report.to_json()
    came_from = log.base_sha
    if tip != log.base_sha:
        update(root, log.id, log.ops, lambda stored: stored._replace(base_sha=tip))
    return {
        "id": log.id,
        "ref": log.ref,
        "from": came_from,
        "baseSha": tip,
        "moved": tip != came_from,
        "ops": len(log.ops),
        "head": loaded,
    }
