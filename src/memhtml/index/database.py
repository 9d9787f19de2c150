"""Opens `index.db`, with `state.db` beside it, or says why not and what helps (`retrieval` §2).

`index.db` can be rebuilt, so an index writer may move a bad one aside. `state.db` cannot: nothing
here removes, moves or empties it.
"""

from __future__ import annotations

import _sqlite3 as sqlite3  # As in `sqlite`.
import os
import time
from collections.abc import Callable
from types import TracebackType

from memhtml import log
from memhtml.errors import MemhtmlError, StorageError
from memhtml.index import files, sqlite
from memhtml.index.schema import INDEX_MIGRATIONS, STATE_MIGRATIONS
from memhtml.store.snapshot_files import Guard

REBUILD = "memhtml index rebuild"
STATE_IMPORT = "memhtml state import"

ACCESS_COLUMNS = (
    "path",
    "access_count",
    "reinforcement_count",
    "outcome_score",
    "last_accessed_at",
    "last_reinforced_at",
    "updated_at",
)

_CACHE_KIB = 4096
_SAID_BY_SQLITE = (sqlite3.Error, UnicodeDecodeError)
_SIGNS_OF_DAMAGE = ("no such table", "no such column", "Could not decode to UTF-8")


class Unusable(Exception):
    """An `index.db` to be replaced; `foreign` when it is sound and another program's."""

    def __init__(self, why: str, *, foreign: bool = False) -> None:
        super().__init__(why)
        self.foreign = foreign


class Index:
    """An open index. `has_state`: `state.db` is attached as `state`. `read_only`: of a mount that
    cannot be written.

    Leaving a `with` block closes it, and turns SQLite's word of a damaged or busy file into a
    `StorageError` (spec `cli` §6.3).
    """

    __slots__ = ("_guard", "conn", "has_state", "read_only", "root")

    def __init__(
        self, root: str, conn: sqlite3.Connection, guard: Guard | None, *, read_only: bool = False
    ) -> None:
        self.root = root
        self.conn = conn
        self.has_state = False
        self.read_only = read_only
        self._guard = guard

    def close(self) -> None:
        """Close the connection and let go of the file. Twice is fine."""
        self.conn.close()
        if self._guard is not None:
            self._guard.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            failure = self.failure(error) if isinstance(error, _SAID_BY_SQLITE) else None
        finally:
            self.close()
        if failure is not None:
            raise failure from error

    def failure(self, error: Exception) -> StorageError | None:
        """What an error of a statement means for the caller; None for a bug of ours."""
        code = sqlite.code_of(error)
        if code in sqlite.BUSY:
            return StorageError("index.locked", "another process keeps it locked")
        if is_damage(error):
            return state_open("it is damaged") if self._state_is_bad() else damaged()
        if code in sqlite.UNREACHABLE:
            return StorageError("index.open", str(error))
        return None

    def _state_is_bad(self) -> bool:
        if not self.has_state:
            return False
        try:
            if self.conn.in_transaction:
                self.conn.execute("ROLLBACK")
            found = self.conn.execute("PRAGMA state.integrity_check(1)").fetchone()
        except sqlite3.Error as error:
            return sqlite.code_of(error) in sqlite.DAMAGED
        return bool(found is not None and found[0] != "ok")


def open_index(root: str, *, state: bool = True) -> Index:
    """Open the index of the store at `root`, made and brought up to date when that is needed.

    A store without one answers no rows. On a read-only mount what is there is read as it is.
    Raises `StorageError` `index.open`, `index.migrate`, `index.locked`, and with `state` also
    `state.open`, `state.migrate`, `state.locked`.
    """
    try:
        index = _open(root)
    except Unusable as error:
        raise index_open(str(error)) from error
    if state:
        try:
            _attach(index)
        except BaseException:
            index.close()
            raise
    return index


