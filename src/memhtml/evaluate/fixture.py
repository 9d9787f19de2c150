"""The gate's throwaway store: a real index over rendered files, in a temporary folder (§19).

Needs neither git nor a store of anybody's; the folder is gone when the block is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memhtml.errors import StorageError
from memhtml.evaluate.generator import Corpus, page
from memhtml.evaluate.probes import Probe
from memhtml.index import projection, vectors
from memhtml.index.database import Index, open_index
from memhtml.index.sqlite import writing
from memhtml_format.instants import second
from memhtml_format.record import read_detail

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from memhtml.embed.port import Embedder

Files = list[tuple[str, bytes]]


def files_of(corpus: Corpus, probes: Sequence[Probe]) -> Files:
    """Every file of the store with its path: the base, the people, the archive and the twins."""
    memories = [*corpus.base, *corpus.people]
    memories += [control.memory for probe in probes for control in probe.controls]
    return [*((memory.path, page(memory)) for memory in memories), *corpus.archived]


@contextmanager
def built(corpus: Corpus, files: Files, embedder: Embedder, now_s: int) -> Iterator[Index]:
    """An open index of the files, with vectors and access rows, as of `now_s`.

    Raises `StorageError` when the temporary folder cannot hold it.
    """
    with _folder() as root, open_index(root) as index:
        with writing(index.conn):
            for path, data in files:
                detail = read_detail(path, data).detail
                assert detail is not None, path
                projection.write_detail(index.conn, detail, at=second(now_s))
        with writing(index.conn):
            index.conn.executemany(
                "INSERT INTO state.access(path, access_count, reinforcement_count, outcome_score,"
                " last_accessed_at, last_reinforced_at, updated_at) VALUES(?, ?, ?, ?, ?, ?, ?)",
                list(_access_rows(corpus)),
            )
        vectors.fill(index.conn, embedder, None, None)
        yield index


def _folder() -> TemporaryDirectory[str]:
    from tempfile import TemporaryDirectory  # 6 ms, and only this command makes one.

    try:
        return TemporaryDirectory(prefix="memhtml-eval-")
    except OSError as error:
        raise StorageError("write", f"no temporary folder: {error.strerror}") from error


def _access_rows(corpus: Corpus) -> Iterator[tuple[object, ...]]:
    for row in corpus.access:
        last = second(row.last_s)
        reinforced = last if row.reinforced else None
        yield row.path, row.reads, row.reinforced, row.outcome, last, reinforced, last
