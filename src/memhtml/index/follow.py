"""Keeps `index.db` where git is: `update`, `rebuild`, and the pass after a door's commit.

Spec `retrieval` §4. One writer at a time, by a file lock that ends with its process. Whatever is
cut short is found unfinished by the next one, which then compares instead of trusting.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `sqlite`.
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from memhtml import log
from memhtml.embed.port import ModelUnavailable, may_be_space, space
from memhtml.errors import MemhtmlError, StorageError
from memhtml.index import bulk, changes, database, files, sqlite, vectors
from memhtml.index.bulk import Built, Space
from memhtml.index.changes import Plan
from memhtml.index.database import Index
from memhtml.index.state import IndexState, move_access, read_state
from memhtml.index.writer import Writer
from memhtml.store import refs
from memhtml.store.worktree import WorkTree
from memhtml_format.instants import second

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder
    from memhtml.store.repo import Repo
    from memhtml_format.record import Detail

T = TypeVar("T")
Statement: TypeAlias = tuple[str, tuple[str, ...]]

WRITER_WAIT_S = 25.0
DOOR_WAIT_S = 5.0
"""How long a command, and a write that has landed, wait for another writer of the index."""
BATCH_STEPS = 500

_MANY_STEPS = 4_000
_LONG_CACHE_KIB = 16_384
_LONG_LOG_PAGES = 16_000
_ROUNDS = 8
_EMBED = "memhtml index rebuild --embed"
_FILL = "memhtml index embed"


class UpdateReport(NamedTuple):
    """What `index update` did (spec `cli` §11); `skipped` are paths with their reasons."""

    head_sha: str | None
    unchanged: bool
    added: int
    modified: int
    removed: int
    renamed: int
    dirty: int
    embeddings_written: int
    skipped: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """The payload of `index.report`."""
        return {
            "mode": "update",
            "headSha": self.head_sha,
            "unchanged": self.unchanged,
            "added": self.added,
            "modified": self.modified,
            "removed": self.removed,
            "renamed": self.renamed,
            "dirty": self.dirty,
            "embeddingsWritten": self.embeddings_written,
            "skipped": _skipped_json(self.skipped),
        }


class RebuildReport(NamedTuple):
    """What `index rebuild` did (spec `cli` §11)."""

    head_sha: str | None
    files_indexed: int
    chunks_indexed: int
    edges_indexed: int
    embeddings_written: int
    embeddings_preserved: int
    skipped: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """The payload of `index.report`."""
        return {
            "mode": "rebuild",
            "headSha": self.head_sha,
            "filesIndexed": self.files_indexed,
            "chunksIndexed": self.chunks_indexed,
            "edgesIndexed": self.edges_indexed,
            "embeddingsWritten": self.embeddings_written,
            "embeddingsPreserved": self.embeddings_preserved,
            "skipped": _skipped_json(self.skipped),
        }


def update(
    root: str,
    *,
    repo: Repo,
    embedder: Embedder | None,
    dirty: bool = True,
    embed: bool = True,
    progress: vectors.Progress | None = None,
) -> UpdateReport:
    """Bring the index to HEAD and, with `dirty`, to the working tree (§4.2).

    An index that was never filled is built. Raises `MemhtmlError` `ERR_INDEX_STALE`,
    `ERR_EMBED_MODEL_MISMATCH`, `ERR_GIT`, and what `open_index` raises.
    """
    with _only_writer(root, WRITER_WAIT_S), database.open_writer(root) as index:
        done = Pass(index, repo, embedder)
        done.run(dirty=dirty)
    written = _embed(root, embedder if embed else None, done.to_embed, progress)
    counts = done.counts
    return UpdateReport(
        done.head,
        not (sum(counts.values()) or done.dirty or done.restored),
        counts["added"],
        counts["modified"],
        counts["removed"],
        counts["renamed"],
        done.dirty,
        written,
        tuple(sorted(done.skipped.items())),
    )


def bring_forward(
    root: str, repo: Repo, embedder: Embedder | None, known: Mapping[str, Detail] | None = None
) -> None:
    """Take the commits since the last pass into the index; the working tree is not looked at.

    For a write that has landed, so nothing is raised: what goes wrong is a warning, and the next
    update catches up. `known` are readings of files of the new commit, by path.
    """
    try:
        with _only_writer(root, DOOR_WAIT_S), database.open_writer(root) as index:
            done = Pass(index, repo, embedder, known=known, strict=False)
            done.run(dirty=False)
        _embed(root, embedder if done.same_space else None, done.to_embed, None)
    except Exception as error:  # The commit stands, whatever became of its rows.
        log.warn(f"the index was not brought forward, `memhtml index update` does it: {error}")


def rebuild(
    root: str,
    *,
    repo: Repo,
    embedder: Embedder | None,
    embed: bool = True,
    force: bool = False,
    progress: vectors.Progress | None = None,
) -> RebuildReport:
    """Build the index from HEAD anew (§4.1); a damaged file is moved aside first.

    Raises `MemhtmlError` `ERR_EMBED_MODEL_MISMATCH`, `ERR_REBUILD_NO_EMBED_REFUSED`, `ERR_GIT`,
    and `StorageError`.
    """
    embedding = embedder if embed else None

    def fill(index: Index) -> tuple[Built, Pass]:
        kept = _space_to_keep(index.conn, embedder, can_embed=embedding is not None, force=force)
        built = bulk.build(index.conn, repo, refs.head_commit(root), kept, time.time())
        done = Pass(index, repo, embedder)
        done.run(dirty=False)  # A commit may have landed meanwhile.
        return built, done

    with _only_writer(root, WRITER_WAIT_S):
        built, done = _with_sound_file(root, fill)
    written = _embed(root, embedding, None, progress)
    return RebuildReport(
        done.head,
        built.files,
        built.chunks,
        built.edges,
        written,
        built.preserved,
        tuple(sorted({**built.skipped, **done.skipped}.items())),
    )


class Pass:
    """One writer's way from where the index stands to HEAD, and on to the working tree.

    `head` is the commit it came to, `dirty` how many paths the working tree changes, `restored`
    how many stopped being dirty, `to_embed` the paths written, None for all. Unless `strict`, a
    foreign vector space is a warning and `same_space` False.
    """

    def __init__(
        self,
        index: Index,
        repo: Repo,
        embedder: Embedder | None,
        *,
        known: Mapping[str, Detail] | None = None,
        strict: bool = True,
    ) -> None:
        self._index = index
        self._repo = repo
        self._embedder = embedder
        self._known = known
        self._strict = strict
        self._now_s = time.time()
        self.head: str | None = None
        self.dirty = 0
        self.restored = 0
        self.same_space = True
        self.counts: Counter[str] = Counter()
        self.skipped: dict[str, str] = {}
        self.to_embed: list[str] | None = []

    def run(self, *, dirty: bool) -> None:
        """Follow the commits and, with `dirty`, the working tree."""
        conn = self._index.conn
        with WorkTree(self._index.root) as files:
            writer = Writer(conn, self._repo, files, self._now_s, self._known)
            for _ in range(_ROUNDS):
                self.head = refs.head_commit(self._index.root)
                state = read_state(conn)
                if state is None or self.head is None:
                    self._build()
                elif self._stands(state):
                    break
                else:
                    self._follow(writer, state, self.head)
                if self.head is None:
                    break
            if dirty:
                self._follow_edits(writer)
        self.counts += writer.counts
        self.skipped |= writer.skipped
        if self.to_embed is not None:
            self.to_embed += writer.projected

    def _build(self) -> None:
        """The first fill; on a branch without a commit there is nothing, and no state either."""
        conn = self._index.conn
        kept = _space_of_vectors(conn) if self._embedder is None else _space_of(self._embedder)
        built = bulk.build(conn, self._repo, self.head, kept, self._now_s)
        self.counts["added"] += built.files
        self.skipped |= built.skipped
        self.to_embed = None

    def _stands(self, state: IndexState) -> bool:
        """Whether nothing is to be done. Raises for an index that cannot be followed from."""
        if state.head_sha is None:
            raise MemhtmlError(
                "ERR_INDEX_STALE",
                "a rebuild of the index was cut short, so it says too little to go on from",
                suggestions=(database.REBUILD,),
            )
        try:
            require_space(self._embedder, state.embed_model)
        except MemhtmlError as error:
            if self._strict:
                raise
            if self.same_space:
                log.warn(f"no vectors are written: {error}")
            self.same_space = False
        return state.head_sha == self.head and not state.unfinished

    def _follow(self, writer: Writer, state: IndexState, head: str) -> None:
        conn, old = self._index.conn, state.head_sha
        assert old is not None
        known = self._repo.commit_exists(old)
        if known and not state.unfinished:
            plan = changes.difference(self._repo, old, head)
        else:
            plan = changes.mismatches(conn, self._repo, old if known else None, head)
        first, last = [_BEGUN], []
        grows = self._grows_by_far(plan.most)
        if grows:
            first += bulk.drop_unordered()
        if grows or state.unfinished:  # One that was cut short may have left them out.
            last = bulk.make_unordered()
        done = _SET_HEAD, (head, second(self._now_s))
        self._in_batches(writer, plan, writer.apply, _plain(first), [*_plain(last), done])

    def _grows_by_far(self, steps: int) -> bool:
        """Whether so many steps may double an index, in several transactions."""
        if steps < _MANY_STEPS:
            return False
        count = "SELECT count(*) FROM (SELECT 1 FROM files LIMIT ?)"
        rows = int(self._index.conn.execute(count, (steps,)).fetchone()[0])
        return rows < steps

    def _follow_edits(self, writer: Writer) -> None:
        """Steps 2 and 3 of §4.2. A path stays on the list until its row is the commit's again."""
        state = read_state(self._index.conn)
        before = state.dirty_paths if state else ()
        now = changes.dirty_paths(self._index.root)
        clean = sorted(set(before) - set(now))
        self.dirty, self.restored = len(now), len(clean)
        if not (now or clean):
            return
        restored = set(clean)

        def project(path: str) -> None:
            if path in restored and self.head is not None:
                writer.project_blob(path, changes.blob_at(self._repo, self.head, path))
            else:
                writer.project_working_copy(path)

        plan = Plan(len(now) + len(clean), iter([*now, *clean]))
        first = [(_SET_DIRTY, (_json(sorted({*before, *now})),))]
        last = [(_SET_DIRTY, (_json(now),))]
        self._in_batches(writer, plan, project, first, last)

    def _in_batches(
        self,
        writer: Writer,
        plan: Plan[T],
        act: Callable[[T], None],
        first: Sequence[Statement],
        last: Sequence[Statement],
    ) -> None:
        """Take every step, at most 500 in a transaction.

        `first` is done before anything when there are several transactions, `last` with the last
        one.
        """
        conn = self._index.conn
        several = plan.most >= BATCH_STEPS
        if several:
            # A page that many batches touch is then copied into the database once, not each time.
            conn.execute(f"PRAGMA cache_size = -{_LONG_CACHE_KIB}")
            conn.execute(f"PRAGMA wal_autocheckpoint = {_LONG_LOG_PAGES}")
            with sqlite.writing(conn):
                for statement in first:
                    conn.execute(*statement)
        steps = iter(plan.steps)
        while True:
            batch = list(islice(steps, BATCH_STEPS))
            with sqlite.writing(conn):
                for step in batch:
                    act(step)
                writer.settle()
                # Before the index says that it is done: afterwards nobody would look again.
                self._carry_accesses(writer)
                if len(batch) < BATCH_STEPS:
                    for statement in last:
                        conn.execute(*statement)
                    return

    def _carry_accesses(self, writer: Writer) -> None:
        moves, root = list(writer.moves), self._index.root
        writer.moves.clear()
        if not moves or not database.has_state_file(root):
            return
        try:
            state = database.open_state(root)
            try:
                move_access(state, moves)
            finally:
                state.close()
        except (StorageError, sqlite3.Error) as error:
            log.warn(f"the access counts of {len(moves)} moved files stay behind: {error}")


