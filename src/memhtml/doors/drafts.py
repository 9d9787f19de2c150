"""Drafts on their way in: judged, rendered, and read back once (spec `format` §6, `cli` §10).

Pure. Whether there is room for a file, or a twin of it, is asked elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

from memhtml.doors.refusals import broken, invalid
from memhtml.errors import MemhtmlError
from memhtml_format.jsonl import is_importance
from memhtml_format.record import Detail
from memhtml_format.render import Draft, render


class Prepared(NamedTuple):
    """A draft as a file: its bytes, and what a full read of them finds, the path still empty.

    `draft` has lost its text, which the bytes hold; `is_markup` says that it came as markup.
    """

    draft: Draft
    data: bytes
    detail: Detail
    is_markup: bool

    @property
    def content_hash(self) -> str:
        """The hash of the article, the key of duplicates."""
        return self.detail.record.content_hash

    @property
    def is_task(self) -> bool:
        """Whether it is a task, which has no duplicates."""
        return self.draft.memory_type == "task"

    def detail_at(self, path: str) -> Detail:
        """The reading of the file once it lies at `path`."""
        record = self.detail.record._replace(path=path, archived=path.startswith("archive/"))
        return self.detail._replace(record=record)


def prepare(draft: Draft, at: str) -> Prepared:
    """The file of a draft at the instant `at`.

    Raises `MemhtmlError`: `ERR_INVALID_FLAG` for prose beside markup, `ERR_INVALID_MEMORY` for
    neither, a number out of range, and whatever §3.6 and §3.7 of spec `format` find in the bytes.
    """
    if draft.body is not None and draft.article_html is not None:
        raise MemhtmlError("ERR_INVALID_FLAG", "body and article_html exclude each other")
    if draft.importance is not None and not is_importance(draft.importance):
        raise invalid("importance must be an integer from 1 to 10")
    if draft.confidence is not None and not 0 <= draft.confidence <= 1:
        raise invalid("confidence must be a number from 0 to 1")
    made = render(draft, at)
    if made.detail is None or made.problems:
        lacks = draft.body is draft.article_html is draft.claim is None
        more = ("there is neither body nor article_html",) if lacks else ()
        raise broken([*made.problems, *more])
    bare = draft._replace(body=None, article_html=None, claim=None, paragraphs=())
    is_markup = draft.article_html is not None
    return Prepared(bare, made.html.encode(), made.detail, is_markup)
