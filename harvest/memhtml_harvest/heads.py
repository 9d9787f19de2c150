"""Head edits: which links and entities changed between two versions of one record, and what else.

Spec `harvest` §3.4. Both versions go through the parser that loads records; edges and entities are
compared as sets, and everything else that differs is named so that the caller can split the edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from memhtml_format.ops import AddLabel, AddLink, DropLabel, DropLink, Op
from memhtml_harvest.report import Refusal

if TYPE_CHECKING:
    from memhtml_format.record import HeadView, Link

T = TypeVar("T")

SHOWN_CHARS = 200
"""Titles and values longer than this are cut in a reason; edges and entities are not."""


class HeadEdit(NamedTuple):
    """The difference of two heads. No operation may be taken while `others` names anything."""

    links: tuple[Link, ...]
    unlinks: tuple[Link, ...]
    labels: tuple[str, ...]
    unlabels: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def ops_count(self) -> int:
        """How many operations it makes."""
        return len(self.links) + len(self.unlinks) + len(self.labels) + len(self.unlabels)


def edit_of(old: bytes, new: bytes, old_hash: str | None) -> HeadEdit | None:
    """The head edit that leads from `old` to `new`, two different byte strings.

    None when it is none: the article's words differ from `old_hash`, or one version is no record.
    """
    from memhtml_format.record import content_hash

    if old_hash is None or content_hash(new) != old_hash:
        return None
    return compare(old, new)


def compare(old: bytes, new: bytes) -> HeadEdit | None:
    """The difference of two versions whose articles say the same; None when one is no record."""
    from memhtml_format.record import head_view

    before, after = head_view(old), head_view(new)
    if before is None or after is None:
        return None
    links = _only_in(after.links, before.links)
    unlinks = _only_in(before.links, after.links)
    labels = _only_in(after.entities, before.entities)
    unlabels = _only_in(before.entities, after.entities)
    others = list(_parsed_changes(before, after))
    found = bool(links or unlinks or labels or unlabels)
    if found and not others and _residue(old) != _residue(new):
        others.append("the rest of the head or page changed, a comment or an unknown line perhaps")
    if not found and not others:
        others.append(
            "the bytes changed and no link or entity did: "
            "a comment, spacing, line ends, quotes, order or a doubled line"
        )
    return HeadEdit(links, unlinks, labels, unlabels, tuple(others))


def operations(path: str, edit: HeadEdit) -> list[Op]:
    """The edit as operations on `path`, in the order of spec `harvest` §3.4."""
    return [
        *(AddLink(path, link.rel, link.href) for link in edit.links),
        *(DropLink(path, link.rel, link.href) for link in edit.unlinks),
        *(AddLabel(path, entity) for entity in edit.labels),
        *(DropLabel(path, entity) for entity in edit.unlabels),
    ]


def refusal(edit: HeadEdit, where: str = "") -> Refusal | None:
    """Why the edit cannot be taken, with `where` before it; None when it can."""
    return Refusal("head-edit", where + explain(edit)) if edit.others else None


def explain(edit: HeadEdit) -> str:
    """The words of a refusal: the other changes first, then the edges and entities beside."""
    beside = [
        *(f"link added {link.rel} {link.href}" for link in edit.links),
        *(f"link removed {link.rel} {link.href}" for link in edit.unlinks),
        *(f"entity added {entity}" for entity in edit.labels),
        *(f"entity removed {entity}" for entity in edit.unlabels),
    ]
    text = "; ".join(edit.others)
    if not beside:
        return f"only links and entities of a head can be edited; {text}"
    return (
        f"only links and entities of a head can be edited; {text}; beside it: {'; '.join(beside)} "
        "(make these in an edit of their own)"
    )


def _only_in(these: Iterable[T], those: Iterable[T]) -> tuple[T, ...]:
    """The items of `these` that are not among `those`, once each, in their own order."""
    known = frozenset(those)
    return tuple(dict.fromkeys(item for item in these if item not in known))


def _parsed_changes(before: HeadView, after: HeadView) -> Iterable[str]:
    """Sentences on the changes that the parser sees outside links and entities."""
    if before.title != after.title:
        yield f"the title changed from {_quoted([before.title])} to {_quoted([after.title])}"
    old, new = dict(before.metas), dict(after.metas)
    for name in dict.fromkeys([*old, *new]):
        change = _meta_change(name, old.get(name, ()), new.get(name, ()))
        if change:
            yield change
    if before.article_html != after.article_html:
        yield "the article's markup changed, its words did not"


def _meta_change(name: str, old: Sequence[str], new: Sequence[str]) -> str | None:
    if tuple(old) == tuple(new):
        return None
    if not old:
        return f"the meta {name} was added with {_quoted(new)}"
    if not new:
        return f"the meta {name} was removed, it was {_quoted(old)}"
    return f"the meta {name} changed from {_quoted(old)} to {_quoted(new)}"


def _quoted(values: Sequence[str]) -> str:
    text = ", ".join(f'"{value}"' for value in values)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _residue(data: bytes) -> str:
    """The page without its memhtml links and entity metas, its white space collapsed."""
    from memhtml_format.edit import collapse_markup, cut_edges

    return collapse_markup(cut_edges(data).decode())
