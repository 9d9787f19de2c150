"""The copy back end: the view written out as files, for hosts without a usable overlay.

`fill` runs while the script waits to start; `measure` tells before how large the tmpfs must be
(spec `sandbox` §9). Reading the changes back is in `changes`.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from memhtml_sandbox.errors import SandboxUnavailable
from memhtml_sandbox.layers import LayerWriter
from memhtml_sandbox.lower import Lower, Seed, SessionLayer

MOST_FILES = 200_000
MOST_BYTES = 2 << 30

# A tmpfs hands out whole pages.
_PAGE_BYTES = 4_096


class ViewSize(NamedTuple):
    """Room that a copy of the view takes on a tmpfs: `entries` counts files and folders."""

    size_bytes: int
    entries: int


def measure(lower: Lower, layer: SessionLayer) -> ViewSize:
    """An upper bound of what `fill` writes; raises `SandboxUnavailable` above the back end's reach.

    The layers are added up, so a file that one of them replaces counts twice. The caps are those of
    spec `sandbox` §9.
    """
    pages = sum(_pages(len(data)) for data in layer.files.values())
    own_bytes = sum(map(len, layer.files.values()))
    files, entries = len(layer.files), sum(path.count("/") + 1 for path in layer.files)
    for top in lower.layers:
        folders = [top]
        while folders:
            with os.scandir(folders.pop()) as found:
                for entry in found:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        continue
                    size_bytes = entry.stat(follow_symlinks=False).st_size
                    files, own_bytes = files + 1, own_bytes + size_bytes
                    pages += _pages(size_bytes)
            if files > MOST_FILES or own_bytes > MOST_BYTES:
                raise SandboxUnavailable("corpus too large for the copy back end")
    return ViewSize(pages * _PAGE_BYTES, entries)


def room(size: ViewSize, upper_bytes: int, upper_inodes: int) -> ViewSize:
    """Size and entries of the tmpfs: the view and almost a third, and what a run may change."""
    return ViewSize(
        size.size_bytes * 13 // 10 + upper_bytes,
        size.entries * 13 // 10 + upper_inodes,
    )


def fill(
    root_fd: int, lower: Lower, layer: SessionLayer, owner: tuple[int, int] | None = None
) -> None:
    """Write every file of the view below an empty folder, for `owner`; raises `OSError`."""
    writer = LayerWriter(root_fd, owner)
    try:
        for path, data in Seed(lower, layer).files():
            writer.write(path, data)
    finally:
        writer.close()


def _pages(size_bytes: int) -> int:
    return -(-size_bytes // _PAGE_BYTES)
