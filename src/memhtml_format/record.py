"""The record."""
from __future__ import annotations

from typing import NamedTuple


class Link(NamedTuple):
    """One typed edge of a head: the bare rel and the href as written."""

    rel: str
    href: str


class Facet(NamedTuple):
    """One `dt`/`dd` pair; `number` is the first finite `data` value inside the `dd`."""

    name: str
    value: str
    number: float | None


class Problem(NamedTuple):
    """One violated constraint: its code in spec `format` §3.6–3.7 and a sentence."""

    code: str
    text: str


class Record(NamedTuple):
    """What one memory file says (spec `format` §1.2, §4). Absent single values are None."""

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
    confidence: float | None
    importance: int | None
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    links: tuple[Link, ...]
    facets: tuple[Facet, ...]
    body_text: str
    disclosure_text: str
    derived_entities: tuple[str, ...]


class Reading(NamedTuple):
    """The outcome of reading a file: a record, or the problems that make it none."""

    record: Record | None
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
