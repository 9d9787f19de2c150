"""The few system calls that `os` lacks: namespaces, mounts and `prctl`.

Each raises `OSError` with the kernel's number. Nothing here knows what they are used for.
"""

from __future__ import annotations

# The `ctypes` package costs 1.5 ms to import and its C half 0.4 ms; these calls need no more.
import _ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SLAVE = 0x80000

MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_AT_FDCWD = -100
_OPEN_TREE_CLONE = 0x1
_OPEN_TREE_CLOEXEC = os.O_CLOEXEC
_MOVE_MOUNT_F_EMPTY_PATH = 0x4

# Their wrappers came late to the C library; the numbers are the same on every architecture.
_NR_OPEN_TREE = 428
_NR_MOVE_MOUNT = 429


class _Long(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "l"


class _Text(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "z"


class _Call(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Long


def _function(name: str, *argument_types: type) -> _Call:
    call = _Call(_ctypes.dlsym(_ctypes.dlopen(None, 0), name))  # type: ignore[arg-type]
    call.argtypes = argument_types
    return call


_unshare = _function("unshare", _Long)
_setns = _function("setns", _Long, _Long)
_mount = _function("mount", _Text, _Text, _Text, _Long, _Text)
_umount2 = _function("umount2", _Text, _Long)
_pivot_root = _function("pivot_root", _Text, _Text)
_prctl = _function("prctl", _Long, _Long, _Long, _Long, _Long)
_open_tree = _function("syscall", _Long, _Long, _Text, _Long)
_move_mount = _function("syscall", _Long, _Long, _Text, _Long, _Text, _Long)


def _checked(result: int) -> int:
    if result < 0:
        number = _ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def unshare(flags: int) -> None:
    """Move this process into new namespaces."""
    _checked(_unshare(flags))


def set_namespace(fd: int, kind: int) -> None:
    """Move this process into the namespace behind a descriptor."""
    _checked(_setns(fd, kind))


def mount(source: bytes, target: bytes, kind: bytes, flags: int, options: bytes = b"") -> None:
    """Mount a file system, bind a path, or change how a mount propagates."""
    _checked(_mount(source, target, kind, flags, options))


def unmount(target: bytes, flags: int) -> None:
    """Take a mount away."""
    _checked(_umount2(target, flags))


def pivot_root(new_root: bytes, put_old: bytes) -> None:
    """Make a mount the root of this namespace, and the old root one of its folders."""
    _checked(_pivot_root(new_root, put_old))


def clone_tree(path: bytes) -> int:
    """A descriptor of a new mount of the path that stands nowhere yet; close-on-exec."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC
    return _checked(_open_tree(_NR_OPEN_TREE, _AT_FDCWD, path, flags))


def attach_tree(fd: int, target: bytes) -> None:
    """Put a mount of `clone_tree` at a path, also in another namespace than it came from."""
    flags = _MOVE_MOUNT_F_EMPTY_PATH
    _checked(_move_mount(_NR_MOVE_MOUNT, fd, b"", _AT_FDCWD, target, flags))


def prctl(option: int, argument: int, more: int = 0) -> int:
    """Read or change a property of this process."""
    return _checked(_prctl(option, argument, more, 0, 0))