def open_writer(root: str, *, replace_damaged: bool = False) -> Index:
    """Open the index for a call that will fill it, without `state.db`.

    Another program's database is moved aside with a warning, and with `replace_damaged` a damaged
    one too. Raises what `open_index` raises.
    """
    try:
        return _open(root)
    except Unusable as error:
        if not (error.foreign or replace_damaged):
            raise index_open(str(error)) from error
        _move_aside(root, str(error), lambda: _is_unusable(root))
    try:
        return _open(root)
    except Unusable as error:
        raise index_open(str(error)) from error


def replace(root: str, why: str) -> None:
    """Move `index.db` aside with a warning; whoever opens next makes a new one.

    Raises `StorageError` `index.locked` while another process has it open, and `index.open`.
    """
    _move_aside(root, why, lambda: True)


def _move_aside(root: str, why: str, is_bad: Callable[[], bool]) -> None:
    def judged() -> bool:
        if not is_bad():
            return False
        log.warn(f".memhtml/index.db is moved aside to index.db-bad and built anew: {why}")
        return True

    try:
        moved = files.move_aside(root, judged)
    except (OSError, files.Planted) as error:
        raise StorageError("index.open", f"it cannot be moved aside: {error}") from error
    if not moved:
        raise StorageError("index.locked", "another process has it open")


def _is_unusable(root: str) -> bool:
    path = files.index_path(root)
    try:
        files.require_plain(path)
        _connected(path).close()
    except (files.Planted, Unusable):
        return True
    return False


def open_state(root: str) -> sqlite3.Connection:
    """`state.db` as the main database, for export, import and repair.

    Made when it is missing; a database of the reference is adopted with all its rows. Raises
    `StorageError` `state.open`, `state.migrate`, `state.locked`.
    """
    path = files.state_path(root)
    try:
        writable = files.make_folder(root)
        files.require_plain(path)
    except files.Planted as error:
        raise state_open(str(error)) from error
    if not writable:
        return _read_only_state(path)
    try:
        conn = sqlite.connect(path, "mode=rwc")
    except sqlite3.Error as error:
        raise _state_failure(error) from error
    try:
        sqlite.keep_log(conn, "main", "state.locked")
        if not _state_is_current(conn, "main"):
            _migrate_state(conn)
    except BaseException as error:
        conn.close()
        if isinstance(error, sqlite3.Error):
            raise _state_failure(error) from error
        raise
    return conn


def has_state_file(root: str) -> bool:
    """Whether there is a `state.db` to open."""
    return os.path.lexists(files.state_path(root))


def damaged() -> StorageError:
    """The failure on an index whose content is wrong."""
    return index_open("it is damaged")


def is_damage(error: BaseException | None) -> bool:
    """Whether SQLite's error says that a file's content is wrong.

    Our statements are fixed, so a table or a column that is missing was lost; and every text was
    UTF-8 when it was written.
    """
    if isinstance(error, (UnicodeDecodeError, sqlite.Damaged, Unusable)):
        return True  # Of a message that quotes what is no text any more.
    if not isinstance(error, sqlite3.Error):
        return False
    return sqlite.code_of(error) in sqlite.DAMAGED or str(error).startswith(_SIGNS_OF_DAMAGE)


def index_open(why: str) -> StorageError:
    """`index.open` with the command that builds a new one."""
    return StorageError("index.open", f".memhtml/index.db: {why}", suggestions=(REBUILD,))


def state_open(why: str) -> StorageError:
    """`state.open` with the one command that moves the file aside and brings rows back."""
    return StorageError(
        "state.open",
        f".memhtml/state.db: {why}; `memhtml state import` moves it aside and brings back what was"
        " exported",
        suggestions=(STATE_IMPORT,),
    )


def _open(root: str) -> Index:
    """Raises `Unusable` and `StorageError`."""
    path = files.index_path(root)
    try:
        writable = files.make_folder(root)
        guard = _guard(root) if writable else None
        try:
            files.require_plain(path)
            conn = _connected(path) if writable else _read_only(path)
        except BaseException:
            if guard is not None:
                guard.close()
            raise
    except files.Planted as error:
        raise Unusable(str(error)) from error
    return Index(root, conn, guard, read_only=not writable)


