"""The answers of the head commands, one of each, as callers see them."""

from __future__ import annotations

from typing import Any

SHA = "4f" * 20
HEAD: dict[str, Any] = {
    "sha": SHA,
    "records": 3,
    "skipped": None,
    "loadMs": 20,
    "source": "snapshot",
    "snapshotPath": "/srv/notes/.memhtml/snapshots/main.db",
    "ancestorSha": None,
    "reparsed": None,
}

STATUS: dict[str, Any] = {
    "apiVersion": "1",
    "type": "head.status",
    "data": {**HEAD, "server": None},
}
SEARCH: dict[str, Any] = {
    "apiVersion": "1",
    "type": "head.search",
    "data": {
        "query": "relay limit",
        "hits": [
            {
                "path": "areas/inbox/relay.html",
                "score": 0.03278688524590164,
                "arms": ["lexical", "vector"],
                "claim": "The relay batch limit is 11.",
            },
            {
                "path": "areas/inbox/queue.html",
                "score": 0.016129032258064516,
                "arms": ["recency", "vector"],
                "claim": "A queue holds 4096 messages.",
            },
        ],
        "vector": {
            "used": True,
            "reason": None,
            "detail": None,
            "cached": 3,
            "coverage": 1.0,
            "loadMs": 1,
            "embedMs": 31,
        },
        "searchMs": 34.41,
        "head": HEAD,
    },
}
SNAPSHOT: dict[str, Any] = {
    "apiVersion": "1",
    "type": "head.snapshot",
    "data": {
        "mode": "write",
        "sha": SHA,
        "path": "/srv/notes/.memhtml/snapshots/main.db",
        "rows": 3,
        "bytes": 65536,
        "ms": 11,
        "pruned": ["9b" * 20],
    },
}
SNAPSHOT_READ: dict[str, Any] = {
    "apiVersion": "1",
    "type": "head.snapshot",
    "data": {**SNAPSHOT["data"], "mode": "read", "bytes": None, "ms": None, "pruned": None},
}
EMBEDDED: dict[str, Any] = {
    "apiVersion": "1",
    "type": "head.embedded",
    "data": {
        "path": "/srv/notes/.memhtml/vectors/mini@384.vec",
        "modelId": "mini",
        "dimension": 384,
        "records": 3,
        "reused": 1,
        "embedded": 2,
        "empty": 0,
        "cached": 3,
        "bytes": 4744,
        "written": True,
        "loadMs": 2,
        "embedMs": 31,
        "saveMs": 1,
        "ms": 60,
        "head": HEAD,
    },
}
HEADS = {
    "head-status": STATUS,
    "head-search": SEARCH,
    "head-snapshot": SNAPSHOT,
    "head-snapshot-read": SNAPSHOT_READ,
    "head-embed": EMBEDDED,
}
