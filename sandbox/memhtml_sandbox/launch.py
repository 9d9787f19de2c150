"""Steps 2 to 7 of a run (spec `sandbox` §4), in a process that has one thread and nothing else.

`Ground` is prepared once per process: the identity, a view of the host's mounts, and a small root
that holds no more than bwrap needs, since bwrap reads the whole mount table for every bind.
`launch` then makes the private mounts of one run and starts bwrap with `subprocess.Popen`. Nothing
here waits for the run or reads its output.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from memhtml_sandbox import cgroup, kernel, plan, seccomp
from memhtml_sandbox.layers import write_session_layer
from memhtml_sandbox.lower import Lower, SessionLayer
from memhtml_sandbox.protocol import STAGE, Forked, Job, StepFailed, memory_file

HELPER_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest", "corpus.mjs")

# What bwrap inherits, by the names that the argument list uses.
_PASSED = ("args", "status", "block", "seccomp", "script", "helper", "passwd", "group")

# Where the small root is put together; bwrap itself needs it to exist, too.
_BUILD_AT = b"/tmp"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

T = TypeVar("T")


class Ground(NamedTuple):
    """What every run of this process starts from: two mount namespaces, by descriptor.

    In `host` the host's paths can be opened; `small` is the root that bwrap sees. `as_root` says
    that the process is root and runs take another identity. `constants` are the files that every
    run is given; `ready` holds descriptors of them for the next one, which bwrap reads up.
    """

    host: int
    small: int
    as_root: bool
    constants: dict[str, bytes]
    ready: dict[str, int]


def _step(name: str, act: Callable[[], T]) -> T:
    try:
        return act()
    except OSError as error:
        raise StepFailed(name, error.errno or errno.EINVAL) from error
    except ValueError as error:
        # A path that no tree can hold.
        raise StepFailed(name, errno.EINVAL) from error


def prepare_ground() -> Ground:
    """Leave the caller's namespaces for good; raises `StepFailed`."""
    as_root = os.geteuid() == 0
    os.umask(0o022)
    if as_root:
        _step("unshare", lambda: kernel.unshare(kernel.CLONE_NEWNS))
        _step("identity", _drop_extras)
    else:
        uid, gid = os.geteuid(), os.getegid()
        _step("unshare", lambda: kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUSER))
        _step("map", lambda: _map_ids(uid, gid))
    _step("mount", lambda: _propagate(kernel.MS_SLAVE))
    host = _step("mount", _own_namespace)
    _step("unshare", lambda: kernel.unshare(kernel.CLONE_NEWNS))
    _step("mount", lambda: _propagate(kernel.MS_PRIVATE))
    _step("root", _build_small_root)
    small = _step("mount", _own_namespace)
    _step("mount", lambda: kernel.set_namespace(host, kernel.CLONE_NEWNS))
    ground = Ground(host, small, as_root, _step("helper", _constants), {})
    make_ready(ground)
    return ground


def _constants() -> dict[str, bytes]:
    with open(HELPER_FILE, "rb") as file:
        constants = {"helper": file.read(), "passwd": plan.PASSWD, "group": plan.GROUP}
    program = seccomp.program(os.uname().machine)
    return constants if program is None else {**constants, "seccomp": program}


def make_ready(ground: Ground) -> None:
    """Prepare what the next run is given; best done while nobody waits."""
    for name, data in ground.constants.items():
        if name not in ground.ready:
            ground.ready[name] = memory_file(name, data)


def _drop_extras() -> None:
    # Both would otherwise reach a run together with its identity.
    os.setgroups([])
    kernel.prctl(kernel.PR_CAP_AMBIENT, kernel.PR_CAP_AMBIENT_CLEAR_ALL)


def _map_ids(uid: int, gid: int) -> None:
    _put("/proc/self/setgroups", b"deny")
    _put("/proc/self/uid_map", b"%d %d 1" % (uid, uid))
    _put("/proc/self/gid_map", b"%d %d 1" % (gid, gid))


def _propagate(how: int) -> None:
    kernel.mount(b"none", b"/", b"none", kernel.MS_REC | how)


def _own_namespace() -> int:
    return os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


