"""The deterministic hashed embedder (spec `retrieval` §19): for tests, gates and no weights.

It knows words, not meanings. Two texts with the same words have the same vector, everywhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memhtml.embed.port import ModelUnavailable

if TYPE_CHECKING:
    from memhtml.embed.port import Vector

DIM = 256
MODEL_ID = "hash"
_WORD = re.compile(r"[a-z0-9]+")


class HashedEmbedder:
    """Each word adds 1.0 at one place and 0.5 at another, both from its SHA-256; then unit length.

    A text without a word of ASCII letters or digits has the zero vector, which is near nothing.
    """

    def __init__(self, dim: int = DIM) -> None:
        self.model_id = MODEL_ID
        self.dim = dim

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text. Raises `ModelUnavailable` without numpy."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        """The vector of a text; queries and documents have one form."""
        try:
            import numpy as np  # 60 ms, and only who embeds pays.
        except ImportError as error:
            raise ModelUnavailable(
                self.model_id, "numpy is not installed; install memhtml[embed]"
            ) from error
        vector = np.zeros(self.dim, dtype=np.float64)
        for word in _WORD.findall(text.lower()):
            digest = hashlib.sha256(word.encode()).digest()
            vector[int.from_bytes(digest[:4], "big") % self.dim] += 1.0
            vector[int.from_bytes(digest[4:8], "big") % self.dim] += 0.5
        length = float(np.sqrt(vector @ vector))
        return (vector / length if length else vector).astype(np.float32)
