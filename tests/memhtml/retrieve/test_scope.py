"""What a scope lets through, in every arm and in both of its forms (spec `retrieval` §6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.reads import meta
from tests.support.retrieve import NOW_S, happened, memory, plan_of, statements, store

from memhtml.index.database import Index
from memhtml.retrieve import arms, fuse, scope
from memhtml.retrieve.query import match_of
from memhtml.retrieve.scope import Scope, archive_listing, make_filter, narrows, split_facet

RELAY = "projects/relay/limit.html"
QUEUE = "resources/queue/depth.html"
DRAIN = "areas/inbox/drain.html"
ARC = "areas/arcs/year.html"
TASK = "projects/relay/tasks/fix.html"
OLD = "archive/2026/areas/inbox/old.html"
OLD_TASK = "archive/2026/areas/inbox/old-task.html"


def facets(**values: str) -> str:
    """A definition list."""
    return f"<dl>{''.join(f'<dt>{n}</dt><dd>{v}</dd>' for n, v in values.items())}</dl>\n"


FILES = {
    RELAY: memory(
        "The relay batch limit is 11.",
        head=meta("tag", "limits") + meta("entity", "service:Relay"),
        more=facets(region="eu", tier="one"),
    ),
    QUEUE: memory(
        "The queue depth limit is 4096.",
        kind="procedural",
        head=meta("tag", "limits") + meta("tag", "queues") + meta("entity", "service:queue"),
        more=facets(region="us", tier="one"),
    ),
    DRAIN: memory("Drain before the limit.", head=meta("tag", "runbook") + meta("entity", "plain")),
    ARC: memory("A year of limits.", kind="arc"),
    TASK: memory("Raise the limit.", kind="task"),
    OLD: memory("The old limit was 5.", head=meta("tag", "limits")),
    OLD_TASK: memory("Lower the limit.", kind="task"),
}
LIVE = {RELAY, QUEUE, DRAIN, ARC}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """An index of seven files that all speak of a limit, two of them archived."""
    with store(str(tmp_path_factory.mktemp("scope")), FILES) as opened:
        yield opened


@pytest.fixture(params=["listed", "wide"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Narrow scopes are listed; with no narrow ones every scope is a condition."""
    if request.param == "wide":
        monkeypatch.setattr(scope, "NARROW", -1)
    return str(request.param)


def in_scope(index: Index, wanted: Scope) -> set[str]:
    """What every arm finds; they agree."""
    found = make_filter(index.conn, wanted)
    match = match_of("limit")
    assert match is not None
    words = {each.id for each in arms.lexical(index.conn, match, found)}
    paths = dict(index.conn.execute("SELECT id, path FROM files").fetchall())
    fused, fired = fuse.fused(
        index.conn, fuse.Orderings(None, None), found, 100, now_s=NOW_S, has_state=True
    )
    assert fired == ["recency", "salience"]
    by_fold = {each.path for each in fused}
    assert {paths[each] for each in words} == by_fold
    return by_fold


@pytest.mark.parametrize(
    ("wanted", "paths"),
    [
        ({}, LIVE),
        ({"memory_types": ("task",)}, {TASK}),
        ({"memory_types": ("task", "arc")}, {TASK, ARC}),
        ({"memory_types": ("verdict",)}, set()),
        ({"memory_types": (" ",)}, LIVE),
        ({"workspace": "relay"}, {RELAY}),
        ({"workspace": "Relay"}, set()),
        ({"workspace": "relay", "memory_types": ("task",)}, {TASK}),
        ({"workspace": ""}, LIVE),
        ({"tags": ("limits",)}, {RELAY, QUEUE}),
        ({"tags": ("queues", "runbook", "")}, {QUEUE, DRAIN}),
        ({"tags": ("Limits",)}, set()),
        ({"entity": " SERVICE:relay "}, {RELAY}),
        ({"entity": "service:rel"}, set()),
        ({"entity": "plain"}, {DRAIN}),
        ({"entity": "  "}, LIVE),
        ({"facets": ("region=eu",)}, {RELAY}),
        ({"facets": ("region = eu", "region=us")}, {RELAY, QUEUE}),
        ({"facets": ("region=eu", "tier=two")}, set()),
        ({"facets": ("region=eu", "tier=one")}, {RELAY}),
        ({"facets": ("region=EU",)}, set()),
        ({"facets": ("region", "region=", "=eu")}, LIVE),
        ({"include_archived": True}, LIVE | {OLD}),
        ({"include_archived": True, "tags": ("limits",)}, {RELAY, QUEUE, OLD}),
        ({"include_archived": True, "memory_types": ("task",)}, {TASK, OLD_TASK}),
        ({"tags": ("limits",), "entity": "service:queue", "workspace": "relay"}, set()),
        ({"tags": ("limits",), "entity": "service:queue"}, {QUEUE}),
    ],
)
def test_a_scope_lets_through_what_it_names(
    index: Index, form: str, wanted: dict[str, Any], paths: set[str]
) -> None:
    found = make_filter(index.conn, Scope(**wanted))
    assert (found.listed is not None) == (form == "listed" and narrows(Scope(**wanted)))
    assert in_scope(index, Scope(**wanted)) == paths