def _guard(root: str) -> Guard:
    try:
        guard = files.hold(root, files.OPEN_LOCK, exclusive=False, wait_s=files.OPEN_WAIT_S)
    except OSError as error:
        raise StorageError("index.open", str(error.strerror)) from error
    if guard is None:
        raise StorageError("index.locked", "another process replaces it")
    return guard


def _connected(path: str) -> sqlite3.Connection:
    try:
        conn = sqlite.connect(path, "mode=rwc")
    except sqlite3.Error as error:
        raise StorageError("index.open", str(error)) from error
    try:
        _prepare(conn, writable=True)
    except BaseException as error:
        conn.close()
        if isinstance(error, _SAID_BY_SQLITE):
            raise _classified(error) from error
        raise
    return conn


def _read_only(path: str) -> sqlite3.Connection:
    """What is there, as it is; where there is none, an empty index in memory."""
    if not os.path.lexists(path):
        conn = sqlite3.connect(":memory:", isolation_level=None)
        _prepare(conn, writable=True)
        return conn
    # The log cannot be read where its shared memory cannot be made; then the file alone is.
    for options in ("mode=ro", "immutable=1"):
        conn = sqlite.connect(path, options)
        try:
            _prepare(conn, writable=False)
        except BaseException as error:
            conn.close()
            if not isinstance(error, _SAID_BY_SQLITE):
                raise
            if sqlite.code_of(error) not in sqlite.UNREACHABLE or options == "immutable=1":
                raise _classified(error) from error
        else:
            return conn
    raise AssertionError("unreachable")


def _prepare(conn: sqlite3.Connection, *, writable: bool) -> None:
    conn.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    names = sqlite.applied(conn)
    if names is None and conn.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise Unusable("it belongs to another program", foreign=True)
    if not (names or set()) <= {name for name, _statements in INDEX_MIGRATIONS}:
        raise Unusable("it belongs to another program or a newer release", foreign=True)
    if writable:  # Not before: of another program's file no byte changes.
        sqlite.keep_log(conn, "main", "index.locked")
    if not _is_current(names, INDEX_MIGRATIONS):
        if not writable:
            raise StorageError("index.migrate", "an older index on a mount that is read-only")
        try:
            sqlite.migrate(conn, INDEX_MIGRATIONS, time.time(), "index.locked")
        except sqlite3.Error as error:
            if sqlite.code_of(error) in sqlite.DAMAGED:
                raise
            raise StorageError("index.migrate", str(error), suggestions=(REBUILD,)) from error
    sqlite.complete_functions(conn)


def _is_current(names: set[str] | None, migrations: sqlite.Migrations) -> bool:
    return names is not None and all(name in names for name, _statements in migrations)


def _state_is_current(conn: sqlite3.Connection, schema: str) -> bool:
    """Whether the tables are there with our columns; another program gives them the same names."""
    if not _is_current(sqlite.applied(conn, schema), STATE_MIGRATIONS):
        return False
    try:
        conn.execute(f"SELECT {', '.join(ACCESS_COLUMNS)} FROM {schema}.access LIMIT 0")
    except sqlite3.OperationalError as error:
        if sqlite.code_of(error) != sqlite3.SQLITE_ERROR:
            raise
        return False
    return True


def _classified(error: Exception) -> Exception:
    code = sqlite.code_of(error)
    if code in sqlite.BUSY:
        return StorageError("index.locked", "another process keeps it locked")
    if code in sqlite.UNREACHABLE:
        return StorageError("index.open", str(error))
    return Unusable("it is damaged")


