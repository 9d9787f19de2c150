"""The answers of `search` and `recall`, one of each, as callers see them."""

from __future__ import annotations

from typing import Any

DEPTH, RELAY = "resources/queue/queue-depth-cap.html", "areas/inbox/relay.html"
OLD = "archive/2026/areas/inbox/cap.html"

HITS: dict[str, Any] = {
    "apiVersion": "1",
    "type": "memory.hits",
    "data": {
        "hits": [
            {
                "path": DEPTH,
                "title": "Queue depth cap",
                "gist": "The ingest queue depth cap is 4096.",
                "memoryType": "semantic",
                "score": 1.0,
                "confidence": 0.9,
                "updatedAt": "2026-11-30T16:08:35Z",
                "snippet": "The ingest queue depth cap is 4096.",
                "entities": ["service:ingest"],
                "supersededBy": None,
                "estTokens": 9,
            }
        ],
        "degraded": True,
        "vectorCoverage": 0.0,
        "arms": ["fts", "recency", "salience"],
        "entityScope": "service:ingest",
        "scopeEmpty": False,
        "archivedMatches": 0,
        "archived": [],
    },
}
NO_HITS: dict[str, Any] = {
    "apiVersion": "1",
    "type": "memory.hits",
    "data": {
        "hits": [],
        "degraded": False,
        "vectorCoverage": 1.0,
        "arms": ["fts", "vector", "recency", "salience"],
        "entityScope": None,
        "scopeEmpty": True,
        "archivedMatches": 2,
        "archived": [{"path": OLD, "supersededBy": DEPTH}],
    },
}
PACK: dict[str, Any] = {
    "apiVersion": "1",
    "type": "recall.pack",
    "data": {
        "arcs": {"disclosed": [], "indexLines": [], "spentChars": 0, "truncated": False},
        "memories": {
            "disclosed": [
                {
                    "path": RELAY,
                    "title": "Relay",
                    "gist": "The relay batch limit is 11.",
                    "memoryType": "semantic",
                    "body": "The relay batch limit is 11.",
                }
            ],
            "indexLines": [
                {
                    "path": DEPTH,
                    "title": "Queue depth cap",
                    "gist": "The ingest queue depth cap is 4096.",
                    "memoryType": "semantic",
                    "estTokens": 9,
                }
            ],
            "spentChars": 28,
            "truncated": True,
        },
        "spentChars": 28,
        "truncated": True,
        "degraded": True,
        "vectorCoverage": 0.5,
    },
}
SEARCHES = {"hits": HITS, "no-hits": NO_HITS, "recall": PACK}
