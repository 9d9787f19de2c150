"""Where drafts go when a v1 door writes them (spec `format` §2.4, §2.5).

A path is taken when the checkout has anything there or in its way, or an earlier draft of the same
call claimed it. The last commit is not asked: a person who deleted a file has made room.
"""

from __future__ import annotations

from collections.abc import Callable

from memhtml.doors.refusals import exhausted, invalid, occupied
from memhtml.errors import StorageError
from memhtml_format import paths
from memhtml_format.render import Draft
from memhtml_format.text import is_blank


class Places:
    """The places of one call.

    `exists` says whether the checkout has anything at a path or in its way, `blocker` what is in
    the way of one.
    """

    def __init__(self, exists: Callable[[str], bool], blocker: Callable[[str], str | None]) -> None:
        self._exists = exists
        self._blocker = blocker
        self._claimed: set[str] = set()
        self._folders: set[str] = set()
        self._next: dict[str, int] = {}
        """For each first name, the ordinal to try next: nothing gets free within a call."""

    def find(self, draft: Draft, at: str) -> str:
        """Claim a place for a draft written at the instant `at`.

        Raises `MemhtmlError`: `ERR_WRITE_CONFLICT` for a path of the draft's own that is taken,
        `ERR_INVALID_MEMORY` for one that cannot be used under `strict_path`; `StorageError`
        `write.pathExhausted`, and `write` when a rule's folder cannot be made.
        """
        path = self._own(draft)
        if path is None:
            path = self._derived(draft, at)
        elif self._taken(path) or self._blocked(path):
            raise occupied(path)
        self._claimed.add(path)
        self._folders.update(paths.parents(path))
        return path

    def _own(self, draft: Draft) -> str | None:
        """The path the draft names, or None when a place is found by rule."""
        if draft.path is None:
            return None
        path = paths.normalise(draft.path)
        fault = unusable(path)
        if fault is None:
            return path
        if draft.strict_path:
            said = "is blank" if is_blank(draft.path) else fault
            raise invalid(f"path {draft.path!r} {said}")
        return None

    def _derived(self, draft: Draft, at: str) -> str:
        folder = paths.placement(draft.memory_type, draft.workspace, draft.tags)
        stem = paths.slug(draft.title)
        first = f"{folder}/{paths.filename(stem, draft.memory_type, at)}"
        for ordinal in range(self._next.get(first, 1), paths.LAST_ORDINAL + 1):
            name = paths.filename(paths.suffixed(stem, ordinal), draft.memory_type, at)
            if not self._taken(f"{folder}/{name}"):
                self._next[first] = ordinal + 1
                return f"{folder}/{name}"
            if ordinal == 1 and (blocker := self._blocker(first)) is not None:
                raise StorageError("write", f"{blocker} is in the way: it is no folder")
        self._next[first] = paths.LAST_ORDINAL + 1
        raise exhausted(folder, stem, paths.LAST_ORDINAL)

    def _taken(self, path: str) -> bool:
        return path in self._claimed or path in self._folders or self._exists(path)

    def _blocked(self, path: str) -> bool:
        """Whether a file of this call lies where the path needs a folder."""
        return any(above in self._claimed for above in paths.parents(path))


def unusable(path: str) -> str | None:
    """Why a normalised path is no place for a memory, as a phrase, or None.

    Beyond spec `format` §2.2: a listing's name. What is written there would be found by no search
    and lost to the next `publish`.
    """
    fault = paths.problem(path)
    if fault is None and not paths.is_record_path(path):
        return "has the name of a generated page"
    return fault
