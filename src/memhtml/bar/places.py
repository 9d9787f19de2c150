"""Where a file may land: the spelling of paths, and files that stand in the way of folders.

Git cannot hold a file and a folder at one path, so a destination below or above another file is a
`format` violation (spec `write-bar` §4.3). The base's tree is asked about files that are no
records as seldom as possible: a folder that holds a record is known to be a folder, the walk
starts at the bucket and stops at the first name that is not there, and answers are kept.
"""

from __future__ import annotations

from memhtml.bar.batch import Batch
from memhtml_format.ops import Op, Put, touched
from memhtml_format.paths import archive_slot, is_archived, is_memory_path, normalise, parents
from memhtml_format.paths import problem as path_problem


def misspelt(op: Op) -> list[str]:
    """Reasons why the texts of an operation cannot be what they should be.

    Operations spell paths normalised (spec `write-bar` §1), and every text must survive UTF-8: a
    log edited by hand can hold a lone surrogate, which no file, index or ref can. The HTML of an
    operation is left to the reader of files.
    """
    names = [name for name in op._fields if name not in ("kind", "html")]
    found = [f"{name}: holds half a character" for name in names if not _sound(getattr(op, name))]
    if found:
        return found
    return [
        f"path: {path!r} is not normalised, spell it {normalise(path)!r}"
        for path in touched(op)
        if path != normalise(path)
    ]


def _sound(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def put_problem(op: Put) -> str | None:
    """The path rule for a put: a memory path, and under `archive/` a slot of one (§4.3)."""
    problem = path_problem(op.path)
    if problem is not None or not is_archived(op.path):
        return problem
    slot = archive_slot(op.path)
    if slot is not None and is_memory_path(slot.original):
        return None
    return "under archive/ only archive/<YYYY>[.N]/<memory path> holds a record"


def obstacle(path: str, batch: Batch) -> str | None:
    """Why git could not hold a file at `path`, a memory path, beside what is there; or None."""
    for folder in parents(path):
        if folder.endswith(".html") and batch.held(folder):
            return f"lies below the record {folder}"
    if path in batch.folders:
        return f"is a folder of the record {batch.folders[path]}"
    if batch.base.record(path) is not None:
        return None
    if batch.base.record_under(path):
        return f"is a folder of the record {batch.base.paths_under(path)[0]}"
    return _tree_obstacle(path, batch)


def _tree_obstacle(path: str, batch: Batch) -> str | None:
    """The same against files of the base's tree that are no records.

    Only called when no record is at `path` or below it, so whatever the tree has there is a file
    that does not parse, which a put may replace, or something that is in the way.
    """
    folders = list(parents(path))
    if not _holds_records(folders[-1], batch):
        for folder in folders:
            kind = _kind(folder, batch)
            if kind is None:
                return None
            if kind != "folder":
                return f"lies below {folder}, which is no folder"
    kind = batch.base.file_kind(path)
    if kind in (None, "file"):
        return None
    return f"is a {'folder' if kind == 'folder' else 'link or a submodule'} of the store's tree"


def _kind(folder: str, batch: Batch) -> str | None:
    """What the base's tree has at `folder`."""
    if folder not in batch.kinds and not _holds_records(folder, batch):
        batch.kinds[folder] = batch.base.file_kind(folder)
    return batch.kinds[folder]


def _holds_records(folder: str, batch: Batch) -> bool:
    """Whether a record below `folder` says, without git, that it is one, as all its parents are."""
    if folder not in batch.kinds and batch.base.record_under(folder):
        batch.kinds[folder] = "folder"
    return batch.kinds.get(folder) == "folder"
