"""The `head` commands: one commit through the head database (spec `cli` §11)."""

from __future__ import annotations

from typing import NamedTuple

from memhtml.cli.call import Answer, Call
from memhtml.errors import MemhtmlError, StorageError

DETACHED = "HEAD"
"""The name of the database, in place of a branch, when none is checked out."""


class _At(NamedTuple):
    """The version HEAD stands for."""

    root: str
    ref: str
    sha: str


def _head(root: str) -> _At:
    """Raises `MemhtmlError` `ERR_INVALID_MEMORY` in a repository without a commit."""
    from memhtml.store import refs

    sha = refs.head_commit(root)
    if sha is None:
        raise MemhtmlError(
            "ERR_INVALID_MEMORY",
            "HEAD has no commit yet, so there is no version to read",
            suggestions=("memhtml init",),
        )
    return _At(root, refs.checked_out(root) or DETACHED, sha)


def status(call: Call) -> Answer:
    """`head status`. This build has no head server, so `server` is null."""
    from memhtml.corpus.head import open_head
    from memhtml.store.repo import Repo

    at = _head(call.store())
    with open_head(at.root, at.ref, at.sha, repo=Repo(at.root)) as head:
        return Answer("head.status", {**head.report.to_json(), "server": None})


def search(call: Call) -> Answer:
    """`head search`."""
    import time

    from memhtml import config
    from memhtml.embed.choose import bound_embedder
    from memhtml.retrieve.head_search import search_head
    from memhtml.store.repo import Repo
    from memhtml_format.instants import second

    at = _head(call.store())
    data = search_head(
        *at,
        call.args[0],
        call.number("limit"),
        repo=Repo(at.root),
        embedder=bound_embedder(),
        deadline_ms=config.embed_deadline_ms(),
        now=second(time.time()),
    )
    return Answer("head.search", data)


def snapshot(call: Call) -> Answer:
    """`head snapshot`: the one command for which a head database that fails is a failure."""
    at = _head(call.store())
    return _written(at) if call.switch("write") else _read(at)


def _written(at: _At) -> Answer:
    from memhtml.store.repo import Repo
    from memhtml.store.snapshot import write_snapshot

    report = write_snapshot(at.root, at.ref, at.sha, Repo(at.root), anew=True)
    if report is None:
        # The reason is on standard error, where such failures go in every other command.
        raise StorageError("snapshot.write", f"the head database of {at.ref}")
    fields = ("sha", "path", "rows", "bytes", "ms", "pruned")
    payload = report.to_json()
    return Answer("head.snapshot", {"mode": "write", **{name: payload[name] for name in fields}})


def _read(at: _At) -> Answer:
    from memhtml.store import snapshot_open as opening

    remedy = ("memhtml head snapshot --write",)
    try:
        database = opening.connect(at.root, at.ref)
    except (opening.Unusable, opening.Unreachable) as error:
        raise StorageError(
            "snapshot.read", f"the head database of {at.ref}: {error}", suggestions=remedy
        ) from error
    database.close()
    meta = database.meta
    if meta.sha != at.sha:
        raise StorageError(
            "snapshot.sha-mismatch",
            f"the head database of {at.ref} stands at {meta.sha}, and HEAD at {at.sha}",
            suggestions=remedy,
        )
    data = {"mode": "read", "sha": meta.sha, "path": database.path, "rows": meta.records}
    return Answer("head.snapshot", {**data, "bytes": None, "ms": None, "pruned": None})


def embed(call: Call) -> Answer:
    """`head embed`, with a progress bar on a terminal."""
    from memhtml.cli.progress import Bar
    from memhtml.embed.choose import bound_embedder
    from memhtml.embed.port import ModelUnavailable
    from memhtml.retrieve.head_fill import fill
    from memhtml.store.repo import Repo

    root = call.store()
    embedder = bound_embedder()
    if embedder is None:
        raise _unavailable("no embedder is bound")
    at = _head(root)
    try:
        with Bar("embedding records") as progress:
            data = fill(root, at.ref, at.sha, repo=Repo(root), embedder=embedder, progress=progress)
    except ModelUnavailable as error:
        raise _unavailable(str(error)) from error
    return Answer("head.embedded", data)


def _unavailable(why: str) -> MemhtmlError:
    return MemhtmlError(
        "ERR_MODEL_UNAVAILABLE",
        f"{why}; MEMHTML_EMBED says which embedder is bound, and the extra `embed` of this "
        "package brings one that needs no network",
    )
