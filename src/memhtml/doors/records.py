"""The memory that a call names, as it is in the working tree, and edits of its head.

A person's uncommitted edit of that very file is read here and committed with it, as `git add
<path>` would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from memhtml.doors.refusals import invalid, shown
from memhtml.errors import MemhtmlError
from memhtml.retrieve.missing import path_not_found
from memhtml_format import edit, paths
from memhtml_format.record import Detail, head_view, read_detail
from memhtml_format.vocab import PREFIX


class Named(NamedTuple):
    """A memory that a call names: its path, its bytes and their full reading."""

    path: str
    data: bytes
    detail: Detail

    @property
    def memory_type(self) -> str:
        """Its type."""
        return self.detail.record.memory_type


def named(path: str, read: Callable[[str], bytes | None]) -> Named:
    """The memory at a path as the caller wrote it; `read` gives the working tree's file.

    Raises `MemhtmlError`: `ERR_PATH_NOT_FOUND` when there is none or the path is no memory's,
    `ERR_INVALID_MEMORY` with the violations when the file is no record. Passes on what `read`
    raises.
    """
    place = paths.normalise(path)
    fault = paths.problem(place) is not None or not paths.is_record_path(place)
    data = None if fault else read(place)
    if data is None:
        raise path_not_found(place)
    reading = read_detail(place, data)
    if reading.detail is None:
        said = "; ".join(problem.text for problem in reading.problems)
        raise invalid(f"{shown(place)}: {said}")
    return Named(place, data, reading.detail)


def live(memory: Named, what: str) -> Named:
    """The memory, unless it is archived already: `what` is not done to those.

    Raises `MemhtmlError` `ERR_INVALID_MEMORY`.
    """
    if memory.detail.record.archived:
        raise invalid(f"{shown(memory.path)} is archived already and {what}")
    return memory


def stamped(memory: Named, metas: Sequence[tuple[str, str]]) -> bytes:
    """The bytes with these metas set, everything else as it was.

    Raises `MemhtmlError` `ERR_INVALID_MEMORY` when the head is written in a way that no edit finds
    its place in.
    """
    data = memory.data
    for name, value in metas:
        data = edit.set_meta(data, name, value)
    view = head_view(data)
    stated = {} if view is None else dict(view.metas)
    if any(stated.get(PREFIX + name) != (value,) for name, value in metas):
        raise not_editable(memory.path)
    return data


def linked(memory: Named, data: bytes, rel: str, href: str) -> bytes:
    """`data`, bytes of the memory, with one more edge. Raises as `stamped` does."""
    data = edit.add_link(data, rel, href)
    view = head_view(data)
    if view is None or (rel, href) not in view.links:
        raise not_editable(memory.path)
    return data


def not_editable(path: str) -> MemhtmlError:
    """A head that only a person can edit."""
    return invalid(f"{shown(path)}: its head cannot be edited in place; put each meta on its line")


def href_of(path: str) -> str:
    """The href of a memory.

    Raises `MemhtmlError` `ERR_INVALID_MEMORY` for a path with `?` or `#`, which no href can name.
    """
    href = paths.href(path)
    if paths.href_target(href) != path:
        raise invalid(f"no link can name {shown(path)}, because it holds ? or #")
    return href
