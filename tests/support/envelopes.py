"""Answers as callers see them: the field sets and orders of the published examples.

Shapes and key orders are those of the project's guide to sessions and of spec `cli` §10; values
are our own.
"""

from __future__ import annotations

from typing import Any

from tests.support.envelopes_head import HEADS
from tests.support.envelopes_reads import READS
from tests.support.envelopes_search import SEARCHES
from tests.support.envelopes_store import STORE

BASE = "4f" * 20
NEXT = "9b" * 20
MOUNT = "/mnt/memhtml"
NOTE = "areas/inbox/the-relay-retries-twice.html"
FILE = "projects/relay/charges-settle-in-a-day.html"

HEAD: dict[str, Any] = {
    "sha": BASE,
    "records": 3,
    "skipped": 1,
    "loadMs": 44,
    "source": "git",
    "snapshotPath": None,
    "ancestorSha": None,
    "reparsed": None,
}
SERVER: dict[str, Any] = {
    "used": False,
    "base": None,
    "reason": "no-server",
    "detail": "ENOENT",
}

STARTED: dict[str, Any] = {
    "apiVersion": "1",
    "type": "session.started",
    "data": {"id": "s1", "baseSha": BASE, "ref": "refs/heads/main", "ops": 0, "head": HEAD},
}
APPENDED: dict[str, Any] = {
    "apiVersion": "1",
    "type": "session.appended",
    "data": {
        "id": "s1",
        "started": False,
        "baseSha": BASE,
        "appended": 1,
        "ops": 1,
        "paths": [NOTE],
        "labels": [],
        "neighbors": [
            {
                "path": NOTE,
                "hits": [
                    {
                        "path": "resources/runbook/drain-first.html",
                        "score": 0.01639344262295082,
                        "arms": ["lexical"],
                        "claim": "Drain first.",
                    }
                ],
            }
        ],
        "vector": {
            "used": False,
            "reason": "embedder-off",
            "detail": None,
            "cached": None,
            "coverage": None,
            "loadMs": None,
            "embedMs": None,
        },
        "violations": [],
        "head": HEAD,
    },
}
EXEC: dict[str, Any] = {
    "apiVersion": "1",
    "type": "session.exec.report",
    "data": {
        "id": "s1",
        "baseSha": BASE,
        "lang": "bash",
        "corpusMount": MOUNT,
        "sha": BASE,
        "exitCode": 0,
        "stdout": "",
        "stderr": "",
        "durationMs": 23,
        "timeoutMs": 30000,
        "timedOut": False,
        "ops": 1,
        "appended": 1,
        "opsTotal": 2,
        "harvested": [{"kind": "put", "path": FILE}],
        "rejected": [],
        "violations": [],
        "blocking": [],
        "started": False,
        "head": HEAD,
        "server": SERVER,
    },
}
STATUS: dict[str, Any] = {
    "apiVersion": "1",
    "type": "session.status",
    "data": {
        "id": "s1",
        "ref": "refs/heads/main",
        "baseSha": BASE,
        "refSha": BASE,
        "behind": False,
        "ops": 2,
        "puts": 2,
        "archives": 0,
        "links": 0,
        "unlinks": 0,
        "labels": 0,
        "unlabels": 0,
        "moves": 0,
        "paths": [NOTE, FILE],
        "pending": None,
    },
}
_COMMIT_START: dict[str, Any] = {"id": "s1", "ref": "refs/heads/main", "baseSha": BASE}
_COMMIT_END: dict[str, Any] = {"snapshot": None, "dropped": [], "via": "local", "server": SERVER}
COMMITTED: dict[str, Any] = {
    "apiVersion": "1",
    "type": "session.committed",
    "data": {
        **_COMMIT_START,
        "kind": "committed",
        "sha": NEXT,
        "paths": [NOTE, FILE],
        "contradictions": [],
        "restatements": [],
        "worktreeSynced": True,
        "recovered": False,
        "snapshot": {
            "sha": NEXT,
            "path": "/home/you/memhtml/.memhtml/snapshots/main.db",
            "bytes": 9426,
            "rows": 5,
            "ms": 25,
            "pruned": [],
        },
        "dropped": [],
        "via": "local",
        "server": SERVER,
    },
}
REBASE_NEEDED: dict[str, Any] = {
    "apiVersion": "1",
    "type": "session.committed",
    "data": {
        **_COMMIT_START,
        "kind": "rebase-needed",
        "mainSha": NEXT,
        "overlapping": [],
        **_COMMIT_END,
    },
}
REFUSED: dict[str, Any] = {
    "apiVersion": "1",
    "type": "session.committed",
    "data": {
        **_COMMIT_START,
        "kind": "refused",
        "violations": [
            {"kind": "format", "path": NOTE, "reasons": ["no article"]},
            {"kind": "duplicate", "path": NOTE, "existing": FILE},
            {"kind": "claim-edit", "path": NOTE},
            {"kind": "reserved-path", "path": NOTE},
            {"kind": "write-bar", "path": NOTE, "reasons": ["no anchor"]},
            {"kind": "batch-cap", "count": 201, "cap": 200},
        ],
        **_COMMIT_END,
    },
}
DIRTY: dict[str, Any] = {
    "apiVersion": "1",
    "type": "session.committed",
    "data": {**_COMMIT_START, "kind": "worktree-dirty", "paths": [NOTE], **_COMMIT_END},
}
REBASED: dict[str, Any] = {
    "apiVersion": "1",
    "type": "session.rebased",
    "data": {
        "id": "s1",
        "ref": "refs/heads/main",
        "from": BASE,
        "baseSha": NEXT,
        "moved": True,
        "ops": 2,
        "head": HEAD | {"sha": NEXT},
    },
}
PRUNED: dict[str, Any] = {
    "apiVersion": "1",
    "type": "session.pruned",
    "data": {
        "dryRun": True,
        "cutoff": "2026-10-11T05:51:45.347Z",
        "olderThanMs": 604800000,
        "indexes": {"count": 0, "bytes": 0},
        "refs": {"count": 0},
        "locks": {"count": 0},
        "logs": {"count": 0},
        "unlanded": [{"id": "s2", "ops": 3, "pending": None, "ageMs": 700000000}],
        "busy": [],
        "unreadable": [],
        "olderThan": "7d",
    },
}
INIT: dict[str, Any] = {
    "apiVersion": "1",
    "type": "repo.init",
    "data": {"root": "/srv/notes", "created": True, "headSha": NEXT, "wrote": ["README.html"]},
}
_FLAG: dict[str, Any] = {
    "name": "lang",
    "type": "string",
    "description": "The script's language.",
    "values": ["bash", "js"],
    "default": "bash",
}
_COMMAND: dict[str, Any] = {
    "name": "session exec",
    "summary": "Run a script.",
    "args": [{"name": "dash", "description": "Standard input.", "required": False}],
    "flags": [_FLAG],
    "responseTypes": ["session.exec.report"],
    "examples": ["memhtml session exec --id s1 -"],
    "supportsJson": True,
    "supportsDense": True,
}
MANIFEST: dict[str, Any] = {
    "apiVersion": "1",
    "type": "cli.manifest",
    "data": {
        "name": "memhtml",
        "version": "0.1.0",
        "summary": "A store of memories.",
        "apiVersion": "1",
        "guide": [{"topic": "first-call", "body": "Start here."}],
        "globalFlags": [
            {"name": "dense", "type": "boolean", "description": "Short.", "default": False}
        ],
        "errorCodes": ["ERR_UNKNOWN_COMMAND"],
        "config": [{"name": "MEMHTML_SESSION", "description": "Binds a run.", "fallback": None}],
        "responseTypes": ["cli.manifest"],
        "commands": [_COMMAND],
    },
}
HELP: dict[str, Any] = {
    "apiVersion": "1",
    "type": "cli.help",
    "data": {
        **_COMMAND,
        "usage": "memhtml session exec [dash] [flags]",
        "globalFlags": [],
        "usageErrorCodes": ["ERR_UNKNOWN_COMMAND"],
        "seeAlso": ["session put"],
    },
}
REPLAY: dict[str, Any] = {
    "apiVersion": "1",
    "type": "replay.report",
    "data": {
        "total": 1,
        "passed": 0,
        "failed": 1,
        "skipped": 0,
        "fixtures": [
            {
                "dir": "harvest/sessions/move",
                "name": "move",
                "state": "failed",
                "durationMs": 24,
                "differences": [{"field": "harvested", "expected": [], "got": [{"kind": "move"}]}],
            }
        ],
    },
}
READ_ONLY_EXEC: dict[str, Any] = {
    "apiVersion": "1",
    "type": "exec.report",
    "data": {
        "lang": "js",
        "corpusMount": MOUNT,
        "sha": BASE,
        "exitCode": 0,
        "stdout": "196\n",
        "stderr": "",
        "durationMs": 41,
        "timeoutMs": 30000,
        "timedOut": False,
    },
}
AGENTS_DOC: dict[str, Any] = {
    "apiVersion": "1",
    "type": "agents.doc",
    "data": {"path": "AGENTS.md", "bytes": 48211, "inSync": False, "written": True},
}
DOCTOR: dict[str, Any] = {
    "apiVersion": "1",
    "type": "doctor.report",
    "data": {
        "root": "/srv/notes",
        "healthy": False,
        "dangling": [
            {
                "srcPath": NOTE,
                "rel": "supports",
                "dstPath": FILE,
                "rewriteTo": f"archive/2026/{FILE}",
            }
        ],
        "orphanAccessRows": ["areas/inbox/gone.html"],
        "inboxDepth": 4,
        "inboxCrowded": False,
        "inboxTaskDepth": 1,
        "inboxTasksCrowded": False,
        "overdueTasks": [
            {"path": "areas/inbox/tasks/a.html", "taskStatus": "todo", "dueAt": "2026-11-01"}
        ],
        "staleBlockers": [
            {
                "path": "areas/inbox/tasks/a.html",
                "blockerPath": "archive/2026/areas/inbox/tasks/b.html",
                "blockerState": "archived",
            }
        ],
        "untypedEntities": [{"entityName": "relay", "files": 2}],
        "untypedEntityTotal": 1,
        "warnings": [{"path": NOTE, "warnings": ["img is outside the element vocabulary"]}],
        "unparseable": ["areas/inbox/broken.html"],
        "supersededLive": [{"path": NOTE, "supersededBy": FILE}],
        "indexFresh": True,
        "indexHeadSha": BASE,
        "headSha": BASE,
        "embedModelMatches": True,
        "storedEmbedModel": "hash@256",
        "configuredEmbedModel": None,
        "vectorCoverage": 0.5,
        "vectorCoverageFloor": 0.95,
        "vectorCoverageLow": True,
        "vectorCoverageRemedy": "memhtml index embed",
        "chunks": 12,
        "embeddings": 6,
        "dirty": ["README.html"],
        "policy": {"ok": True, "error": None},
        "hooks": {"ok": False, "error": ".memhtml/hooks.json: is no JSON object"},
        "repaired": {
            "rewritten": 1,
            "dropped": 0,
            "failedWrites": [],
            "prunedAccessRows": 1,
            "commitSha": NEXT,
        },
    },
}
PUBLISH: dict[str, Any] = {
    "apiVersion": "1",
    "type": "publish.report",
    "data": {
        "root": "/srv/notes",
        "artifacts": 19,
        "written": 2,
        "paths": ["areas/inbox/index.html", "sitemap.xml"],
        "commitSha": NEXT,
    },
}
FAILURE: dict[str, Any] = {
    "apiVersion": "1",
    "error": "storage operation failed: session.read",
    "code": "ERR_STORAGE",
    "suggestions": ["memhtml session start --id s1"],
}

ANSWERS: dict[str, dict[str, Any]] = {
    "started": STARTED,
    "appended": APPENDED,
    "exec": EXEC,
    "status": STATUS,
    "committed": COMMITTED,
    "rebase-needed": REBASE_NEEDED,
    "refused": REFUSED,
    "dirty": DIRTY,
    "rebased": REBASED,
    "pruned": PRUNED,
    "init": INIT,
    "manifest": MANIFEST,
    "help": HELP,
    "replay": REPLAY,
    **READS,
    **STORE,
    **SEARCHES,
    **HEADS,
}
"""Every success, by a short name."""
