"""Cosines among the vectors of a pool, for the steps after the fusion.

Imports numpy inside its functions: only a pool with vectors pays for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt


def cosines(vectors: Sequence[Any | None]) -> npt.NDArray[np.float64]:
    """The cosine of each vector with each, in [-1, 1].

    One that is missing, zero, of another width than the first, or has a NaN is near nothing: 0.
    """
    import numpy as np

    width = next((len(each) for each in vectors if each is not None), 0)
    nothing = np.zeros(width)
    rows = [each if each is not None and len(each) == width else nothing for each in vectors]
    matrix = np.asarray(rows, dtype=np.float64)
    with np.errstate(all="ignore"):
        matrix /= np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    matrix[~np.isfinite(matrix).all(axis=1)] = 0.0
    return np.clip(matrix @ matrix.T, -1.0, 1.0)