def _attach(index: Index) -> None:
    """Attach `state.db`; where it is missing on a read-only mount the index goes without."""
    root, conn = index.root, index.conn
    path = files.state_path(root)
    if index.read_only:
        index.has_state = os.path.lexists(path) and _attach_read_only(conn, path)
        return
    try:
        files.require_plain(path)
        if not os.path.lexists(path):
            open_state(root).close()
        conn.execute("ATTACH ? AS state", (sqlite.uri(path, "mode=rw"),))
        if not _state_is_current(conn, "state"):
            conn.execute("DETACH state")
            open_state(root).close()
            conn.execute("ATTACH ? AS state", (sqlite.uri(path, "mode=rw"),))
        sqlite.keep_log(conn, "state", "state.locked")
    except files.Planted as error:
        raise state_open(str(error)) from error
    except sqlite3.Error as error:
        raise _state_failure(error) from error
    index.has_state = True


def _attach_read_only(conn: sqlite3.Connection, path: str) -> bool:
    for options in ("mode=ro", "immutable=1"):
        try:
            files.require_plain(path)
            conn.execute("ATTACH ? AS state", (sqlite.uri(path, options),))
            names = conn.execute("SELECT name FROM state.sqlite_master").fetchall()
        except files.Planted as error:
            raise state_open(str(error)) from error
        except sqlite3.Error as error:
            if sqlite.code_of(error) not in sqlite.UNREACHABLE:
                raise _state_failure(error) from error
            if any(row[1] == "state" for row in conn.execute("PRAGMA database_list")):
                conn.execute("DETACH state")
            continue
        if ("access",) in names:
            return True
        conn.execute("DETACH state")
        return False
    return False


def _read_only_state(path: str) -> sqlite3.Connection:
    """The rows of a store that cannot be written, or none."""
    if not os.path.lexists(path):
        conn = sqlite3.connect(":memory:", isolation_level=None)
        _migrate_state(conn)
        return conn
    for options in ("mode=ro", "immutable=1"):
        conn = sqlite.connect(path, options)
        try:
            conn.execute("SELECT 1 FROM sqlite_master").fetchone()
        except _SAID_BY_SQLITE as error:
            conn.close()
            if sqlite.code_of(error) not in sqlite.UNREACHABLE:
                raise _state_failure(error) from error
        else:
            return conn
    raise StorageError("state.open", ".memhtml/state.db: it cannot be read on this mount")


def _migrate_state(conn: sqlite3.Connection) -> None:
    """Our tables, and our columns in tables that another program made; no row is touched."""
    try:
        sqlite.migrate(conn, STATE_MIGRATIONS, time.time(), "state.locked")
        with sqlite.writing(conn, "state.locked"):
            _add_missing_columns(conn)
        if not _state_is_current(conn, "main"):
            raise StorageError("state.migrate", "its table access is not one of ours")
    except sqlite3.Error as error:
        if sqlite.code_of(error) in sqlite.DAMAGED | sqlite.UNREACHABLE:
            raise
        raise StorageError("state.migrate", str(error)) from error


def _add_missing_columns(conn: sqlite3.Connection) -> None:
    model = sqlite3.connect(":memory:")
    try:
        for _name, statements in STATE_MIGRATIONS:
            for statement in statements:
                model.execute(statement)
        wanted = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for (table,) in model.execute(wanted).fetchall():
            have = {row[1] for row in conn.execute(f"PRAGMA table_info({table})")}
            for _cid, name, kind, must, default, _key in model.execute(
                f"PRAGMA table_info({table})"
            ).fetchall():
                if name in have:
                    continue
                rule = f" NOT NULL DEFAULT {default}" if must and default is not None else ""
                conn.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}{rule}")
    finally:
        model.close()


def _state_failure(error: Exception) -> MemhtmlError:
    if sqlite.code_of(error) in sqlite.BUSY:
        return StorageError("state.locked", "another process keeps it locked")
    if is_damage(error):
        return state_open("it is damaged")
    return StorageError("state.open", str(error))
