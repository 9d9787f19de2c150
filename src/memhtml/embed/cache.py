"""The vector cache of the head path: one file a space, one vector an article (`retrieval` §20.2).

`.memhtml/vectors/<model>@<dim>.vec` is a JSON header line and then fixed records of 32 hash bytes
and `dim` little-endian float32. It only grows: readers take no lock and see whole records; writers
append under an exclusive `flock` on `lock` beside it. Deleting the folder is always safe.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.errors import StorageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from memhtml.embed.port import Embedder, Vector

VERSION = 1
HASH_BYTES = 32
SLICE_BYTES = 4 << 20
"""As fast as the 16 MiB that are allowed (§20.2), and a quarter of the memory."""
LOCK_WAIT_S = 15.0
_POLL_S = 0.02
_HEADER_BYTES = 4096
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


class Slice(NamedTuple):
    """Some records of a cache: `hashes` is n × 32 bytes, `vectors` n × dim float32.

    Both lie in one buffer that the next slice overwrites.
    """

    hashes: npt.NDArray[np.uint8]
    vectors: npt.NDArray[np.float32]


def folder(root: str) -> str:
    """Where the caches of a store lie, as an absolute path."""
    return os.path.join(os.path.abspath(root), ".memhtml", "vectors")


def cache_path(root: str, model_id: str, dim: int) -> str:
    """The cache of one space, as an absolute path."""
    return os.path.join(folder(root), f"{_safe(model_id)}@{dim}.vec")


def may_exist(root: str, embedder: Embedder) -> bool:
    """Whether there is a file that may be the embedder's cache. Asks no model and imports little.

    For a model that does not know its width yet, a cache of any width will do.
    """
    known = getattr(embedder, "known_dim", 0)
    if known == 0:
        known = embedder.dim
    if known is not None:
        return os.path.lexists(cache_path(root, embedder.model_id, known))
    start = f"{_safe(embedder.model_id)}@"
    try:
        names = os.listdir(folder(root))
    except OSError:
        return False
    return any(
        name.startswith(start) and name.endswith(".vec") and name[len(start) : -4].isdigit()
        for name in names
    )


class Cache:
    """An open cache; `count` whole records were there when it was opened. Close it when done."""

    def __init__(self, path: str, fd: int, start: int, dim: int) -> None:
        self.path = path
        self.dim = dim
        self.read_s = 0.0
        self._fd = fd
        self._start = start
        self._record_bytes = HASH_BYTES + 4 * dim
        self.count = (os.fstat(fd).st_size - start) // self._record_bytes

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._fd)

    def slices(self, first: int = 0) -> Iterator[Slice]:
        """The records from number `first` on, at most `SLICE_BYTES` at a time.

        `read_s` sums up the seconds spent reading. Raises `StorageError` `vectors.read`.
        """
        import numpy as np  # 60 ms, and only who embeds pays.

        a_slice = max(1, SLICE_BYTES // self._record_bytes)
        shape = np.dtype([("hash", "u1", (HASH_BYTES,)), ("vector", "<f4", (self.dim,))])
        buffer = np.empty(min(a_slice, max(0, self.count - first)), dtype=shape)
        for at in range(first, self.count, a_slice):
            wanted = min(a_slice, self.count - at)
            view = buffer[:wanted].view(np.uint8).data
            got = self._read(view, self._start + at * self._record_bytes) // self._record_bytes
            if got:
                yield Slice(buffer["hash"][:got], buffer["vector"][:got])
            if got < wanted:
                return  # A writer whose disk was full took its records back.

    def _read(self, view: memoryview, at: int) -> int:
        started = time.monotonic()
        done = 0
        try:
            os.lseek(self._fd, at, os.SEEK_SET)
            while done < len(view) and (got := os.readv(self._fd, [view[done:]])):
                done += got
        except OSError as error:
            raise _unreadable(self.path, str(error.strerror)) from error
        self.read_s += time.monotonic() - started
        return done


def open_cache(root: str, model_id: str, dim: int) -> Cache | None:
    """The cache of a space, None when there is none.

    Raises `StorageError` `vectors.read` for a file that is no cache of this space.
    """
    path = cache_path(root, model_id, dim)
    try:
        fd = _opened(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return Cache(path, fd, _header_end(path, fd, model_id, dim), dim)
    except BaseException:
        os.close(fd)
        raise


class Filling:
    """Appends to the cache of one space, which is made by the first vector.

    `hashes` are those that have a vector by now; what other writers add is taken in with every
    append. Raises `StorageError` `vectors.read` or `vectors.write`; nothing that was there is lost.
    """

    def __init__(self, root: str, model_id: str, dim: int) -> None:
        self.path = cache_path(root, model_id, dim)
        self.hashes: set[bytes] = set()
        self._root = root
        self._model_id = model_id
        self._dim = dim
        self._seen = 0
        cache = open_cache(root, model_id, dim)
        if cache is not None:
            with cache:
                self._take_in(cache)

    @property
    def size_bytes(self) -> int:
        """The file's size, 0 when there is none."""
        try:
            return os.stat(self.path).st_size
        except OSError:
            return 0

    def append(self, hashes: Sequence[bytes], vectors: Sequence[Vector]) -> int:
        """Store the vectors of these article hashes (32 bytes each); how many were new."""
        try:
            with _lock(self._root):
                return self._append_held(hashes, vectors)
        except OSError as error:
            raise _unwritable(self.path, str(error.strerror)) from error

    def _append_held(self, hashes: Sequence[bytes], vectors: Sequence[Vector]) -> int:
        if not os.path.lexists(self.path):
            self._create()
        fd = _opened(self.path, os.O_RDWR)
        try:
            start = _header_end(self.path, fd, self._model_id, self._dim)
            cache = Cache(self.path, fd, start, self._dim)
            self._take_in(cache)
            new = [at for at, each in enumerate(hashes) if each not in self.hashes]
            record_bytes = HASH_BYTES + 4 * self._dim
            end = start + cache.count * record_bytes
            data = _encoded([hashes[at] for at in new], [vectors[at] for at in new], self._dim)
            _write_at(fd, end, data)
            self._seen = cache.count + len(new)
            self.hashes.update(hashes[at] for at in new)
            return len(new)
        finally:
            os.close(fd)

    def _create(self) -> None:
        from memhtml.store.atomic import write_atomic

        self.hashes.clear()  # The folder was deleted under us, or never was there.
        self._seen = 0
        write_atomic(self.path, _header(self._model_id, self._dim))

    def _take_in(self, cache: Cache) -> None:
        for part in cache.slices(min(self._seen, cache.count)):
            data = part.hashes.tobytes()
            self.hashes.update(data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES))
        self._seen = cache.count


