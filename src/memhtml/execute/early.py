"""Start the process that starts runs, before anything slow is loaded.

It makes its namespaces and loads what it needs while this process loads the rest, which takes
about as long; and it is forked before the first thread (spec `sandbox` §4.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memhtml_sandbox.spawner import Spawner


@contextmanager
def spawning() -> Iterator[Spawner | None]:
    """A spawner for one command; None where there can be none, which the probe then explains."""
    try:
        from memhtml_sandbox.spawner import Spawner

        spawner = Spawner.start()
    except (OSError, AttributeError, ImportError):
        # Not Linux, or no process can be forked.
        yield None
        return
    try:
        yield spawner
    finally:
        spawner.close()
