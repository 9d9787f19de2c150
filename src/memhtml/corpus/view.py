"""A head with a session's folded log laid over it: what later puts, searches and runs see.

The files of the log are parsed on the first question that needs them. Closing the head ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from memhtml.corpus.delta import Delta
from memhtml.corpus.layers import Base, Layers
from memhtml.store.snapshot_open import Database
from memhtml.store.snapshot_schema import OtherKind, may_be_record

if TYPE_CHECKING:
    from memhtml_format.record import Record

T = TypeVar("T")


class View(Layers):
    """`files` replace, `gone` remove; a file that does not parse hides its record and is none."""

    def __init__(self, head: Base, files: Mapping[str, bytes], gone: Collection[str]) -> None:
        self._head = head
        self._files = files
        self._gone = frozenset(gone) - files.keys()
        kinds: dict[str, OtherKind | None] = {**dict.fromkeys(files, "file")}
        kinds.update(dict.fromkeys(self._gone))
        self._own = Delta(kinds, [path for path in kinds if may_be_record(path)], self._parsed)

    @property
    def sha(self) -> str:
        """The commit below the log."""
        return self._head.sha

    def read(self, path: str) -> bytes | None:
        """The bytes at this path: the log's own, whether they parse or not, else the record's."""
        if self._own.covers(path):
            return self._files.get(path)
        return self._head.read(path)

    def deltas(self) -> Sequence[Delta]:
        """The log's own files over what lies over the database."""
        return (self._own, *self._head.deltas())

    def database(self) -> Database:
        """The head's database."""
        return self._head.database()

    def ask(self, question: Callable[..., T], *values: object) -> T:
        """Put a question to the head's database."""
        return self._head.ask(question, *values)

    def _parsed(self, path: str) -> Record | None:
        from memhtml_format.record import read

        return read(path, self._files[path]).record
