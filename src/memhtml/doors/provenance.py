"""Where a direct write says it comes from: an agent conversation (spec `cli` §8).

These ids have nothing to do with `MEMHTML_SESSION`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from memhtml_format.render import Draft
from memhtml_format.text import is_blank

LinkKind: TypeAlias = Literal["wrote", "corrected"]


class Provenance(NamedTuple):
    """The ids of a conversation; None where there is none."""

    session_id: str | None = None
    prompt_id: str | None = None
    turn_uuid: str | None = None

    def trailers(self) -> list[tuple[str, str]]:
        """The trailers of the commit, in their order."""
        pairs = (("Memhtml-Session", self.session_id), ("Memhtml-Prompt", self.prompt_id))
        return [(name, value) for name, value in pairs if value]

    def fill(self, draft: Draft) -> Draft:
        """The draft with these ids where it names none."""
        if self == NOWHERE:
            return draft
        return draft._replace(
            session_id=draft.session_id or self.session_id,
            prompt_id=draft.prompt_id or self.prompt_id,
            turn_uuid=draft.turn_uuid or self.turn_uuid,
        )


NOWHERE = Provenance()


class SessionLink(NamedTuple):
    """One row of `memory_session_links`; `at` is a whole-second stamp."""

    path: str
    session_id: str
    prompt_id: str | None
    turn_uuid: str | None
    link_kind: LinkKind
    at: str


def provenance(session_id: str | None, prompt_id: str | None, turn_uuid: str | None) -> Provenance:
    """Ids as a call gives them; blank counts as absent."""
    return Provenance(*(_stated(each) for each in (session_id, prompt_id, turn_uuid)))


def of_draft(draft: Draft) -> Provenance:
    """The ids a draft carries."""
    return Provenance(draft.session_id, draft.prompt_id, draft.turn_uuid)


def session_link(draft: Draft, path: str, kind: LinkKind, at: str) -> SessionLink | None:
    """The row that ties a written file to its conversation, or None when it names none."""
    if draft.session_id is None:
        return None
    return SessionLink(path, draft.session_id, draft.prompt_id, draft.turn_uuid, kind, at)


def _stated(value: str | None) -> str | None:
    return None if value is None or is_blank(value) else value