def _safe(model_id: str) -> str:
    return "".join(each if each in _PLAIN else "_" for each in model_id)


def _header(model_id: str, dim: int) -> bytes:
    import json

    fields = {"version": VERSION, "model": model_id, "dim": dim}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _header_end(path: str, fd: int, model_id: str, dim: int) -> int:
    """Where the records begin. Raises `StorageError` `vectors.read` for another header."""
    import json

    try:
        start = os.pread(fd, _HEADER_BYTES, 0)
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from error
    line, newline, _rest = start.partition(b"\n")
    try:
        found: Any = json.loads(line) if newline else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise _unreadable(path, "it does not begin as a vector cache of this version does")
    if (found.get("model"), found.get("dim")) != (model_id, dim):
        raise _unreadable(path, "it holds the vectors of another model")
    return len(line) + 1


def _opened(path: str, flags: int) -> int:
    """A descriptor of a regular file; a link is not followed and a pipe is not waited for.

    Raises FileNotFoundError, or `StorageError` `vectors.read`; opened for writing, OSError.
    """
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except NotADirectoryError as error:
        raise FileNotFoundError(error.errno, error.strerror, path) from None
    except OSError as error:
        if flags & os.O_RDWR:
            raise
        raise _unreadable(path, str(error.strerror)) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _unreadable(path, "it is no regular file")
    return fd


def _encoded(hashes: Sequence[bytes], vectors: Sequence[Vector], dim: int) -> bytes:
    import numpy as np

    rows = np.zeros(len(hashes), dtype=[("hash", "u1", (HASH_BYTES,)), ("vector", "<f4", (dim,))])
    for at, (digest, vector) in enumerate(zip(hashes, vectors, strict=True)):
        rows[at] = (np.frombuffer(digest, np.uint8), vector)
    return rows.tobytes()


def _write_at(fd: int, end: int, data: bytes) -> None:
    """Append behind the last whole record; on failure the file ends there again."""
    from memhtml.store.atomic import write_all

    if os.fstat(fd).st_size != end:
        os.ftruncate(fd, end)  # A record that a killed writer left torn.
    if not data:
        return
    try:
        os.lseek(fd, end, os.SEEK_SET)
        write_all(fd, data)
        os.fsync(fd)
    except BaseException:
        os.ftruncate(fd, end)
        raise


class _Lock:
    """A held `flock`; closing the descriptor lets go."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_error: object) -> None:
        os.close(self._fd)


def _lock(root: str) -> _Lock:
    """The writers' lock; makes the folder. Raises OSError, or `StorageError` `vectors.write`."""
    place = folder(root)
    if not os.path.isdir(place):
        from memhtml.store.scaffold import ensure_ignored

        os.makedirs(place, exist_ok=True)
        ensure_ignored(root)
    fd = os.open(
        os.path.join(place, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644
    )
    until_s = time.monotonic() + LOCK_WAIT_S
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return _Lock(fd)
            except BlockingIOError:
                if time.monotonic() > until_s:
                    raise _unwritable(place, "another process is writing there") from None
            time.sleep(_POLL_S)
    except BaseException:
        os.close(fd)
        raise


def _unreadable(path: str, why: str) -> StorageError:
    import shlex  # 2 ms, and only here.

    return StorageError("vectors.read", f"{path}: {why}", suggestions=(f"rm {shlex.quote(path)}",))


def _unwritable(path: str, why: str) -> StorageError:
    return StorageError("vectors.write", f"{path}: {why}")
