"""How near each candidate is to the query, measured against the pool it stands in.

A text that is near everything is near every query (the hubs of high-dimensional spaces): from the
cosine with the query goes a share of the mean cosine with the candidate's own nearest neighbours.
Imports numpy inside, and only pools with cosines get here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from memhtml.retrieve.pool import Candidate

NEIGHBOURS = 10
SHARE = 0.4
# In a smaller pool the neighbours are whatever there is, and say nothing.
LEAST_POOL = 2 * NEIGHBOURS
# What is scaled to the range 0 to 1: the best of an arm. Files that are in the pool for being new
# would stretch the range downwards, and press the rest together.
BEST = 40


def closeness(pool: Sequence[Candidate], comparable: Sequence[bool]) -> list[float]:
    """0 to 1 for each candidate: 1 for the nearest of the pool, 0 for the 40th and those behind it.

    `comparable` marks the candidates among which neighbours are looked for: a text about somebody
    else that says the same makes none of them a hub. One without a cosine has the mean of the rest.
    """
    known = [place for place, each in enumerate(pool) if _is_number(each.cosine)]
    if not known:
        return [0.0] * len(pool)
    import numpy as np

    cosines = np.array([pool[place].cosine for place in known], dtype=np.float64)
    if len(known) >= LEAST_POOL:
        cosines -= SHARE * _crowding([pool[at] for at in known], [comparable[at] for at in known])
    best = np.sort(cosines)[::-1][:BEST]
    spread = best[0] - best[-1]
    scaled = np.clip((cosines - best[-1]) / spread, 0.0, 1.0) if spread > 0 else cosines * 0 + 1.0
    found = [float(scaled.mean())] * len(pool)
    for place, value in zip(known, scaled, strict=True):
        found[place] = float(value)
    return found


def _crowding(pool: Sequence[Candidate], comparable: Sequence[bool]) -> npt.NDArray[np.float64]:
    """The mean cosine of each candidate with its nearest neighbours among the comparable ones."""
    import numpy as np

    from memhtml.retrieve.similarity import cosines

    near = cosines([each.vector for each in pool])
    np.fill_diagonal(near, -1.0)
    among = np.array(comparable)
    if among.sum() > NEIGHBOURS:
        near = near[:, among]
    nearest: npt.NDArray[np.float64] = np.sort(near, axis=1)[:, -NEIGHBOURS:]
    return np.asarray(nearest.mean(axis=1), dtype=np.float64)


def _is_number(cosine: float | None) -> bool:
    return cosine is not None and math.isfinite(cosine)
