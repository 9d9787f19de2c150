"""Fills `index.db` from one commit, everything anew (spec `retrieval` §4.1, steps 2 to 5).

Tables are dropped and made again without most of their indexes, which come when the rows are in: a
quarter of the time. Until the end `head_sha` is NULL, so that whoever finds a half-built index says
so.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `sqlite`.
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from memhtml.index import projection, sqlite
from memhtml.index.schema import INDEX_MIGRATIONS
from memhtml.store.repo import FILE_MODES
from memhtml_format.instants import second

if TYPE_CHECKING:
    from memhtml.store.repo import Repo
    from memhtml_format.record import Detail, Record

BATCH_ROWS = 500
PROJECTED = (
    "files_fts",
    "file_tags",
    "file_entities",
    "file_facets",
    "file_citations",
    "chunks",
    "edges",
    "duplicates",
    "files",
)
"""The tables a rebuild empties, children before what they hang on."""
NAMED_BY_READS = ("files_type", "files_archived_type", "files_updated", "files_recency")
"""Indexes that statements of the reads name, which fail without them: a store is searched while a
rebuild runs, and after one that was killed."""


UNORDERED = (
    *("files_blob", "files_frame", "chunks_id"),
    *("entities_entity", "entities_folded", "tags_tag"),
)
"""Indexes whose keys come in no order, so that every few rows touch all their pages. No statement
names them. An index that is filled to a multiple of its size does without and gets them back."""


class Space(NamedTuple):
    """A vector space and its width."""

    name: str
    dim: int


class Built(NamedTuple):
    """What a rebuild did; `skipped` gives a reason by path."""

    files: int
    chunks: int
    edges: int
    preserved: int
    skipped: dict[str, str]


def build(
    conn: sqlite3.Connection, repo: Repo, head: str | None, space: Space | None, now_s: float
) -> Built:
    """Project every indexable blob of the commit `head`, none on a branch without one.

    The caller holds the writer's lock. Vectors of `space` whose chunk is still there are kept.
    Raises `StorageError` `index.locked`, `MemhtmlError` `ERR_GIT` and sqlite3.Error.
    """
    conn.execute("PRAGMA foreign_keys = OFF")  # Every child goes and comes with its file.
    try:
        later = _emptied(conn, space)
        with _no_collection():
            skipped = _project(conn, repo, head, second(now_s)) if head else {}
        for statement in later:
            with _faults_are_damage(), sqlite.writing(conn):
                conn.execute(statement)
    finally:
        conn.execute("PRAGMA foreign_keys = ON")
    # A branch without a commit is left again, and then the vectors are wanted.
    preserved = _keep_vectors(conn, space) if head is not None else 0
    with sqlite.writing(conn):
        if head is None:
            conn.execute("DELETE FROM index_state")
        else:
            stamp = second(now_s)
            conn.execute(
                "UPDATE index_state SET head_sha = ?, rebuilt_at = ?, updated_at = ?",
                (head, stamp, stamp),
            )
    counts = (f"SELECT count(*) FROM {table}" for table in ("files", "chunks", "edges"))
    files, chunks, edges = (int(conn.execute(query).fetchone()[0]) for query in counts)
    return Built(files, chunks, edges, preserved, skipped)


def drop_unordered() -> list[str]:
    """The statements that take those indexes away."""
    return [f"DROP INDEX IF EXISTS {name}" for name in UNORDERED]


def make_unordered() -> list[str]:
    """The statements that make those of them that are not there."""
    made = [sql for _name, statements in INDEX_MIGRATIONS for sql in statements]
    wanted = tuple(f"CREATE INDEX {name} ON " for name in UNORDERED)
    found = [sql for sql in made if sql.startswith(wanted)]
    return [sql.replace("CREATE INDEX", "CREATE INDEX IF NOT EXISTS", 1) for sql in found]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Rows in waiting hold no cycles, and looking for some takes a sixth of the time."""
    import gc

    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Schema(NamedTuple):
    """Statements of the migrations: `tables` by name, `early` the indexes that reads name, `later`
    the others and then the triggers of projected tables; `kept` is what a rebuild leaves as it is,
    by name."""

    tables: dict[str, str]
    early: dict[str, str]
    later: list[str]
    kept: dict[str, str]