@pytest.mark.parametrize(
    ("wanted", "narrow"),
    [
        ({}, False),
        ({"include_archived": True, "as_of": "2026-05-05"}, False),
        ({"memory_types": ("semantic",)}, True),
        ({"workspace": "relay"}, True),
        ({"tags": ("x",)}, True),
        ({"entity": "a:b"}, True),
        ({"facets": ("a=b",)}, True),
        ({"memory_types": ("",), "workspace": " ", "tags": ("",), "entity": ""}, False),
        ({"facets": ("a", "=b", "a=")}, False),
    ],
)
def test_a_scope_narrows_by_what_it_names(wanted: dict[str, Any], narrow: bool) -> None:
    assert narrows(Scope(**wanted)) == narrow


VALID = {
    "areas/inbox/from.html": memory(
        "From then.", head=meta("valid-from", "2026-03-01T00:00:00Z"), created="2026-05-01"
    ),
    "areas/inbox/event.html": memory(
        "It happened.", kind="episodic", more=happened("2026-02-01"), created="2026-05-01"
    ),
    "areas/inbox/made.html": memory("Made then.", created="2026-04-01"),
    "archive/2026/areas/inbox/until.html": memory(
        "Until then.", created="2026-01-01", head=meta("valid-until", "2026-04-01T00:00:00Z")
    ),
}
FROM, EVENT, MADE, UNTIL = VALID


@pytest.mark.parametrize(
    ("as_of", "paths"),
    [
        ("2025-12-31", set()),
        ("2026-01-01", {UNTIL}),
        ("2026-02-28T23:59:59Z", {UNTIL, EVENT}),
        ("2026-03-01T00:00:00Z", {UNTIL, EVENT, FROM}),
        # A day is before its first second, as texts are compared.
        ("2026-03-01", {UNTIL, EVENT}),
        ("2026-04-01", {UNTIL, EVENT, FROM, MADE}),
        ("2026-04-01T00:00:00Z", {EVENT, FROM, MADE}),
    ],
)
def test_as_of_finds_what_was_valid_then_archived_since_or_not(
    tmp_path: Path, as_of: str, paths: set[str]
) -> None:
    with store(str(tmp_path), VALID) as index:
        found = make_filter(index.conn, Scope(as_of=as_of))
        fused, _ = fuse.fused(
            index.conn, fuse.Orderings(None, None), found, 100, now_s=NOW_S, has_state=False
        )
    assert {each.path for each in fused} == paths


def test_a_scope_of_many_files_is_a_condition(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "NARROW", 2)
    assert make_filter(index.conn, Scope(tags=("runbook",))).listed is not None
    assert make_filter(index.conn, Scope(memory_types=("semantic",))).listed is not None
    assert make_filter(index.conn, Scope(tags=("limits", "runbook"))).listed is None


@pytest.mark.parametrize(
    ("wanted", "step"),
    [
        ({"tags": ("limits",)}, "USING COVERING INDEX tags_tag (tag=?)"),
        ({"entity": "a:b", "tags": ("limits",)}, "USING COVERING INDEX entities_folded"),
        ({"facets": ("a=b",)}, "USING COVERING INDEX facets_pair (name=? AND value=?)"),
        ({"workspace": "relay"}, "USING INDEX files_workspace (workspace=?)"),
        ({"memory_types": ("semantic",)}, "INDEX files_type (memory_type=?)"),
    ],
)
def test_a_narrow_scope_is_listed_from_what_narrows_it(
    index: Index, wanted: dict[str, Any], step: str
) -> None:
    with statements(index) as steps:
        make_filter(index.conn, Scope(**wanted))
    plan = plan_of(index.conn, steps[-1], {})
    assert any(step in each for each in plan), plan
    assert not any(each.startswith("SCAN") for each in plan)


def test_the_archive_is_listed_under_the_same_scope(index: Index) -> None:
    sql, values = archive_listing(index.conn, Scope(tags=("limits",), as_of="2000-01-01"))
    ids = [row[0] for row in index.conn.execute(sql, values)]
    paths = dict(index.conn.execute("SELECT id, path FROM files").fetchall())
    assert [paths[each] for each in ids] == [OLD]
    sql, values = archive_listing(index.conn, Scope(memory_types=("task",)))
    assert [paths[row[0]] for row in index.conn.execute(sql, values)] == [OLD_TASK]


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("a=b", ("a", "b")),
        (" a = b=c ", ("a", "b=c")),
        ("a=", None),
        ("=b", None),
        ("a", None),
        ("", None),
    ],
)
def test_a_facet_is_split_at_its_first_sign(text: str, pair: tuple[str, str] | None) -> None:
    assert split_facet(text) == pair
