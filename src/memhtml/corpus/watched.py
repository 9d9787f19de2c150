"""A corpus that remembers which records it named, so that a recording can carry them along."""

from __future__ import annotations

from collections.abc import Iterator

from memhtml.corpus.interface import Corpus, FileKind, Link, RecordRow


class WatchedCorpus:
    """Answers like `corpus`; `seen` collects the path of every record an answer told of."""

    def __init__(self, corpus: Corpus, seen: set[str]) -> None:
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
            self.seen.add(path)
        return found

    def live_with_hash(self, content_hash: str) -> str | None:
        """The lowest path of a live record with this article."""
        found = self._corpus.live_with_hash(content_hash)
        if found is not None:
            self.seen.add(found)
        return found

    def rivals(self, frame_key: str) -> list[RecordRow]:
        """The live records with this frame key."""
        found = self._corpus.rivals(frame_key)
        self.seen.update(row.path for row in found)
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
        self.seen.update(path for path, _link in found)
        return found

    def record_under(self, folder: str) -> bool:
        """Whether any record lies below this folder; one of them is remembered."""
        below = self._corpus.paths_under(folder)
        self.seen.update(below[:1])
        return bool(below)

    def paths_under(self, folder: str) -> list[str]:
        """The records below this folder."""
        found = self._corpus.paths_under(folder)
        self.seen.update(found)
        return found

    def record_paths(self) -> Iterator[str]:
        """Every record's path; a walk of the corpus is not remembered."""
        return self._corpus.record_paths()

    def file_kind(self, path: str) -> FileKind | None:
        """What the tree holds at this path."""
        self.record(path)
        return self._corpus.file_kind(path)

    def read(self, path: str) -> bytes | None:
        """The bytes of the record at this path."""
        self.record(path)
        return self._corpus.read(path)
