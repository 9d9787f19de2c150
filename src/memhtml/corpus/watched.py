"""A corpus that remembers what it told of, so that a recording can carry it along."""

from __future__ import annotations

from collections.abc import Iterator

from memhtml.corpus.interface import Corpus, FileKind, Link, RecordRow


class Seen:
    """What a version of the corpus was asked for and has.

    `records` are paths of records. `others` holds what is at paths that were asked about and have
    no record: a file, a folder, or a link or submodule.
    """

    __slots__ = ("others", "records")

    def __init__(self) -> None:
        self.records: set[str] = set()
        self.others: dict[str, FileKind] = {}


class WatchedCorpus:
    """Answers like `corpus`; `seen` collects what the answers told of."""

    def __init__(self, corpus: Corpus, seen: Seen) -> None:
        self._corpus = corpus
        self.seen = seen

    @property
    def sha(self) -> str:
        """The commit the version stands on."""
        return self._corpus.sha

    def record(self, path: str) -> RecordRow | None:
        """The record at exactly this path."""
        found = self._corpus.record(path)
        if found is not None:
            self.seen.records.add(path)
        return found

    def live_with_hash(self, content_hash: str) -> str | None:
        """The lowest path of a live record with this article."""
        found = self._corpus.live_with_hash(content_hash)
        if found is not None:
            self.seen.records.add(found)
        return found

    def rivals(self, frame_key: str) -> list[RecordRow]:
        """The live records with this frame key."""
        found = self._corpus.rivals(frame_key)
        self.seen.records.update(row.path for row in found)
        return found

    def links(self, path: str) -> list[Link]:
        """The record's head links."""
        self.record(path)
        return self._corpus.links(path)

    def entities(self, path: str) -> list[str]:
        """The record's entity values."""
        self.record(path)
        return self._corpus.entities(path)

    def holders(self, target: str) -> list[tuple[str, Link]]:
        """Live records with a link to this path."""
        found = self._corpus.holders(target)
        self.seen.records.update(path for path, _link in found)
        return found

    def record_under(self, folder: str) -> bool:
        """Whether any record lies below this folder; one of them is remembered."""
        below = self._corpus.paths_under(folder)
        self.seen.records.update(below[:1])
        return bool(below)

    def paths_under(self, folder: str) -> list[str]:
        """The records below this folder."""
        found = self._corpus.paths_under(folder)
        self.seen.records.update(found)
        return found

    def record_paths(self) -> Iterator[str]:
        """Every record's path; a walk of the corpus is not remembered."""
        return self._corpus.record_paths()

    def file_kind(self, path: str) -> FileKind | None:
        """What the tree holds at this path."""
        found = self._corpus.file_kind(path)
        if found is not None and self.record(path) is None:
            self.seen.others[path] = found
        return found

    def read(self, path: str) -> bytes | None:
        """The bytes of the record at this path."""
        self.record(path)
        return self._corpus.read(path)