def _build_small_root() -> None:
    options = b"size=16m,nr_inodes=256,mode=0755"
    kernel.mount(b"memhtml", _BUILD_AT, b"tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    os.chdir(_BUILD_AT)
    for name in ("old", "stage", "tmp", "etc", plan.EMPTY[1:]):
        os.mkdir(name, 0o755)
    kernel.pivot_root(b".", b"old")
    os.chdir("/")
    for name in ("usr", "proc", "dev", *plan.SYSTEM_FOLDERS):
        if os.path.islink(f"/old/{name}"):
            os.symlink(os.readlink(f"/old/{name}"), f"/{name}")
        elif os.path.isdir(f"/old/{name}"):
            _bind_from_old(f"/{name}")
    for path in plan.STORES:
        if os.path.isdir(f"/old{path}"):
            _bind_from_old(path)
    _copy_loader_cache()
    kernel.unmount(b"/old", kernel.MNT_DETACH)
    os.rmdir("/old")


def _copy_loader_cache() -> None:
    """Rather than a bind: every mount here makes every bind of bwrap a little slower."""
    path = "/etc/ld.so.cache"
    try:
        source = os.open(f"/old{path}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            while os.sendfile(target, source, None, 1 << 20):
                continue
        finally:
            os.close(target)
    finally:
        os.close(source)


def _bind_from_old(path: str) -> None:
    """Recursive, since a user may not bind a folder without the mounts that lie below it."""
    os.makedirs(path, 0o755)
    kernel.mount(f"/old{path}".encode(), path.encode(), b"none", kernel.MS_BIND | kernel.MS_REC)


def launch(ground: Ground, job: Job, fds: Mapping[str, int], layer: SessionLayer | None) -> Forked:
    """Make the mounts of a run and start bwrap in them; this process is then back where it was.

    `fds` holds `stdout`, `stderr`, `status`, `block` and `script`. Raises `StepFailed`; when it
    raises `OSError`, the process is in no known state and must end.
    """
    with contextlib.ExitStack() as undo:
        trees = _step("bind", lambda: _clone_trees(job, undo))
        if job.cgroup is not None:
            _step("cgroup", lambda: _visit(job.cgroup, undo))
        undo.callback(kernel.set_namespace, ground.host, kernel.CLONE_NEWNS)
        _step("mount", lambda: _mount(ground, job, trees))
        if ground.as_root:
            undo.callback(_be_root)
            _step("identity", lambda: _take_ids(job))
        _step("folders", lambda: _make_folders(job))
        if layer is not None:
            _step("seed", lambda: _seed(job, layer))
        upper = os.open(f"{STAGE}/u", _FOLDER) if job.upper else None
        return _start(job, {**fds, **_own_files(ground, undo)}, upper)


def _own_files(ground: Ground, undo: contextlib.ExitStack) -> dict[str, int]:
    make_ready(ground)
    files = dict(ground.ready)
    ground.ready.clear()
    for fd in files.values():
        undo.callback(os.close, fd)
    return files


def _clone_trees(job: Job, undo: contextlib.ExitStack) -> list[int]:
    trees: list[int] = []
    for source, _, _ in job.binds:
        trees.append(kernel.clone_tree(os.fsencode(source)))
        undo.callback(os.close, trees[-1])
    return trees


def _visit(group: str | None, undo: contextlib.ExitStack) -> None:
    """bwrap is born into the group of this process, which goes back to its own afterwards."""
    home = os.open(f"{cgroup.own_group()}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    undo.callback(os.close, home)
    _put(f"{group}/cgroup.procs", b"0")
    undo.callback(os.write, home, b"0")


def _mount(ground: Ground, job: Job, trees: list[int]) -> None:
    kernel.set_namespace(ground.small, kernel.CLONE_NEWNS)
    kernel.unshare(kernel.CLONE_NEWNS)
    _tmpfs(job, STAGE, job.upper_bytes, job.upper_inodes, ground.as_root)
    os.mkdir(f"{STAGE}/x", 0o755)
    _tmpfs(job, f"{STAGE}/x", job.scratch_bytes, job.scratch_inodes, ground.as_root)
    for fd, (_, name, is_folder) in zip(trees, job.binds, strict=True):
        target = f"{STAGE}/{name}"
        if "/" in name:
            os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
        if is_folder:
            os.mkdir(target, 0o755)
        else:
            _make_file(target)
        kernel.attach_tree(fd, os.fsencode(target))


def _tmpfs(job: Job, target: str, size_bytes: int, inodes: int, as_root: bool) -> None:
    options = b"size=%d,nr_inodes=%d,mode=0755" % (size_bytes, inodes)
    if as_root:
        options += b",uid=%d,gid=%d" % (job.uid, job.gid)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount(b"memhtml", target.encode(), b"tmpfs", flags, options)


def _take_ids(job: Job) -> None:
    """Become the sandbox's user, keeping a way back that ends with the exec of bwrap.

    Under host uid 0 the process cap does not hold and the host's sysctls are writable.
    """
    os.setresgid(job.gid, job.gid, 0)
    os.setresuid(job.uid, job.uid, 0)
    if os.getresuid() != (job.uid, job.uid, 0) or os.getresgid() != (job.gid, job.gid, 0):
        raise PermissionError(errno.EPERM, "the identity did not change")


def _be_root() -> None:
    os.setresuid(0, 0, 0)
    os.setresgid(0, 0, 0)


def _make_folders(job: Job) -> None:
    # After the change of identity, so that everything has its owner without a `chown`.
    scratch = f"{STAGE}/x"
    for name in ("tmp", "home", "ws", "shm"):
        os.mkdir(f"{scratch}/{name}", 0o755)
    os.chmod(f"{scratch}/tmp", 0o1777)
    if job.upper:
        os.mkdir(f"{STAGE}/u", 0o755)
        os.mkdir(f"{STAGE}/w", 0o700)


def _seed(job: Job, layer: SessionLayer) -> None:
    lower = Lower("", tuple(f"{STAGE}/{name}" for name in job.lowers))
    os.mkdir(f"{STAGE}/s", 0o755)
    fd = os.open(f"{STAGE}/s", _FOLDER)
    try:
        write_session_layer(fd, layer, lower)
    finally:
        os.close(fd)


def _start(job: Job, fds: Mapping[str, int], upper: int | None) -> Forked:
    args = memory_file("args", plan.render(job.words, fds))
    numbers = {**fds, "args": args}
    try:
        process = _step("exec", lambda: _popen(job, numbers))
        # Whoever watches the run says when it is to be reaped.
        process.returncode = 0
        return Forked(process.pid, os.pidfd_open(process.pid), upper)
    except BaseException:
        if upper is not None:
            os.close(upper)
        raise
    finally:
        os.close(args)


def _popen(job: Job, numbers: Mapping[str, int]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        plan.command_line(job.bwrap, job.command, numbers),
        stdin=subprocess.DEVNULL,
        stdout=numbers["stdout"],
        stderr=numbers["stderr"],
        pass_fds=[numbers[name] for name in _PASSED if name in numbers],
        # Not `--clearenv` alone: that leaves the environment in `/proc/1/environ`.
        env={},
    )


def _make_file(path: str) -> None:
    os.mknod(path, stat.S_IFREG | 0o644)


def _put(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
