"""What this host can do, found by really doing it once (spec `sandbox` §9).

`probe` answers from this process's memory, then from `probe.json` beside the cache, then by a
trial. A success is remembered on disk, a failure never. It never raises and never prints: what a
caller should warn about is in `Support`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any

from memhtml_sandbox import folders
from memhtml_sandbox.errors import SandboxUnavailable
from memhtml_sandbox.support import (
    DEFAULT_SEARCH,
    DEFAULT_UID,
    Asked,
    Support,
    Version,
    blank,
    bwrap_candidates,
    node_candidates,
    shown_inside,
)

__all__ = ["Support", "again", "probe"]

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

    `bwrap` is taken in the place of any other and must work, `backend` forces one, `cache_dir` is
    the cache's folder (a run needs it), `search` the folders of the caller's path, `version` the
    program's, so that a new one asks again. `refresh` forgets what is known.
    """
    asked = Asked(bwrap, backend, cache_dir, sandbox_uid, search, version)
    if refresh:
        _found.pop(asked, None)
        _forget(asked)
    known = _found.get(asked)
    if known is None:
        known = _found[asked] = _unfit(asked) or _recall(asked) or _try(asked)
    return known


def _unfit(asked: Asked) -> Support | None:
    """The answer for a cache that a script could read, or that lies behind a link."""
    path = asked.cache_dir
    if path is None:
        return None
    if folders.is_link(path):
        return blank(asked)._replace(
            reason=f"{path} is a symbolic link", remedy=folders.LINK_REMEDY
        )
    shown = shown_inside(path)
    if shown is None:
        return None
    return blank(asked)._replace(
        reason=f"{path} lies in {shown}, which every script can read", remedy="move the store"
    )


def again(support: Support) -> Support:
    """Ask the host anew, after a run could not be set up although it should have been.

    Raises `SandboxUnavailable` when nothing works any more.
    """
    found = probe(**support.asked._asdict(), refresh=True)
    if found.backend is None:
        raise SandboxUnavailable(found.reason or "no sandbox here", found.remedy or "")
    return found


def _try(asked: Asked) -> Support:
    # Only where nothing is remembered; brings `subprocess` and the whole sandbox with it.
    from memhtml_sandbox import trial

    support = trial.attempt(asked)
    if support.backend is not None:
        _remember(support)
    return support


def _key(asked: Asked, programs: list[str]) -> list[object]:
    """Whatever the finding depends on (spec `sandbox` §9)."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        boot = file.read().decode().strip()
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
    note = folders.read_note(path)
    try:
        bwraps, nodes = bwrap_candidates(asked), node_candidates(asked)
        if note["key"] != json.loads(json.dumps(_key(asked, [*bwraps, *nodes]))):
            return None
        kept = note["support"]
        if kept["bwrap"] not in bwraps or kept["node"] not in (None, *nodes):
            return None
        return _decode(kept, asked)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _decode(kept: Mapping[str, Any], asked: Asked) -> Support:
    """The value of a note, which may be somebody else's: no path is taken from it unseen."""
    backend = kept["backend"]
    if backend not in ("overlay", "copy") or asked.backend not in (None, backend):
        raise ValueError
    return blank(asked)._replace(
        backend=backend,
        bwrap=kept["bwrap"],
        bwrap_version=_version(kept["bwrap_version"]),
        node=kept["node"],
        node_version=_version(kept["node_version"]),
        cgroup=_cgroup() if kept["cgroup"] is not None else None,
        reason=_text(kept["reason"]),
        remedy=_text(kept["remedy"]),
        node_reason=_text(kept["node_reason"]),
        node_remedy=_text(kept["node_remedy"]),
        remembered=True,
    )


def _cgroup() -> str | None:
    from memhtml_sandbox import cgroup

    return cgroup.find()


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
    major, minor, patch = map(int, value)
    return major, minor, patch


def _text(value: object) -> str | None:
    if value is None or (isinstance(value, str) and value.isprintable()):
        return value
    raise ValueError


def _remember(support: Support) -> None:
    """Keep a success for later processes; a folder that cannot be written keeps nothing."""
    path = _file(support.asked)
    if path is None:
        return
    kept = {name: getattr(support, name) for name in _KEPT}
    aside = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    asked = support.asked
    try:
        key = _key(asked, [*bwrap_candidates(asked), *node_candidates(asked)])
        with open(aside, "x", encoding="utf-8") as file:
            json.dump({"key": key, "support": kept}, file)
        os.rename(aside, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside)


if __name__ == "__main__":
    # For people who wonder what their host can do; without a cache folder nothing is kept.
    for _name, _value in probe()._asdict().items():
        print(f"{_name}: {_value}")