def _emptied(conn: sqlite3.Connection, space: Space | None) -> list[str]:
    """Step 2, in one transaction; answers the indexes and triggers that are still to be made.

    Raises `Damaged` when what stays is not as the migrations made it.
    """
    schema = _schema_of_migrations()
    with _faults_are_damage(), sqlite.writing(conn):
        conn.execute("DELETE FROM index_state")
        conn.execute(
            "INSERT INTO index_state(id, embed_model, embed_dim) VALUES(1, ?, ?)",
            (space.name, space.dim) if space else (None, None),
        )
        for table in PROJECTED:
            conn.execute(f"DROP TABLE IF EXISTS {table}")
        for table in reversed(PROJECTED):
            conn.execute(schema.tables[table])
        for name in NAMED_BY_READS:
            conn.execute(schema.early[name])
        here = dict(conn.execute("SELECT name, sql FROM sqlite_master"))
        if not schema.kept.items() <= here.items():
            raise sqlite.Damaged("the schema is not ours any more")
    return schema.later


@contextmanager
def _faults_are_damage() -> Iterator[None]:
    """The statements within are right, so a schema that they do not fit is wrong."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if sqlite.code_of(error) != sqlite3.SQLITE_ERROR:
            raise
        raise sqlite.Damaged(str(error)) from error


def _schema_of_migrations() -> _Schema:
    model = sqlite3.connect(":memory:")
    try:
        for _name, statements in INDEX_MIGRATIONS:
            for statement in statements:
                model.execute(statement)
        rows = model.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        ).fetchall()
    finally:
        model.close()
    own = [row for row in rows if row[2].startswith("files_fts_") or row[2] in PROJECTED]
    return _Schema(
        {name: sql for kind, name, _table, sql in own if kind == "table" and name in PROJECTED},
        {name: sql for _kind, name, _table, sql in own if name in NAMED_BY_READS},
        [
            sql
            for kind, name, sql in sorted((row[0], row[1], row[3]) for row in own)
            if kind != "table" and name not in NAMED_BY_READS
        ],
        {row[1]: row[3] for row in rows if row not in own},
    )


def _project(conn: sqlite3.Connection, repo: Repo, head: str, stamp: str) -> dict[str, str]:
    """Steps 1 and 3. Paths come in order, so the first of equal articles is the first read."""
    skipped: dict[str, str] = {}
    rows = projection.Rows(stamp)
    seen = _Articles(conn, rows)
    for batch in _batches(_details(repo, head, skipped)):
        with sqlite.writing(conn):
            for detail in batch:
                holder = seen.holder(detail.record)
                if holder is None:
                    rows.add(detail)
                    continue
                skipped[detail.record.path] = f"duplicate content of {holder}"
                rows.add_duplicate(detail.record)
            rows.insert(conn)
    return skipped


class _Articles:
    """Which live articles were seen, tasks apart: eight bytes of each hash, and the row it has.

    Whole hashes with their paths would be a quarter of what a large rebuild may hold.
    """

    def __init__(self, conn: sqlite3.Connection, rows: projection.Rows) -> None:
        self._conn = conn
        self._rows = rows
        self._ids: dict[int, int] = {}

    def holder(self, record: Record) -> str | None:
        """The path of a row with the same article; None for the first, whose row comes next."""
        if record.archived or record.memory_type == projection.TASK:
            return None
        key = int(record.content_hash[7:23], 16)
        number = self._ids.setdefault(key, self._rows.next_id)
        if number == self._rows.next_id:
            return None
        self._rows.insert(self._conn)
        query = "SELECT path FROM files WHERE id = ? AND content_hash = ?"
        row = self._conn.execute(query, (number, record.content_hash)).fetchone()
        return None if row is None else str(row[0])


def _details(repo: Repo, head: str, skipped: dict[str, str]) -> Iterator[Detail]:
    from memhtml_format.record import read_detail

    for path, mode, oid in repo.files(head):
        if mode not in FILE_MODES or not projection.is_indexable(path):
            continue
        found = read_detail(path, repo.data(oid))
        if found.detail is None:
            skipped[path] = "; ".join(problem.text for problem in found.problems)
        else:
            yield found.detail


def _batches(details: Iterable[Detail]) -> Iterator[list[Detail]]:
    batch: list[Detail] = []
    for detail in details:
        batch.append(detail)
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _keep_vectors(conn: sqlite3.Connection, space: Space | None) -> int:
    """Step 4: delete the vectors of other spaces and of chunks that are gone; count the rest."""
    gone = [
        row
        for row in conn.execute(
            "SELECT chunk_id FROM embeddings AS e WHERE e.model IS NOT ? OR NOT EXISTS"
            "(SELECT 1 FROM chunks AS c WHERE c.chunk_id = e.chunk_id)",
            (space.name if space else None,),
        )
    ]
    for start in range(0, len(gone), BATCH_ROWS):
        with sqlite.writing(conn):
            batch = gone[start : start + BATCH_ROWS]
            conn.executemany("DELETE FROM embeddings WHERE chunk_id = ?", batch)
    return int(conn.execute("SELECT count(*) FROM embeddings").fetchone()[0])
