"""Waits for a query's vector no longer than a search may (spec `retrieval` §20.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder, Vector


class DeadlinePassed(Exception):
    """The vector did not come in time; `deadline_ms` is how long it was waited for."""

    def __init__(self, deadline_ms: int) -> None:
        super().__init__(f"no vector within {deadline_ms} ms")
        self.deadline_ms = deadline_ms


def embed_query(embedder: Embedder, text: str, deadline_ms: int) -> Vector:
    """The query's vector, loading the model included; a `deadline_ms` of 0 is none.

    Raises `ModelUnavailable`, or `DeadlinePassed`: the work then goes on in a thread that nobody
    waits for and that keeps no process alive.
    """
    if deadline_ms == 0:
        return embedder.embed_query(text)
    import threading  # 2 ms, and only a search with vectors pays.

    done = threading.Event()
    found: list[Vector] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(embedder.embed_query(text))
        except BaseException as error:  # It is raised again where it can be told.
            failed.append(error)
        done.set()

    threading.Thread(target=work, name="query-vector", daemon=True).start()
    if not done.wait(min(deadline_ms / 1000, threading.TIMEOUT_MAX)):
        raise DeadlinePassed(deadline_ms)
    if failed:
        raise failed[0]
    return found[0]
