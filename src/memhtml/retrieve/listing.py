"""`list`: the files of the index by path, a page at a time (spec `retrieval` §16.3).

Reads the index as it stands and ranks nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.retrieve import pages
from memhtml.retrieve.pages import Label
from memhtml.retrieve.scope import entity_halves, split_facet
from memhtml_format.text import is_blank, trim

if TYPE_CHECKING:
    import _sqlite3 as sqlite3
    from collections.abc import Iterator

CHARS_A_TOKEN = 4

_FILE = (
    "SELECT path, title, memory_type, gist, workspace, para, confidence, importance, archived,"
    " updated_at, char_count FROM files WHERE path = ?"
)


class Wanted(NamedTuple):
    """What a list is narrowed to; None, blank and empty mean "not given".

    `entity` is one `type:name`, `facets` are `name=value` each. `para` `archive` implies
    `include_archived`. `cursor` is the last path of the page before.
    """

    memory_type: str | None = None
    workspace: str | None = None
    tag: str | None = None
    entity: str | None = None
    facets: tuple[str, ...] = ()
    para: str | None = None
    include_archived: bool = False
    cursor: str | None = None


def list_files(conn: sqlite3.Connection, wanted: Wanted, limit: int) -> dict[str, Any]:
    """The payload of `memory.list`; `limit` is brought into 1 to 500. Raises sqlite3.Error."""
    size = pages.bound(limit)
    files: list[dict[str, Any]] = []
    for path in _paths(conn, wanted):
        if len(files) == size:
            return {"files": files, "nextCursor": files[-1]["path"]}
        files.append(_file(conn.execute(_FILE, (path,)).fetchone()))
    return {"files": files, "nextCursor": None}


def est_tokens(char_count: int) -> int:
    """What a full read costs: the characters of the body text over four, rounded up."""
    return -(-char_count // CHARS_A_TOKEN)


def stated(text: str | None) -> str | None:
    """The text, or None when it is blank and so was not given."""
    return None if text is None or is_blank(text) else text


def type_label(memory_type: str, *, archived: bool) -> Label:
    """The files of one type on one side of the archive, whose indexes are two."""
    condition = f"memory_type = ? AND archived = {int(archived)}"
    return Label("files", condition, ((memory_type,),))


def _paths(conn: sqlite3.Connection, wanted: Wanted) -> Iterator[str]:
    within = pages.segments(
        wanted.para,
        stated(wanted.workspace),
        archived=wanted.include_archived,
        cursor=stated(wanted.cursor),
    )
    labels = _labels(wanted)
    for segment in within:
        own = []
        if wanted.memory_type:
            own = [type_label(wanted.memory_type, archived=segment.archived)]
        yield from pages.paths(conn, [*labels, *own], segment)


def _labels(wanted: Wanted) -> list[Label]:
    """The labels that children of a file carry; each facet name is one, with all its values."""
    found = []
    if stated(wanted.entity) is not None:
        halves = entity_halves(trim(wanted.entity or ""))
        condition = "entity_type = ? COLLATE NOCASE AND entity_name = ? COLLATE NOCASE"
        found.append(Label("file_entities", condition, (halves,)))
    if stated(wanted.tag) is not None:
        found.append(Label("file_tags", "tag = ?", ((trim(wanted.tag or ""),),)))
    pairs = [pair for facet in wanted.facets if (pair := split_facet(facet))]
    for name in dict.fromkeys(name for name, _value in pairs):
        choices = tuple(dict.fromkeys(pair for pair in pairs if pair[0] == name))
        found.append(Label("file_facets", "name = ? AND value = ?", choices))
    return found


def _file(row: tuple[Any, ...]) -> dict[str, Any]:
    path, title, kind, gist, workspace, para, confidence, importance, archived, updated, size = row
    return {
        "path": path,
        "title": title,
        "memoryType": kind,
        "gist": gist,
        "workspace": workspace,
        "para": para,
        "confidence": confidence,
        "importance": importance,
        "archived": bool(archived),
        "updatedAt": updated,
        "estTokens": est_tokens(size),
    }
