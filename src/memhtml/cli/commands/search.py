"""`search` and `recall`: the scope of a call, `memhtml.retrieve`, the payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from memhtml.cli.call import Answer, Call

if TYPE_CHECKING:
    from memhtml.embed.port import Embedder
    from memhtml.retrieve.scope import Scope


class _Settings(TypedDict):
    """What both commands hand down beside the scope."""

    embedder: Embedder | None
    now_s: float
    floor: float


def search(call: Call) -> Answer:
    """`search`."""
    from memhtml.retrieve.search import search as run

    return Answer("memory.hits", _ask(call, run, call.number("limit")))


def recall(call: Call) -> Answer:
    """`recall`."""
    from memhtml.retrieve.recall import recall as run

    return Answer("recall.pack", _ask(call, run, call.number("budget")))


def _ask(call: Call, run: Any, bound: int) -> dict[str, Any]:
    from memhtml.index.database import open_index
    from memhtml.retrieve.freshness import warn_unless_current
    from memhtml_format.text import scrub

    settings, scope = _settings(), _scope(call)
    root = call.store()
    with open_index(root) as index:
        warn_unless_current(index.conn, root)
        found: dict[str, Any] = run(index, scrub(call.args[0]), scope, bound, **settings)
        return found


def _settings() -> _Settings:
    import time

    from memhtml import config
    from memhtml.embed.choose import bound_embedder

    return {
        "embedder": bound_embedder(),
        "now_s": time.time(),
        "floor": config.coverage_floor(),
    }


def _scope(call: Call) -> Scope:
    from memhtml.retrieve.scope import Scope

    return Scope(
        memory_types=tuple(call.texts("type")),
        workspace=call.text("workspace"),
        tags=tuple(call.texts("tag")),
        entity=call.text("entity"),
        facets=tuple(call.texts("facet")),
        include_archived=call.switch("include-archived"),
        as_of=call.text("as-of"),
    )
