"""reserved-path: what no session, or only curation, may touch (spec `write-bar` §4.1)."""

from __future__ import annotations

from memhtml_format.ops import Op, touched
from memhtml_format.paths import reserved
from memhtml_format.violations import Violation


def reserved_paths(op: Op, scope: str) -> list[Violation]:
    """One violation for each touched path that `scope` may not touch. A link target is none."""
    paths = dict.fromkeys(touched(op))
    return [Violation("reserved-path", path) for path in paths if reserved(path, scope)]