def _plain(statements: Iterable[str]) -> list[Statement]:
    return [(sql, ()) for sql in statements]


_BEGUN = "UPDATE index_state SET unfinished = 1"
_SET_HEAD = "UPDATE index_state SET head_sha = ?, updated_at = ?, unfinished = 0"
_SET_DIRTY = "UPDATE index_state SET dirty_paths = ?"


def require_space(embedder: Embedder | None, stored: str | None) -> None:
    """Refuse to mix vectors of two spaces; no embedder, or no vectors yet, is no other space.

    Raises `MemhtmlError` `ERR_EMBED_MODEL_MISMATCH`.
    """
    if embedder is None or stored is None or may_be_space(embedder, stored):
        return
    raise MemhtmlError(
        "ERR_EMBED_MODEL_MISMATCH",
        f"the index holds vectors of {stored}, and the configured model is {embedder.model_id}",
        suggestions=(_EMBED,),
    )


@contextmanager
def _only_writer(root: str, wait_s: float) -> Iterator[None]:
    """The right to fill the index. Raises `StorageError` `index.locked` and `index.open`."""
    try:
        files.make_folder(root)
        guard = files.hold(root, files.WRITE_LOCK, exclusive=True, wait_s=wait_s)
    except (OSError, files.Planted) as error:
        raise StorageError("index.open", f"it cannot be written: {error}") from error
    if guard is None:
        raise StorageError("index.locked", "another process is filling it")
    with guard:
        yield


