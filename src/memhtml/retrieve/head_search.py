"""Head search and the neighbours of new records: both arms over one version (`retrieval` §20).

The vector arm is optional and never fails a search: its report says why it did not run. Loads numpy
only when there is an embedder and a cache to search in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.retrieve.neighbours import Hit, search_all

if TYPE_CHECKING:
    from memhtml.corpus.layers import Layers
    from memhtml.embed.port import Embedder, Vector
    from memhtml.store.repo import Repo
    from memhtml.store.snapshot_fts import Match

TEXT_CHARS = 1_800
"""How much of an article a record's vector covers, and of a query is embedded (§20.2)."""


class Searched(NamedTuple):
    """The hits of each query, and the `vector` report of §20.1 in its printed form."""

    hits: list[list[Hit]]
    vector: dict[str, Any]


def search_head(
    root: str,
    ref: str,
    sha: str,
    query: str,
    limit: int,
    *,
    repo: Repo,
    embedder: Embedder | None,
    deadline_ms: int,
    now: str,
) -> dict[str, Any]:
    """The payload of `head.search` over the version at commit `sha` of `ref`.

    A head database that turns out to be damaged is replaced and searched again. Raises what
    `open_head` raises, and `StorageError` `snapshot.read` when replacing it did not help.
    """
    import sqlite3

    from memhtml import log
    from memhtml.corpus.head import open_head
    from memhtml.errors import StorageError
    from memhtml.store import snapshot

    for again in (True, False):
        try:
            with open_head(root, ref, sha, repo=repo) as head:
                started = time.monotonic()
                found = search(
                    root, head, query, limit, embedder=embedder, deadline_ms=deadline_ms, now=now
                )
                search_ms = round((time.monotonic() - started) * 1000, 2)
            break
        except sqlite3.DatabaseError as error:
            if not again:
                raise StorageError("snapshot.read", f"the head database of {ref}") from error
            log.warn(f"the head database of {ref} is damaged: {error}")
            snapshot.discard(root, ref)
    return {
        "query": query,
        "hits": [hit.to_json() for hit in found.hits[0]],
        "vector": found.vector,
        "searchMs": search_ms,
        "head": head.report.to_json(),
    }


def search(
    root: str,
    view: Layers,
    query: str,
    limit: int,
    *,
    embedder: Embedder | None,
    deadline_ms: int,
    now: str | None = None,
) -> Searched:
    """What a query finds; its vector is waited for `deadline_ms` milliseconds, 0 without bound.

    Raises sqlite3.Error when the database is damaged.
    """

    def embed() -> list[Vector]:
        from memhtml.embed.bounded import embed_query

        assert embedder is not None
        return [embed_query(embedder, query[:TEXT_CHARS], deadline_ms)]

    near, report = _vector_arm(root, view, embedder, embed, 1)
    return Searched(search_all(view, [query], limit, near=near, now=now), report)


def search_near(
    root: str,
    view: Layers,
    queries: Sequence[str],
    texts: Sequence[str],
    limit: int,
    *,
    embedder: Embedder | None,
) -> Searched:
    """What each query finds, beside it the records nearest to an article text of its own.

    The texts are embedded as documents, all in one call without a deadline. Raises sqlite3.Error
    when the database is damaged.
    """

    def embed() -> list[Vector]:
        assert embedder is not None
        return embedder.embed([text[:TEXT_CHARS] for text in texts])

    near, report = _vector_arm(root, view, embedder, embed, len(texts))
    return Searched(search_all(view, queries, limit, near=near), report)


def _vector_arm(
    root: str,
    view: Layers,
    embedder: Embedder | None,
    embed: Callable[[], list[Vector]],
    count: int,
) -> tuple[list[list[Match]] | None, dict[str, Any]]:
    """What the arm ranked, None when it did not run, and its report."""
    if embedder is None:
        return None, unused("embedder-off")
    # A put without an embedder should not pay for these.
    from memhtml.embed import cache as vectors
    from memhtml.embed.bounded import DeadlinePassed
    from memhtml.embed.port import ModelUnavailable, checked
    from memhtml.errors import StorageError

    if not vectors.may_exist(root, embedder):
        return None, unused("no-cache")
    started = time.monotonic()
    try:
        queries = checked(embedder, embed(), count)
        embed_ms = _ms(time.monotonic() - started)
        found = vectors.open_cache(root, embedder.model_id, embedder.dim)
        if found is None:
            return None, unused("no-cache", embed_ms=embed_ms)
        with found:
            from memhtml.retrieve.nearest import nearest

            ranked = nearest(view, found, queries)
            load_ms = _ms(found.read_s)
    except DeadlinePassed as error:
        return None, unused("embed-timeout", str(error), embed_ms=_ms(time.monotonic() - started))
    except ModelUnavailable as error:
        return None, unused("embed-failed", error.reason, embed_ms=_ms(time.monotonic() - started))
    except StorageError as error:
        return None, unused("cache-unreadable", error.detail, embed_ms=embed_ms)
    return ranked.matches, {
        "used": True,
        "reason": None,
        "detail": None,
        "cached": found.count,
        "coverage": ranked.coverage,
        "loadMs": load_ms,
        "embedMs": embed_ms,
    }


def unused(
    reason: str, detail: str | None = None, *, embed_ms: int | None = None
) -> dict[str, Any]:
    """The report of an arm that did not run; what is not known is null."""
    return {
        "used": False,
        "reason": reason,
        "detail": detail,
        "cached": None,
        "coverage": None,
        "loadMs": None,
        "embedMs": embed_ms,
    }


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
