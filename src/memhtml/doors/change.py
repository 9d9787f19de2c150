"""What a door decided to do to the store, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memhtml.doors.provenance import SessionLink
from memhtml_format.record import Detail


class Change(NamedTuple):
    """One commit: its message, the files it writes and removes.

    `known` are readings of written files that the index need not make again, by path; `displaced`
    memories whose path another one takes, old path to new; `links` the rows that tie what was
    written to its conversation.
    """

    message: str
    writes: Mapping[str, bytes]
    removals: tuple[str, ...] = ()
    known: Mapping[str, Detail] = {}
    displaced: Mapping[str, str] = {}
    links: tuple[SessionLink, ...] = ()
