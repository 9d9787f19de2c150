"""The lower trees of commits, on disk and shared by all runs: built once, advanced, pruned.

Owns the folder of spec `sandbox` §3: `base/`, `delta/`, their markers, `cache.lock` and `tmp-*`.
A tree is immutable from the rename that names it; nothing in it is ever hard-linked elsewhere.
The warm path is a handful of system calls and walks nothing.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from memhtml_sandbox import folders
from memhtml_sandbox.errors import SandboxFailed
from memhtml_sandbox.layers import LayerSize, LayerWriter, write_changes
from memhtml_sandbox.lower import FOLDER_FLAGS, Lower, Source

LOCK_WAIT_S = 15.0
DELTA_FILES_MAX = 2_000
DELTA_SHARE = 10
"""A delta of more than one part in ten of its base calls for a new base."""
DELTAS_MAX = 64
KEEP_BASES = 4
IDLE_S = 3_600
GARBAGE_S = 3_600
_LOCK_STEP_S = 0.02
_BASES_TRIED = 4
_RENAMES_TRIED = 8


class PruneReport(NamedTuple):
    """Trees removed, by kind; `garbage` counts what unfinished builds left behind."""

    bases: int
    deltas: int
    garbage: int


class Delta(NamedTuple):
    """What a delta's marker says: its base, how much it holds, and the inode of its tree.

    The inode ties marker and tree together: two builders that work without the lock may choose
    different bases, and a tree must never be read over a base it was not made for.
    """

    base: str
    files: int
    size_bytes: int
    inode: int


class CorpusCache:
    """The lower trees under one folder, owned by the uid and gid that the sandbox maps.

    `root` is an absolute path on a file system that takes ordinary files; it is made when needed.
    Threads and processes may share it.
    """

    def __init__(self, root: str, *, uid: int, gid: int) -> None:
        self.root = root
        self.uid = uid
        self.gid = gid
        # Only root can give files away; for anybody else they are born with the right owner.
        self._give = (uid, gid) if os.geteuid() == 0 else None

    def ensure(self, source: Source, sha: str) -> Lower:
        """The layers of a commit, built or advanced when they are not there.

        Raises `SandboxFailed("exec.seed", …)` when the cache cannot be written or `source` raises
        `OSError`, `LookupError` or `ValueError`; whatever else `source` raises passes through.
        """
        _check_sha(sha)
        self._check_folders()
        found = self._find(sha)
        if found is not None:
            return found
        with _as_seed_failure(self.root):
            self._make_folders()
            with self._locked():
                found = self._find(sha)
                if found is not None:
                    return found
                self._sweep(time.time() - GARBAGE_S)
                return self._advance(source, sha) or self._build_base(source, sha)

    def maintain(self, source: Source, sha: str) -> bool:
        """Give a commit its own base when its delta has grown too large; to be called after
        answering (spec `sandbox` §3.1). Says whether it built one. Then, and when many deltas have
        piled up, it prunes as well.
        """
        _check_sha(sha)
        self._check_folders()
        delta = self._read_delta(sha)
        if delta is None or self._read_count(self._marker(sha)) is not None:
            return False
        if not _overgrown(delta.files, self._read_count(self._marker(delta.base))):
            if self._crowded():
                self.prune()
            return False
        with _as_seed_failure(self.root):
            with self._locked():
                if self._read_count(self._marker(sha)) is not None:
                    return False
                self._build_base(source, sha)
            self.prune()
        return True

    def prune(self, *, keep: int = KEEP_BASES, idle_s: int = IDLE_S) -> PruneReport:
        """Remove old trees: all but the `keep` bases used last, the newest delta of each, and
        anything used in the last `idle_s` seconds. Garbage of dead builds goes too. `keep=0,
        idle_s=0` empties it.

        Deltas are cumulative, so keeping every one on a base, as spec `sandbox` §3 has it, would
        cost the square of the commits made on it; the session that an old one served is over.
        """
        self._check_folders()
        if not os.path.isdir(self.root):
            return PruneReport(0, 0, 0)
        with _as_seed_failure(self.root), self._locked():
            before = time.time() - idle_s
            bases = self._bases_newest_first()
            deltas = self._deltas()
            kept = set(bases[:keep])
            fresh = {sha for sha in deltas if folders.modified_s(self._json(sha)) > before}
            kept.update(deltas[sha].base for sha in fresh)
            newest = {deltas[sha].base: sha for _, sha in sorted(self._marked("delta", ".json"))}
            spared = fresh | {newest[base] for base in kept & newest.keys()}
            gone_deltas = [sha for sha in deltas if sha not in spared]
            removed_deltas = sum(
                self._remove("delta", f"{sha}.json", sha, before) for sha in gone_deltas
            )
            removed_bases = sum(
                self._remove("base", f"{sha}.ok", sha, before) for sha in bases if sha not in kept
            )
            garbage = self._sweep(min(before, time.time() - GARBAGE_S))
            return PruneReport(removed_bases, removed_deltas, garbage)

    def _crowded(self) -> bool:
        return sum(1 for _ in self._marked("delta", ".json")) > DELTAS_MAX

    def _check_folders(self) -> None:
        folders.require_plain(self.root, "base", "delta")

    # Names.

    def _tree(self, kind: str, sha: str) -> str:
        return f"{self.root}/{kind}/{sha}"

    def _marker(self, sha: str) -> str:
        return f"{self.root}/base/{sha}.ok"

    def _json(self, sha: str) -> str:
        return f"{self.root}/delta/{sha}.json"

    # Looking up.

    def _find(self, sha: str) -> Lower | None:
        base = self._tree("base", sha)
        if self._use(self._marker(sha), base):
            return Lower(sha, (base,))
        delta = self._read_delta(sha)
        if delta is None:
            return None
        base, top = self._tree("base", delta.base), self._tree("delta", sha)
        if not self._use(self._marker(delta.base), base):
            return None
        if not self._use(self._json(sha), top, delta.inode):
            return None
        return Lower(sha, (base, top) if delta.files else (base,))

    def _use(self, marker: str, tree: str, inode: int | None = None) -> bool:
        """Note the use of a finished tree; False when it is not there or not ours to use."""
        try:
            os.utime(marker, follow_symlinks=False)
            found = os.lstat(tree)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return False
        if inode is not None and found.st_ino != inode:
            return False
        return stat.S_ISDIR(found.st_mode) and (found.st_uid, found.st_gid) == (self.uid, self.gid)

    def _read_delta(self, sha: str) -> Delta | None:
        data = _read_object(self._json(sha))
        base, *counts = (data.get(key) for key in ("base", "files", "bytes", "tree"))
        files, size, inode = (count if isinstance(count, int) else -1 for count in counts)
        if not isinstance(base, str) or not _is_sha(base) or min(files, size, inode) < 0:
            return None
        return Delta(base, files, size, inode)

    def _read_count(self, marker: str) -> int | None:
        files = _read_object(marker).get("files")
        return files if isinstance(files, int) else None

    def _bases_newest_first(self) -> list[str]:
        return [sha for _, sha in sorted(self._marked("base", ".ok"), reverse=True)]

    def _deltas(self) -> dict[str, Delta]:
        found = {sha: self._read_delta(sha) for _, sha in self._marked("delta", ".json")}
        # A marker that cannot be read belongs to no base, and so goes with the old ones.
        return {sha: delta or Delta("", 0, 0, 0) for sha, delta in found.items()}

    def _marked(self, kind: str, suffix: str) -> Iterator[tuple[float, str]]:
        try:
            names = os.listdir(f"{self.root}/{kind}")
        except FileNotFoundError:
            return
        for name in names:
            sha = name.removesuffix(suffix)
            if sha != name and _is_sha(sha):
                yield folders.modified_s(f"{self.root}/{kind}/{name}"), sha

    # Building.

    def _build_base(self, source: Source, sha: str) -> Lower:
        def fill(fd: int) -> LayerSize:
            writer = LayerWriter(fd, self._give)
            try:
                for path, data in source.files(sha):
                    writer.write(path, data)
            finally:
                writer.close()
            return writer.size

        built, size = self._build(fill)
        tree = self._tree("base", sha)
        if self._name(built, tree, lambda: self._use(self._marker(sha), tree)):
            self._write_json(self._marker(sha), {"files": size.files, "bytes": size.size_bytes})
        return Lower(sha, (tree,))

    def _advance(self, source: Source, sha: str) -> Lower | None:
        """A delta over one of the bases at hand; None when there is none to start from.

        The base used last is nearly always the closest; another is tried only when the delta over
        it is too large to keep, and then the smallest wins.
        """
        best: tuple[str, str, LayerSize] | None = None
        for base in self._bases_newest_first()[:_BASES_TRIED]:
            if not self._use(self._marker(base), self._tree("base", base)):
                continue
            limit = None if best is None else best[2].files - 1
            made = self._build_delta(source, base, sha, limit)
            if made is None:
                continue
            if best is not None:
                self._discard(best[1])
            best = (base, *made)
            if not _overgrown(best[2].files, self._read_count(self._marker(base))):
                break
        if best is None:
            return None
        base, built, size = best
        top = self._tree("delta", sha)
        inode = os.lstat(built).st_ino
        if not self._name(built, top, lambda: self._find(sha) is not None):
            return self._find(sha)
        marker = {"base": base, "files": size.files, "bytes": size.size_bytes, "tree": inode}
        self._write_json(self._json(sha), marker)
        layers = (self._tree("base", base), top) if size.files else (self._tree("base", base),)
        return Lower(sha, layers)

    def _build_delta(
        self, source: Source, base: str, sha: str, limit: int | None
    ) -> tuple[str, LayerSize] | None:
        """A delta in a folder still to be named; None when it cannot be had or exceeds `limit`."""
        lower = Lower(base, (self._tree("base", base),))

        def changes() -> Iterator[tuple[str, bytes | None]]:
            for count, change in enumerate(source.difference(base, sha), start=1):
                if limit is not None and count > limit:
                    raise _NoDelta
                yield change

        try:
            return self._build(lambda fd: write_changes(fd, changes(), lower, self._give))
        except (_NoDelta, LookupError):
            # The base's commit may be gone from the store; another base or a full build will do.
            return None
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EOPNOTSUPP):
                # This file system takes no whiteouts: every commit needs a base of its own.
                return None
            raise

    def _build(self, fill: Callable[[int], LayerSize]) -> tuple[str, LayerSize]:
        """Fill a new folder that nobody else can enter, then give it its owner and mode."""
        path = f"{self.root}/{_spare_name()}"
        os.mkdir(path, 0o700)
        try:
            fd = os.open(path, FOLDER_FLAGS)
            try:
                # A setgid parent would hand its group to everything below; clearing the bit and
                # the group here, before anything is inside, settles it for the whole tree.
                os.fchown(fd, -1, self.gid)
                os.fchmod(fd, 0o700)
                size = fill(fd)
                os.fchown(fd, self.uid, self.gid)
                os.fchmod(fd, 0o755)
                _check_owner(fd, self.uid, self.gid)
            finally:
                os.close(fd)
        except BaseException:
            self._discard(path)
            raise
        return path, size

    def _name(self, built: str, tree: str, finished: Callable[[], bool]) -> bool:
        """Rename a new tree into place; False when somebody else finished the same one first.

        A tree that never got its marker, or has another owner, is moved aside and left to become
        garbage, since somebody may still have it mounted.
        """
        for _ in range(_RENAMES_TRIED):
            try:
                os.rename(built, tree)
                return True
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    self._discard(built)
                    raise
            if finished():
                break
            aside = f"{self.root}/{_spare_name()}"
            with suppress(FileNotFoundError):
                os.rename(tree, aside)
                os.utime(aside, follow_symlinks=False)
        self._discard(built)
        return False

    def _make_folders(self) -> None:
        for path in (self.root, f"{self.root}/base", f"{self.root}/delta"):
            os.makedirs(path, 0o755, exist_ok=True)

    def _write_json(self, path: str, value: dict[str, object]) -> None:
        aside = f"{self.root}/{_spare_name()}"
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, json.dumps(value).encode())
        finally:
            os.close(fd)
        os.rename(aside, path)

    # Removing.

    def _discard(self, path: str) -> None:
        with folders.opened(self.root) as top:
            folders.remove(top, os.path.basename(path))

    def _remove(self, kind: str, marker: str, tree: str, before: float) -> int:
        """Remove a tree unless its marker was touched meanwhile; 1 when it is gone.

        The marker goes first and is looked at once it can no longer be touched: a run that noted
        its use before that is seen, one that comes later finds no marker and builds.
        """
        aside = _spare_name()
        with folders.opened(self.root) as top, folders.opened(self.root, kind) as folder:
            try:
                os.rename(marker, aside, src_dir_fd=folder, dst_dir_fd=top)
            except FileNotFoundError:
                return 0
            if folders.modified_s(aside, top) > before:
                os.rename(aside, marker, src_dir_fd=top, dst_dir_fd=folder)
                return 0
            folders.remove(top, aside)
            folders.remove(folder, tree)
        return 1

    def _sweep(self, before: float) -> int:
        """Remove what dead builds left; `before` is the age in epoch seconds that makes garbage."""
        swept = 0
        with folders.opened(self.root) as top:
            for name in os.listdir(top):
                if name.startswith("tmp-") and folders.modified_s(name, top) < before:
                    folders.remove(top, name)
                    swept += 1
        return swept

    # The lock.

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold `cache.lock` so that only one builder works; after 15 s go on without it."""
        import fcntl

        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(f"{self.root}/cache.lock", flags, 0o644)
        try:
            deadline = time.monotonic() + LOCK_WAIT_S
            while time.monotonic() < deadline:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(_LOCK_STEP_S)
            yield
        finally:
            os.close(fd)


