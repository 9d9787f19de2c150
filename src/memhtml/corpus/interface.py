"""What the write bar and the session commands may ask of a version of the corpus.

Types only: nothing here opens a database or git. Every question costs what `design.md` §4 says
in its table of look-ups, at any corpus size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    # The record module brings the parser's tables along, 6 ms that a warm open need not pay.
    from memhtml_format.record import Link

__all__ = ["Corpus", "FileKind", "Link", "RecordRow"]

FileKind = Literal["file", "folder", "other"]
"""A regular file, a folder, or a link or submodule, which nothing may be written over."""


def __getattr__(name: str) -> Any:
    """`Link` for those who import it from here, loaded when they do."""
    if name == "Link":
        from memhtml_format.record import Link as found

        return found
    raise AttributeError(name)


class RecordRow(NamedTuple):
    """What a look-up answers about one record; absent single values are None.

    `archived` is decided by the path alone (spec `format` §1.2); a *live* record is one that is
    not archived, whatever its `status`.
    """

    path: str
    blob_sha: str
    content_hash: str
    archived: bool
    memory_type: str
    status: str
    title: str
    claim: str
    frame_key: str | None
    frame_value: str | None
    created_at: str
    updated_at: str
    event_at: str | None


class Corpus(Protocol):
    """One version of the corpus: the records at `sha`, or those with a session's log laid over."""

    @property
    def sha(self) -> str:
        """The commit the version stands on."""
        ...

    def record(self, path: str) -> RecordRow | None:
        """The record at exactly this normalised path."""
        ...

    def live_with_hash(self, content_hash: str) -> str | None:
        """The lowest path of a live record with this article."""
        ...

    def rivals(self, frame_key: str) -> list[RecordRow]:
        """The live records with this frame key, in path order."""
        ...

    def links(self, path: str) -> list[Link]:
        """The record's head links in document order; empty when there is no record."""
        ...

    def entities(self, path: str) -> list[str]:
        """The record's `memhtml-entity` values as written, in order; derived ones left out."""
        ...

    def holders(self, target: str) -> list[tuple[str, Link]]:
        """Live records with a link whose target is this path: path order, then document order."""
        ...

    def record_under(self, folder: str) -> bool:
        """Whether any record lies below this folder."""
        ...

    def paths_under(self, folder: str) -> list[str]:
        """The records below this folder, in path order."""
        ...

    def record_paths(self) -> Iterator[str]:
        """Every record's path, in path order. Walks the corpus: never on a warm path."""
        ...

    def file_kind(self, path: str) -> FileKind | None:
        """What the tree holds at this path, files that are no records included; no git."""
        ...

    def read(self, path: str) -> bytes | None:
        """The bytes of the record at this path."""
        ...
