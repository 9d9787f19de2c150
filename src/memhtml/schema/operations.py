"""The seven session operations and the six violations as JSON (spec `write-bar` §1, §3).

`memhtml_format.ops` and `.violations` are what the program runs on; these models publish the same
shapes, and a test keeps the two from drifting apart.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from memhtml.schema.base import Count, Model

# A path is any string here: a log with an odd path decodes, and the bar refuses it by rule.


class Put(Model):
    """Write a whole new file."""

    kind: Literal["put"]
    path: str
    html: str


class Link(Model):
    """Add one head link."""

    kind: Literal["link"]
    path: str
    rel: str
    href: str


class Unlink(Model):
    """Drop one head link."""

    kind: Literal["unlink"]
    path: str
    rel: str
    href: str


class Label(Model):
    """Add one `memhtml-entity` meta."""

    kind: Literal["label"]
    path: str
    entity: str


class Unlabel(Model):
    """Drop one `memhtml-entity` meta."""

    kind: Literal["unlabel"]
    path: str
    entity: str


class Archive(Model):
    """Retire the record at `path` to the slot `to`; `html` names the article."""

    kind: Literal["archive"]
    path: str
    to: str
    html: str


class Move(Model):
    """Relocate a live record; `html` names the article."""

    kind: Literal["move"]
    path: str
    to: str
    html: str


Operation: TypeAlias = Annotated[
    Put | Link | Unlink | Label | Unlabel | Archive | Move, Field(discriminator="kind")
]

Reasons: TypeAlias = Annotated[list[str], Field(min_length=1)]


class FormatViolation(Model):
    """The operation cannot stand as it is."""

    kind: Literal["format"]
    path: str
    reasons: Reasons


class DuplicateViolation(Model):
    """A live record, or an earlier put, has the same article."""

    kind: Literal["duplicate"]
    path: str
    existing: str


class ClaimEditViolation(Model):
    """A record holds the path, with another article."""

    kind: Literal["claim-edit"]
    path: str


class ReservedPathViolation(Model):
    """No session, or only curation, writes the path."""

    kind: Literal["reserved-path"]
    path: str


class BatchCapViolation(Model):
    """More operations than one commit holds."""

    kind: Literal["batch-cap"]
    count: Count
    cap: Count


class WriteBarViolation(Model):
    """The store policy refuses the record."""

    kind: Literal["write-bar"]
    path: str
    reasons: Reasons


Violation: TypeAlias = Annotated[
    FormatViolation
    | DuplicateViolation
    | ClaimEditViolation
    | ReservedPathViolation
    | BatchCapViolation
    | WriteBarViolation,
    Field(discriminator="kind"),
]
