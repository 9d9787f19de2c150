"""What this host can do, found by really doing it once (spec `sandbox` §9).

`probe` answers from this process's memory, then from `probe.json` beside the cache, then by a
trial. A success is remembered on disk, a failure never. It never raises and never prints: what a
caller should warn about is in `Support`.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

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


def _try(asked: Asked) -> Support:
    # Only where nothing is remembered; brings `subprocess` and the whole sandbox with it.
    from memhtml_sandbox import trial

    support = trial.attempt(asked)
    if support.backend is not None:
        _remember(support)
    return support


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


if __name__ == "__main__":
    # For people who wonder what their host can do; without a cache folder nothing is kept.
    for _name, _value in probe()._asdict().items():
        print(f"{_name}: {_value}")
