"""A corpus held in memory, built from files: what a replayed run and small tests are judged over.

It answers the same questions as the head database, from plain dictionaries. Building parses every
file, so nothing that works on a store uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memhtml.corpus.interface import FileKind, Link, RecordRow
from memhtml_format.paths import href_target
from memhtml_format.record import Record, read


def row_of(record: Record) -> RecordRow:
    """The look-up row of a record."""
    return RecordRow(*(getattr(record, field) for field in RecordRow._fields))


def _present(files: Mapping[str, bytes | None]) -> Iterator[tuple[str, bytes]]:
    return ((path, data) for path, data in files.items() if data is not None)


class MemoryCorpus:
    """The records among `files`; the others are only files, None a link or a submodule."""

    def __init__(self, files: Mapping[str, bytes | None], sha: str = "0" * 40) -> None:
        self.sha = sha
        self._files = files
        readings = (read(path, data).record for path, data in sorted(_present(files)))
        self._records = {record.path: record for record in readings if record is not None}

    def record(self, path: str) -> RecordRow | None:
        """The record at exactly this path."""
        found = self._records.get(path)
        return None if found is None else row_of(found)

    def _live(self) -> Iterator[Record]:
        return (record for record in self._records.values() if not record.archived)

    def live_with_hash(self, content_hash: str) -> str | None:
        """The lowest path of a live record with this article."""
        return next((r.path for r in self._live() if r.content_hash == content_hash), None)

    def rivals(self, frame_key: str) -> list[RecordRow]:
        """The live records with this frame key, in path order."""
        return [row_of(record) for record in self._live() if record.frame_key == frame_key]

    def links(self, path: str) -> list[Link]:
        """The record's head links in document order."""
        found = self._records.get(path)
        return [] if found is None else list(found.links)

    def entities(self, path: str) -> list[str]:
        """The record's entity values as written."""
        found = self._records.get(path)
        return [] if found is None else list(found.entities)

    def holders(self, target: str) -> list[tuple[str, Link]]:
        """Live records with a link to this path."""
        return [
            (record.path, link)
            for record in self._live()
            for link in record.links
            if href_target(link.href) == target
        ]

    def record_under(self, folder: str) -> bool:
        """Whether any record lies below this folder."""
        return bool(self.paths_under(folder))

    def paths_under(self, folder: str) -> list[str]:
        """The records below this folder, in path order."""
        return [path for path in self._records if path.startswith(f"{folder}/")]

    def record_paths(self) -> Iterator[str]:
        """Every record's path, in path order."""
        return iter(self._records)

    def file_kind(self, path: str) -> FileKind | None:
        """What the files hold at this path."""
        if path in self._files:
            return "other" if self._files[path] is None else "file"
        return "folder" if any(each.startswith(f"{path}/") for each in self._files) else None

    def read(self, path: str) -> bytes | None:
        """The bytes of the record at this path."""
        return self._files[path] if path in self._records else None
