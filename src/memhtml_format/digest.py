"""Git blob ids and the content hash of an article (spec `format` §1.2, §5)."""

from __future__ import annotations

from hashlib import sha1, sha256

from memhtml_format.html import canonical_of_markup


def blob_sha(data: bytes) -> str:
    """The id git gives to a file of these bytes, 40 hex digits."""
    digest = sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def hash_of_canonical(text: str) -> str:
    """`sha256:` and 64 hex digits over a canonical text."""
    return "sha256:" + sha256(text.encode("utf-8", "replace")).hexdigest()


def article_hash(markup: str) -> str:
    """The content hash of a document or, when no `article` stands in it, of article markup.

    Raises `TooTangled`.
    """
    return hash_of_canonical(canonical_of_markup(markup))