def _with_sound_file(root: str, act: Callable[[Index], T]) -> T:
    """Run `act` on the index, and once more on a new one when the file turns out damaged.

    The whole file is looked at afterwards, by a connection that knows nothing of it: a second for
    100,000 files, and what a rebuild leaves behind can be relied on.
    """
    try:
        with database.open_writer(root, replace_damaged=True) as index:
            done = act(index)
        with database.open_writer(root) as index:
            sqlite.require_sound(index.conn)
        return done
    except StorageError as error:
        if not database.is_damage(error.__cause__):
            raise
    database.replace(root, "it is damaged")
    with database.open_writer(root) as index:
        return act(index)


def _space_to_keep(
    conn: sqlite3.Connection, embedder: Embedder | None, *, can_embed: bool, force: bool
) -> Space | None:
    """The space a rebuild records, after the refusals of §4.1.

    One that embeds takes the configured space, if the model answers; every other keeps its own.
    """
    row = conn.execute("SELECT embed_model, embed_dim FROM index_state").fetchone()
    stored = Space(*row) if row is not None and row[0] is not None else None
    has_vectors = conn.execute("SELECT 1 FROM embeddings LIMIT 1").fetchone() is not None
    if not can_embed:
        require_space(embedder, stored.name if stored else None)
        if has_vectors and not force:
            raise MemhtmlError(
                "ERR_REBUILD_NO_EMBED_REFUSED",
                "the index holds vectors and this call can write none",
                suggestions=(_EMBED, "memhtml index rebuild --no-embed --force", _FILL),
            )
        return stored
    assert embedder is not None
    if stored is not None and may_be_space(embedder, stored.name):
        return stored
    if has_vectors:
        # They are about to go: only for a model that answers.
        try:
            embedder.embed(["probe"])
        except ModelUnavailable as error:
            log.warn(str(error))
            require_space(embedder, stored.name if stored else None)
    return _space_of(embedder)


def _space_of(embedder: Embedder) -> Space | None:
    """The embedder's space, None while it cannot say how wide its vectors are."""
    try:
        return Space(space(embedder), embedder.dim)
    except ModelUnavailable as error:
        log.warn(str(error))
        return None


def _space_of_vectors(conn: sqlite3.Connection) -> Space | None:
    """The space of vectors that outlived their state row, on a branch without a commit."""
    row = conn.execute("SELECT model, dim FROM embeddings LIMIT 1").fetchone()
    return None if row is None else Space(*row)


def _embed(
    root: str,
    embedder: Embedder | None,
    paths: Sequence[str] | None,
    progress: vectors.Progress | None,
) -> int:
    """Fill in the vectors of the paths just written, None for all; others may write meanwhile."""
    if embedder is None or paths == []:
        return 0
    with database.open_index(root, state=False) as index:
        return vectors.fill(index.conn, embedder, paths, progress)


def _json(paths: Iterable[str]) -> str:
    import json

    return json.dumps(list(paths), ensure_ascii=False, separators=(",", ":"))


def _skipped_json(skipped: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"path": path, "reason": reason} for path, reason in skipped]
