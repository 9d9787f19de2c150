"""`session status`: a log and its ref, read without head, lock or server (spec `sessions` §7)."""

from __future__ import annotations

from typing import Any

from memhtml.session.bound import Identity
from memhtml.session.log import read_log
from memhtml.store import refs
from memhtml_format.ops import touched

COUNTED = (
    ("puts", "put"),
    ("archives", "archive"),
    ("links", "link"),
    ("unlinks", "unlink"),
    ("labels", "label"),
    ("unlabels", "unlabel"),
    ("moves", "move"),
)


def status(root: str, identity: Identity) -> dict[str, Any]:
    """The payload of `session.status`. Errors raised: those of `read_log`."""
    log = read_log(root, identity.id)
    tip = refs.resolve(root, log.ref)
    kinds: list[str] = [op.kind for op in log.ops]
    return {
        "id": log.id,
        "ref": log.ref,
        "baseSha": log.base_sha,
        "refSha": tip,
        "behind": tip is not None and tip != log.base_sha,
        "ops": len(kinds),
        **{field: kinds.count(kind) for field, kind in COUNTED},
        "paths": sorted({path for op in log.ops for path in touched(op)}),
        "pending": log.pending,
    }
