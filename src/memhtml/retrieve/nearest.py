"""The vector arm of head search: the live records nearest to a vector (spec `retrieval` §20).

Scans the cache in slices and holds no more of it than that. Loads numpy, so only who has a vector
to search with imports this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memhtml.retrieve.neighbours import KEPT
from memhtml.store.snapshot_fts import Match

if TYPE_CHECKING:
    import numpy.typing as npt

    from memhtml.corpus.layers import Layers
    from memhtml.embed.cache import Cache, Slice
    from memhtml.embed.port import Vector

    Floats = npt.NDArray[np.float32]
    Hashes = npt.NDArray[np.uint8]
    Prefixes = npt.NDArray[np.uint64]


class Nearest(NamedTuple):
    """One list a query, nearest first, `rank` the cosine below zero; and the cache's share.

    `coverage` is the share of live records whose article has a vector, 0 of none.
    """

    matches: list[list[Match]]
    coverage: float


def nearest(view: Layers, cache: Cache, queries: Sequence[Vector], keep: int = KEPT) -> Nearest:
    """The `keep` live records of the view nearest to each query, by cosine, then path.

    A record whose cosine is not above 0, as with a zero vector, has nothing in common with the
    query and is left out. Raises `StorageError` `vectors.read`, and sqlite3.Error when the database
    is damaged.
    """
    live = np.sort(_prefixes(np.frombuffer(view.live_hashes(), np.uint8).reshape(-1, 32)))
    wanted = _unit(np.array(queries, dtype=np.float32).reshape(len(queries), cache.dim))
    best = [_Best(keep) for _query in queries]
    cached: list[Prefixes] = [np.empty(0, np.uint64)]
    for part in cache.slices():
        prefixes = _prefixes(part.hashes)
        cached.append(prefixes)
        cosines = np.where(_held(prefixes, live), _cosines(part, wanted), 0)
        for each, column in zip(best, cosines, strict=True):
            each.offer(column, part.hashes)
    covered = int(_held(live, np.sort(np.concatenate(cached))).sum())
    matches = [_matches(view, each, keep) for each in best]
    return Nearest(matches, covered / len(live) if len(live) else 0.0)


class _Best:
    """The best so far of one query: at least `keep`, and all that are as good as the last."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._least = 0.0
        self.cosines: Floats = np.empty(0, np.float32)
        self.hashes: Hashes = np.empty((0, 32), np.uint8)

    def offer(self, cosines: Floats, hashes: Hashes) -> None:
        # False for what is no number, too.
        near = np.flatnonzero((cosines > 0) & (cosines >= self._least))
        if not len(near):
            return
        self.cosines = np.concatenate([self.cosines, cosines[near]])
        self.hashes = np.concatenate([self.hashes, hashes[near]])
        if len(self.cosines) > self._keep:
            self._least = float(np.partition(self.cosines, -self._keep)[-self._keep])
            kept = self.cosines >= self._least
            self.cosines, self.hashes = self.cosines[kept], self.hashes[kept]


def _matches(view: Layers, best: _Best, keep: int) -> list[Match]:
    """The records behind the hashes; several may share an article."""
    ranked = sorted(
        {
            (-float(cosine), path)
            for cosine, digest in zip(best.cosines, best.hashes, strict=True)
            for path in view.all_with_hash(f"sha256:{digest.tobytes().hex()}")
        }
    )
    found = []
    for rank, path in ranked[:keep]:
        row = view.record(path)
        if row is not None:
            found.append(Match(rank, path, row.claim, row.event_at, row.updated_at))
    return found


def _cosines(part: Slice, wanted: Floats) -> Floats:
    """queries × records, within -1 and 1; a vector without length is at 0 from everything."""
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", part.vectors, part.vectors))
        lengths[lengths == 0] = 1
        found: Floats = np.clip(wanted @ part.vectors.T / lengths, -1, 1)
    return found


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    found: Floats = vectors / lengths
    return found


def _prefixes(hashes: Hashes) -> Prefixes:
    """The first 8 of the 32 bytes as a number: telling articles apart takes no more.

    Two articles with one prefix would cost a miscount, never a wrong hit: hits are looked up by the
    whole hash.
    """
    found: Prefixes = np.ascontiguousarray(hashes[:, :8]).view(np.uint64).reshape(-1)
    return found


def _held(prefixes: Prefixes, known: Prefixes) -> npt.NDArray[np.bool_]:
    """Which of the prefixes are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(prefixes), dtype=np.bool_)
    at = np.minimum(np.searchsorted(known, prefixes), len(known) - 1)
    found: npt.NDArray[np.bool_] = known[at] == prefixes
    return found
