"""Where a store's lower trees lie, who owns them, and on which file system (spec `sandbox` §3)."""

from __future__ import annotations

import os

from memhtml import config
from memhtml_sandbox.cache import CorpusCache

UNFIT_FILE_SYSTEMS = ("nfs", "fuse", "9p", "cifs", "smb")
"""How the names begin of those that an overlay cannot lie on."""


def cache_folder(root: str, settings: config.SandboxSettings) -> str:
    """The folder of the lower trees: in the store, unless that is on a network or FUSE."""
    if settings.cache_dir is not None:
        return settings.cache_dir
    inside = os.path.join(root, ".memhtml", "sandbox")
    if os.path.isdir(inside) or not on_network(root):
        return inside
    from memhtml_format.digest import blob_sha

    return os.path.join(settings.cache_home, "memhtml", blob_sha(os.fsencode(root))[:16])


def on_network(root: str) -> bool:
    """Whether the store's file system is one that an overlay cannot lie on."""
    best, kind = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                left, _dash, right = line.partition(" - ")
                point = left.split(" ")[4]
                inside = point == "/" or root == point or root.startswith(f"{point}/")
                if inside and len(point) >= len(best):
                    best, kind = point, right.split(" ")[0]
    except OSError:
        return False
    return kind.startswith(UNFIT_FILE_SYSTEMS)


def owner(settings: config.SandboxSettings) -> tuple[int, int]:
    """The ids that own the lower trees: the sandbox's for root, else the caller's."""
    uid, gid = os.geteuid(), os.getegid()
    return (settings.uid, settings.uid) if uid == 0 else (uid, gid)


def open_cache(root: str, settings: config.SandboxSettings) -> CorpusCache:
    """The store's cache of lower trees."""
    uid, gid = owner(settings)
    return CorpusCache(cache_folder(root, settings), uid=uid, gid=gid)


def prune_cache(root: str) -> None:
    """Remove lower trees that nothing used lately. Raises `SandboxFailed`."""
    settings = config.sandbox()
    if os.path.isdir(cache_folder(root, settings)):
        open_cache(root, settings).prune()
