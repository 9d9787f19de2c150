"""`head embed`: a vector for every live record of one version that has none (`retrieval` §20.2).

Every slice is stored before the next is embedded, so a run that ends early is taken up by the next.
The head is open while a slice is collected and never while a model works.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from memhtml.corpus.head import Head, open_head
from memhtml.embed.cache import HASH_BYTES, Filling
from memhtml.embed.port import checked
from memhtml.retrieve.head_search import TEXT_CHARS

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder
    from memhtml.store.repo import Repo

TEXTS_A_SLICE = 64
"""About a second of the local model: what an interrupted run may have to do again."""

Progress = Callable[[int, int], None]
"""Told how many live records are dealt with, and how many there are."""


def fill(
    root: str, ref: str, sha: str, *, repo: Repo, embedder: Embedder, progress: Progress
) -> dict[str, Any]:
    """The payload of `head.embedded` for the version at commit `sha` of `ref`.

    `records` counts live records, `reused` those whose article had a vector before, `empty` those
    without text, `embedded` the distinct articles that got one now. Raises `ModelUnavailable`, what
    was stored stays; `StorageError` `vectors.read`, `vectors.write` or `snapshot.read`.
    """
    started = time.monotonic()
    source = _Source(root, ref, sha, repo)
    loading = time.monotonic()
    filling = Filling(root, embedder.model_id, embedder.dim)
    load_s = time.monotonic() - loading
    work = _Work(embedder, filling)
    try:
        while page := source.page():
            work.take(page, lambda done: progress(done, source.total))
        work.store()
        progress(source.total, source.total)
    finally:
        source.close()
    return {
        "path": filling.path,
        "modelId": embedder.model_id,
        "dimension": embedder.dim,
        "records": work.records,
        "reused": work.reused,
        "embedded": work.embedded,
        "empty": work.empty,
        "cached": len(filling.hashes),
        "bytes": filling.size_bytes,
        "written": work.embedded > 0,
        "loadMs": _ms(load_s),
        "embedMs": _ms(work.embed_s),
        "saveMs": _ms(work.save_s),
        "ms": _ms(time.monotonic() - started),
        "head": source.report,
    }


class _Source:
    """The live records in pages; the head is opened anew for each, and closed behind it."""

    def __init__(self, root: str, ref: str, sha: str, repo: Repo) -> None:
        self._where = (root, ref, sha)
        self._repo = repo
        self._after = ""
        self._head: Head | None = self._open()
        self.report = self._head.report.to_json()
        self.total = len(self._head.live_hashes()) // HASH_BYTES

    def page(self) -> list[tuple[str, bytes, str]]:
        """(path, article hash, text) of the next records, none at the end."""
        head = self._head or self._open()
        self._head = head
        found = head.live_texts(self._after, TEXT_CHARS)
        if head.database().path is not None:
            self.close()  # One that is private keeps nobody waiting, and took long to build.
        if found:
            self._after = found[-1][0]
        return found

    def _open(self) -> Head:
        return open_head(*self._where, repo=self._repo)

    def close(self) -> None:
        """Let go of the head. Twice is fine."""
        if self._head is not None:
            self._head.close()
            self._head = None


class _Work:
    """Embeds what has no vector, `TEXTS_A_SLICE` at a time, and counts."""

    def __init__(self, embedder: Embedder, filling: Filling) -> None:
        self._embedder = embedder
        self._filling = filling
        self._held = frozenset(filling.hashes)
        self._waiting: dict[bytes, str] = {}
        self.records = self.reused = self.empty = self.embedded = 0
        self.embed_s = self.save_s = 0.0

    def take(self, page: list[tuple[str, bytes, str]], done: Callable[[int], None]) -> None:
        """Count some records and store the vectors of those that make a slice full."""
        for _path, digest, text in page:
            self.records += 1
            if digest in self._held:
                self.reused += 1
            elif not text:
                self.empty += 1
            elif digest not in self._filling.hashes:
                self._waiting[digest] = text
            if len(self._waiting) == TEXTS_A_SLICE:
                self.store()
                done(self.records)

    def store(self) -> None:
        """Embed and store what waits."""
        if not self._waiting:
            return
        hashes, texts = list(self._waiting), list(self._waiting.values())
        started = time.monotonic()
        vectors = checked(self._embedder, self._embedder.embed(texts), len(texts))
        embedded = time.monotonic()
        self.embedded += self._filling.append(hashes, vectors)
        self._waiting.clear()
        self.embed_s += embedded - started
        self.save_s += time.monotonic() - embedded


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
