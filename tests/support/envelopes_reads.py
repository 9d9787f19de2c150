"""The answers of the reads and of the access state, one of each, as callers see them."""

from __future__ import annotations

from typing import Any

SHA = "4f" * 20
A, B = "areas/inbox/relay.html", "resources/queue/depth.html"
TWIN = "archive/2026/areas/inbox/relay.html"
FILE = ".memhtml/state/access.jsonl"
STAMP = "2026-11-30T16:08:35Z"


def _answer(kind: str, **data: Any) -> dict[str, Any]:
    return {"apiVersion": "1", "type": kind, "data": data}


READS: dict[str, dict[str, Any]] = {
    "detail": _answer(
        "memory.detail",
        path=A,
        title="Relay",
        metas={
            "memoryType": "semantic",
            "status": "active",
            "createdAt": STAMP,
            "updatedAt": "2026-11-30",
        },
        entities=["service:relay"],
        tags=[],
        links=[{"rel": "relates_to", "href": f"/{B}"}],
        gist="The relay batch limit is 11.",
        body="The relay batch limit is 11.",
        html="<p><mark>The relay batch limit is 11.</mark></p>",
        archived=False,
        warnings=[],
    ),
    "health": _answer(
        "status.health",
        root="/srv/notes",
        headSha=SHA,
        dirty=True,
        dirtyPaths=[A],
        countsByType={},
        archivedCount=0,
        edges=0,
        derivedEdges=0,
        chunks=0,
        embeddings=0,
        traces=0,
        indexFresh=False,
        indexHeadSha=None,
        embedModel="multilingual-e5-small-q4@384",
        embedderUp=True,
        vectorCoverage=0.5,
        vectorCoverageFloor=0.95,
        hasState=True,
    ),
    "neighbors": _answer(
        "memory.neighbors",
        center=A,
        depth=1,
        limit=200,
        nodes=[{"path": B, "title": "Depth", "hop": 1, "rel": "relates_to", "derived": False}],
        edges=1,
        nodesDropped=0,
        scanSaturated=False,
    ),
    "resolved": _answer(
        "memory.resolved",
        requested=A,
        path=TWIN,
        hops=1,
        steps=[{"from": A, "to": TWIN, "via": "archive_move"}],
        stopReason="archived",
        title="Relay",
        indexedCommit=SHA,
    ),
    "reinforced": _answer("memory.reinforced", bumped=[A], cooledDown=[B], signal="positive"),
    "list": _answer(
        "memory.list",
        files=[
            {
                "path": A,
                "title": "Relay",
                "memoryType": "semantic",
                "gist": "The relay batch limit is 11.",
                "workspace": None,
                "para": "areas",
                "confidence": 0.5,
                "importance": 5,
                "archived": False,
                "updatedAt": STAMP,
                "estTokens": 7,
            }
        ],
        nextCursor=A,
    ),
    "activity": _answer(
        "entity.activity",
        entities=[
            {
                "entity": "service:relay",
                "entityType": "service",
                "entityName": "relay",
                "fileCount": 1,
                "lastActivityAt": STAMP,
                "lastEventAt": None,
                "lastWrittenAt": STAMP,
            }
        ],
        entityCount=1,
        limit=50,
    ),
    "tasks": _answer(
        "task.list",
        tasks=[
            {
                "path": "areas/inbox/tasks/ask.html",
                "title": "Ask",
                "taskStatus": "blocked",
                "dueAt": None,
                "workspace": None,
                "archived": False,
                "updatedAt": STAMP,
                "blockedBy": ["areas/inbox/tasks/find.html"],
                "estTokens": 12,
            }
        ],
        nextCursor=None,
    ),
    "state-export": _answer(
        "state.export", path=FILE, rows=3, bytes=618, written=True, commitSha=SHA
    ),
    "state-import": _answer(
        "state.import", path=FILE, rows=3, restored=3, skipped=0, hasState=True
    ),
}
"""Answer by a short name."""
