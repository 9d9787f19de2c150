"""A process of its own that mounts real overlays, for tests that must not fork or mount.

Run as a script with the sandbox package's parent folder as its argument. It reads pickled requests
from standard input and answers on standard output; the folder it works in goes with its private
mount namespace. Standard library only, so that any Python 3.11 and any user can run it.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable
from typing import NamedTuple

Tree = dict[str, bytes]
Op = tuple[str, bytes, bytes]


class Request(NamedTuple):
    """Two commits, the session's layer, and what the script does; `backend` as in the sandbox."""

    backend: str
    base: Tree
    commit: Tree
    files: Tree
    gone: tuple[str, ...]
    ops: tuple[Op, ...]


class Answer(NamedTuple):
    """What was read back, and what a plain walk of the merged tree says it should be.

    `changed` maps a path to its kind, size and bytes; `seeded` is what the layers showed at first.
    """

    changed: dict[bytes, tuple[str, int, bytes]]
    vanished: frozenset[str]
    expected_changed: dict[bytes, tuple[str, int, bytes]]
    expected_vanished: frozenset[str]
    seeded: Tree


class DictSource:
    def __init__(self, trees: dict[str, Tree]) -> None:
        self.trees = trees

    def files(self, sha: str) -> list[tuple[str, bytes]]:
        return sorted(self.trees[sha].items())

    def difference(self, old: str, new: str) -> list[tuple[str, bytes | None]]:
        before, after = self.trees[old], self.trees[new]
        paths = sorted(before.keys() | after.keys())
        return [(path, after.get(path)) for path in paths if before.get(path) != after.get(path)]


class Limits(NamedTuple):
    walk_entries: int = 20_000
    walk_depth: int = 64


_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def apply(root: bytes, op: Op) -> None:
    """Do one thing to the tree; what the kernel refuses simply does not happen."""
    kind, path, other = op
    here, there = os.path.join(root, path), os.path.join(root, other)
    try:
        _ACTIONS[kind](here, there, other)
    except OSError:
        return


