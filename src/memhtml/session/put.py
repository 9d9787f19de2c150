"""`session put`: render JSONL lines, judge them with the log, append them (spec `sessions` §6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from memhtml import log as report
from memhtml import policy as store_policy
from memhtml.errors import MemhtmlError, StorageError
from memhtml.session.bound import Identity, open_session
from memhtml.session.log import append
from memhtml.session.view import fold_log, now_second, touched_by
from memhtml_format import violations as bar_findings
from memhtml_format.jsonl import LabelLine, Line, WriteLine
from memhtml_format.ops import AddLabel, DropLabel, Op, Put
from memhtml_format.record import read
from memhtml_format.render import PathExhausted, StrictPath, plan_path, render
from memhtml_format.violations import Violation

if TYPE_CHECKING:
    from memhtml.corpus.interface import Corpus
    from memhtml.corpus.view import View
    from memhtml.embed.port import Embedder


def put(root: str, identity: Identity, lines: Sequence[Line]) -> dict[str, Any]:
    """The payload of `session.appended`.

    Errors raised: `ERR_INVALID_MEMORY` when a violation refuses the call, `session.locked`,
    `session.moved`, `session.put.pathExhausted`, `policy.invalid`, and `ERR_INVALID_FLAG` for a bad
    variable of the embedder. Nothing is appended then.
    """
    from memhtml.bar.judge import judge
    from memhtml.corpus.head import open_head
    from memhtml.embed.choose import bound_embedder
    from memhtml.store.repo import Repo

    embedder = bound_embedder()
    log, started = open_session(root, identity)
    policy = store_policy.load(root)
    refuse_too_many(len(log.ops) + len(lines))
    at = now_second()
    with open_head(root, log.ref, log.base_sha, repo=Repo(root)) as head:
        folded = fold_log(log, head.read, at)
        view = head.view(folded.files, folded.gone)
        planned = plan(lines, view, at)
        found = judge((*log.ops, *planned), head, policy, log.scope)
        refuse_blocked(found, planned, lines, run_bound=identity.run_bound)
        near = rank_neighbours(root, view, planned, embedder)
        loaded = head.report.to_json()
    ops = append(root, log, planned).ops
    return {
        "id": log.id,
        "started": started,
        "baseSha": log.base_sha,
        "appended": len(planned),
        "ops": len(ops),
        "paths": [op.path for op in planned if isinstance(op, Put)],
        "labels": [
            {"kind": op.kind, "path": op.path, "entity": op.entity}
            for op in planned
            if isinstance(op, AddLabel | DropLabel)
        ],
        **near,
        "violations": [bar_findings.encode(v) for v in found],
        "head": loaded,
    }


def refuse_too_many(count: int) -> None:
    """Judge the batch cap before anything is rendered: each line is one operation.

    Thousands of lines would take seconds, and of one title would run out of names.
    """
    if count > bar_findings.BATCH_CAP:
        cap = Violation("batch-cap", held=count, cap=bar_findings.BATCH_CAP)
        refuse_blocked([cap], (), (), run_bound=False)


def plan(lines: Sequence[Line], view: Corpus, at: str) -> list[Op]:
    """Render and place each line (spec `format` §2.5, §6); a label line is an operation already."""
    planned: list[Op] = []
    claimed: set[str] = set()

    def taken(path: str) -> bool:
        return path in claimed or view.record(path) is not None

    for line in lines:
        if isinstance(line, LabelLine):
            shape = AddLabel if line.op == "label" else DropLabel
            planned.append(shape(line.path, line.entity))
            continue
        path = place(line, at, taken)
        claimed.add(path)
        planned.append(Put(path, render(line.draft, at).html))
    return planned


def place(line: WriteLine, at: str, taken: Callable[[str], bool]) -> str:
    """The path of a write line. `ERR_INVALID_MEMORY` for a strict path that cannot be used."""
    try:
        return plan_path(line.draft, at, taken)
    except StrictPath as error:
        raise MemhtmlError("ERR_INVALID_MEMORY", f"line {line.number}: {error}") from error
    except PathExhausted as error:
        raise StorageError("session.put.pathExhausted", f"line {line.number}: {error}") from error


def refuse_blocked(
    found: Sequence[Violation], ops: Sequence[Op], lines: Sequence[Line], *, run_bound: bool
) -> None:
    """Raise one `ERR_INVALID_MEMORY` for the violations that refuse the whole call.

    `lines` are what `ops` were made of; of several, each sentence names its own.
    """
    blocked = bar_findings.blocking(found, touched_by(tuple(ops)), run_bound=run_bound)
    if not blocked:
        return
    made_of = {op.path: line for op, line in zip(ops, lines, strict=True)}
    sentences = [
        _sentence(each, made_of.get(each.path or ""), several=len(lines) > 1) for each in blocked
    ]
    raise MemhtmlError(
        "ERR_INVALID_MEMORY",
        f"nothing was appended: {' | '.join(sentences)}",
        suggestions=("memhtml help session put",),
    )


def _sentence(violation: Violation, line: Line | None, *, several: bool) -> str:
    """A violation for people, with what its line lacks and, of several lines, its number."""
    text = bar_findings.sentence(violation)
    if line is None:
        return text
    if isinstance(line, WriteLine) and line.draft.body is line.draft.article_html is None:
        text = f"{text}; the line has neither body nor article_html"
    return f"line {line.number}: {text}" if several else text


def rank_neighbours(
    root: str, view: View, planned: Sequence[Op], embedder: Embedder | None
) -> dict[str, Any]:
    """The `neighbors` and `vector` fields; a database that fails here never fails the put."""
    import sqlite3

    from memhtml.retrieve.head_search import Searched, search_near, unused

    puts = [op for op in planned if isinstance(op, Put)]
    records = [read(op.path, op.html.encode()).record for op in puts]
    queries = ["" if r is None else f"{r.title} {r.claim}" for r in records]
    texts = ["" if r is None else r.body_text for r in records]
    try:
        found = search_near(root, view, queries, texts, 3, embedder=embedder)
    except sqlite3.Error as error:
        report.warn(f"the neighbours were not ranked: {error}")
        reason = "embedder-off" if embedder is None else "cache-unreadable"
        found = Searched([[] for _query in queries], unused(reason))
    near = [
        {"path": op.path, "hits": [hit.to_json() for hit in hits]}
        for op, hits in zip(puts, found.hits, strict=True)
    ]
    return {"neighbors": near, "vector": found.vector}
