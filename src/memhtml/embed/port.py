"""The one port that both ranking paths embed through (spec `retrieval` §21).

Types, the failure and the name of a space. Imports no numpy: naming an embedder must cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector: TypeAlias = npt.NDArray[np.float32]


class ModelUnavailable(Exception):
    """A bound embedder could not answer; `reason` is words for people, without any text embedded.

    `str()` is the model's id and the reason.
    """

    def __init__(self, model_id: str, reason: str) -> None:
        super().__init__(f"{model_id}: {reason}")
        self.model_id = model_id
        self.reason = reason


class Embedder(Protocol):
    """A model that turns texts into vectors of one space.

    Vectors are 1-d float32 arrays of `dim` finite numbers; they need not be normalized. Every
    method, and `dim` where only the model itself knows it, may raise `ModelUnavailable`, and
    nothing else.
    """

    @property
    def model_id(self) -> str:
        """The model's name, the first half of its space. Costs nothing."""
        ...

    @property
    def dim(self) -> int:
        """The width of a vector. A remote model of unstated width is asked once."""
        ...

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per document, in order; the model's passage form."""
        ...

    def embed_query(self, text: str) -> Vector:
        """The vector of a query; the model's query form."""
        ...


def space(embedder: Embedder) -> str:
    """`<model_id>@<dim>`: vectors of two spaces are never compared.

    Raises `ModelUnavailable` when the width is unknown and the model cannot be asked.
    """
    return f"{embedder.model_id}@{embedder.dim}"


def checked(embedder: Embedder, vectors: Sequence[Vector], count: int) -> list[Vector]:
    """The vectors an embedder gave for `count` texts, or `ModelUnavailable` (`retrieval` §21).

    It must be as many, each as wide as the space says, and of finite numbers.
    """
    import numpy as np

    if len(vectors) != count or any(each.shape != (embedder.dim,) for each in vectors):
        raise ModelUnavailable(embedder.model_id, "it gave vectors of another number or width")
    if not all(np.isfinite(each).all() for each in vectors):
        raise ModelUnavailable(embedder.model_id, "it gave a number that is not finite")
    return list(vectors)


def unicode_text(text: str) -> str:
    """The text without what is no Unicode: each lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def may_be_space(embedder: Embedder, stored: str) -> bool:
    """Whether a stored space may be the embedder's; asks no model, so it never fails.

    Exact, but for a remote model of yet unknown width: then the name alone decides.
    """
    model_id, _at, width = stored.rpartition("@")
    known = getattr(embedder, "known_dim", 0)
    if known == 0:  # Only a model that may not know its width has the property.
        known = embedder.dim
    return model_id == embedder.model_id and (known is None or width == str(known))