def _write(here: bytes, _there: bytes, data: bytes) -> None:
    os.makedirs(os.path.dirname(here), exist_ok=True)
    fd = os.open(here, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    os.write(fd, data)
    os.close(fd)


def _append(here: bytes, _there: bytes, data: bytes) -> None:
    fd = os.open(here, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
    os.write(fd, data)
    os.close(fd)


def _remove(here: bytes, _there: bytes, _data: bytes) -> None:
    if os.path.isdir(here) and not os.path.islink(here):
        for name in os.listdir(here):
            _remove(os.path.join(here, name), here, b"")
        os.rmdir(here)
    else:
        os.unlink(here)


def _turn_into_folder(here: bytes, there: bytes, data: bytes) -> None:
    _remove(here, there, data)
    os.mkdir(here)


def _turn_into_file(here: bytes, there: bytes, data: bytes) -> None:
    _remove(here, there, data)
    _write(here, there, data)


def _chmod(here: bytes, _there: bytes, _data: bytes) -> None:
    os.chmod(here, 0, follow_symlinks=True)


def _copy_over(here: bytes, there: bytes, _data: bytes) -> None:
    with open(os.open(here, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        _write(there, there, file.read(1 << 16))


_ACTIONS: dict[str, Callable[[bytes, bytes, bytes], object]] = {
    "write": _write,
    "append": _append,
    "remove": _remove,
    "mkdir": lambda here, _there, _data: os.makedirs(here),
    "folder": _turn_into_folder,
    "file": _turn_into_file,
    "rename": lambda here, there, _data: os.rename(here, there),
    "copy": _copy_over,
    "hard": lambda here, there, _data: os.link(here, there, follow_symlinks=False),
    "symlink": lambda here, _there, data: os.symlink(data, here),
    "fifo": lambda here, _there, _data: os.mkfifo(here),
    "sparse": lambda here, _there, _data: os.truncate(here, 1 << 40),
    "touch": lambda here, _there, _data: os.utime(here, follow_symlinks=False),
    "chmod": _chmod,
    "xattr": lambda here, _there, _data: os.setxattr(here, b"user.overlay.opaque", b"y"),
}


def naive(root: bytes, before: Tree) -> tuple[dict[bytes, tuple[str, int, bytes]], frozenset[str]]:
    """The change set by listing the whole merged tree and comparing every byte."""
    changed: dict[bytes, tuple[str, int, bytes]] = {}
    present: set[str] = set()
    for path, found in _walk(root):
        kind = _KINDS[stat.S_IFMT(found.st_mode)]
        if kind != "file":
            changed[path] = (kind, 0, b"")
            continue
        with open(os.path.join(root, path), "rb") as file:
            data = file.read(1 << 16)
        text = path.decode("utf-8", "replace")
        present.add(text)
        if before.get(text) != data or len(data) != found.st_size:
            changed[path] = ("file", found.st_size, data)
    return changed, frozenset(path for path in before if path not in present)


def _walk(root: bytes) -> list[tuple[bytes, os.stat_result]]:
    found: list[tuple[bytes, os.stat_result]] = []
    folders = [b""]
    while folders:
        folder = folders.pop()
        for name in os.listdir(os.path.join(root, folder)):
            path = os.path.join(folder, name)
            status = os.lstat(os.path.join(root, path))
            if stat.S_ISDIR(status.st_mode):
                _open_up(os.path.join(root, path), 0o700)
                folders.append(path)
                continue
            if stat.S_ISREG(status.st_mode):
                _open_up(os.path.join(root, path), 0o600)
            found.append((path, status))
    return found


def _open_up(path: bytes, mode: int) -> None:
    if os.stat(path).st_mode & 0o700 != mode:
        os.chmod(path, mode)


class Worker:
    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        uid, gid = os.geteuid(), os.getegid()
        self._call("unshare", 0x00020000 | (0x10000000 if uid else 0))
        if uid:
            _write_text("/proc/self/setgroups", "deny")
            _write_text("/proc/self/uid_map", f"{uid} {uid} 1")
            _write_text("/proc/self/gid_map", f"{gid} {gid} 1")
        self._mount(b"none", b"/", b"", 0x4000 | 0x80000, b"")
        self.stage = tempfile.mkdtemp()
        self.count = 0

    def _call(self, name: str, *arguments: object) -> None:
        if getattr(self.libc, name)(*arguments) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")

    def _mount(self, source: bytes, target: bytes, kind: bytes, flags: int, options: bytes) -> None:
        self._call("mount", source, target, kind, ctypes.c_ulong(flags), options)

    def handle(self, request: Request) -> Answer:
        stage = self.stage.encode()
        self._mount(b"tmpfs", stage, b"tmpfs", 0, b"mode=0755")
        try:
            return self._handle(self.stage, request)
        finally:
            self._call("umount2", stage, 2)

    def _handle(self, stage: str, request: Request) -> Answer:
        from memhtml_sandbox.cache import CorpusCache
        from memhtml_sandbox.changes import read_copy, read_overlay
        from memhtml_sandbox.layers import LayerWriter, write_session_layer
        from memhtml_sandbox.lower import FOLDER_FLAGS, Seed, SessionLayer

        source = DictSource({"a" * 40: request.base, "b" * 40: request.commit})
        cache = CorpusCache(f"{stage}/cache", uid=os.geteuid(), gid=os.getegid())
        cache.ensure(source, "a" * 40)
        lower = cache.ensure(source, "b" * 40)
        layer = SessionLayer(request.files, frozenset(request.gone))
        seeded = dict(Seed(lower, layer).files())
        for name in ("s", "u", "w", "m"):
            os.mkdir(f"{stage}/{name}")
        fd = os.open(f"{stage}/u", FOLDER_FLAGS)
        try:
            if request.backend == "copy":
                merged = f"{stage}/u"
                writer = LayerWriter(fd)
                for path, data in seeded.items():
                    writer.write(path, data)
                writer.close()
            else:
                merged = f"{stage}/m"
                layer_fd = os.open(f"{stage}/s", FOLDER_FLAGS)
                write_session_layer(layer_fd, layer, lower)
                os.close(layer_fd)
                lowers = ":".join([f"{stage}/s", *reversed(lower.layers)])
                options = f"lowerdir={lowers},upperdir={stage}/u,workdir={stage}/w,userxattr"
                self._mount(b"overlay", merged.encode(), b"overlay", 0, options.encode())
                found, gone = naive(merged.encode(), seeded)
                assert not found and not gone, ("the layers show another tree", found, gone)
            for op in request.ops:
                apply(merged.encode(), op)
            read = read_copy if request.backend == "copy" else read_overlay
            changes = read(fd, lower, layer, Limits())
            changed: dict[bytes, tuple[str, int, bytes]] = {
                path: (e.kind, e.size, e.read(1 << 16) if e.kind == "file" else b"")
                for path, e in changes.changed.items()
            }
            assert list(changed) == sorted(changed)
            changes.close()
            expected = naive(merged.encode(), seeded)
        finally:
            os.close(fd)
        return Answer(changed, changes.vanished, *expected, seeded)


def _write_text(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, text.encode())
    os.close(fd)


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    worker = Worker()
    out = sys.stdout.buffer
    pickle.dump("ready", out)
    out.flush()
    while True:
        try:
            request = Request(*pickle.load(sys.stdin.buffer))
        except EOFError:
            return
        answer: object
        try:
            answer = tuple(worker.handle(request))
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        pickle.dump(answer, out)
        out.flush()


if __name__ == "__main__":
    main()