class _NoDelta(Exception):
    """A delta grew past the best one so far."""


@contextmanager
def _as_seed_failure(root: str) -> Iterator[None]:
    """Turn what the disk refuses into the one failure of seeding."""
    try:
        yield
    except PermissionError as error:
        raise SandboxFailed(
            "exec.seed",
            f"the corpus cache {root} may not be written by this user ({error.strerror}); give it"
            " to this user, or set MEMHTML_SANDBOX_CACHE to another folder",
        ) from error
    except (OSError, ValueError, LookupError) as error:
        reason = f"the corpus cache {root} cannot be filled: {error}"
        if isinstance(error, OSError):
            reason = f"the corpus cache {root} cannot be filled: {error.strerror or error}"
            if error.errno == errno.EROFS:
                reason += "; set MEMHTML_SANDBOX_CACHE to a folder that can be written"
        raise SandboxFailed("exec.seed", reason) from error


def _overgrown(delta_files: int, base_files: int | None) -> bool:
    return (
        delta_files > DELTA_FILES_MAX
        or base_files is None
        or delta_files * DELTA_SHARE > base_files
    )


def _is_sha(text: str) -> bool:
    return len(text) in (40, 64) and all(c in "0123456789abcdef" for c in text)


def _check_sha(sha: str) -> None:
    if not _is_sha(sha):
        raise ValueError(f"not a commit id: {sha!r}")


def _check_owner(fd: int, uid: int, gid: int) -> None:
    found = os.fstat(fd)
    if (found.st_uid, found.st_gid) != (uid, gid):
        raise PermissionError(
            errno.EPERM, f"a new tree belongs to {found.st_uid}:{found.st_gid}, not {uid}:{gid}"
        )


def _spare_name() -> str:
    return f"tmp-{os.getpid()}-{os.urandom(6).hex()}"


def _read_object(path: str) -> dict[str, object]:
    """A marker's content; empty when it is not there or not an object."""
    value = folders.read_note(path)
    return value if isinstance(value, dict) else {}
