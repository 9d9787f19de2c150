"""How a body text is cut for embedding (spec `retrieval` §3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from memhtml_format.text import trim

CHUNK_CHARS = 1800

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


class Chunk(NamedTuple):
    """One piece of a body. `id` depends on the article alone, so a moved file keeps its vectors."""

    ordinal: int
    id: str
    text: str


def chunks_of(content_hash: str, body_text: str) -> list[Chunk]:
    """The chunks of a body in order; none for a blank one. No overlap, no text lost."""
    text = trim(body_text)
    pieces = [text] if 0 < len(text) <= CHUNK_CHARS else _packed(text)
    return [
        Chunk(ordinal, chunk_id(content_hash, ordinal), piece)
        for ordinal, piece in enumerate(pieces)
    ]


def chunk_id(content_hash: str, ordinal: int) -> str:
    """64 hex digits that name one chunk of an article."""
    return sha256(f"{content_hash}:{ordinal}".encode()).hexdigest()


def _packed(text: str) -> list[str]:
    """Sentences joined by one space up to the limit."""
    pieces: list[str] = []
    for unit in _units(text):
        if pieces and len(pieces[-1]) + 1 + len(unit) <= CHUNK_CHARS:
            pieces[-1] = f"{pieces[-1]} {unit}"
        else:
            pieces.append(unit)
    return pieces


def _units(text: str) -> Iterator[str]:
    for sentence in filter(None, _SENTENCE_END.split(text)):
        for start in range(0, len(sentence), CHUNK_CHARS):
            yield sentence[start : start + CHUNK_CHARS]
