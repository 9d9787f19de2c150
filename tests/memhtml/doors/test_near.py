"""What says nearly the same, by vectors that a test hands out."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.support.doors import AT, draft

from memhtml.doors import near as module
from memhtml.doors.apply import Wishes, apply
from memhtml.doors.batch import Placed
from memhtml.doors.drafts import prepare
from memhtml.doors.near import Finding, near, report_near
from memhtml.embed import choose
from memhtml.embed.port import ModelUnavailable
from memhtml.index.database import open_index

if TYPE_CHECKING:
    from memhtml.embed.port import Vector


class Angles:
    """An embedder of the plane: a text with `@<degrees>` in it points there."""

    model_id = "angles"
    dim = 2

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.calls.append(list(texts))
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        return self._vector(text)

    def _vector(self, text: str) -> Vector:
        found = text.partition("@")[2].partition(" ")[0].rstrip(".")
        if found == "zero":
            return np.zeros(2, dtype=np.float32)
        turned = math.radians(float(found))
        return np.array([3 * math.cos(turned), 3 * math.sin(turned)], dtype=np.float32)


class Silent(Angles):
    """A model that cannot be reached."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise ModelUnavailable(self.model_id, "no answer")


def placed(*claims: str) -> list[Placed]:
    ops = [prepare(draft(f"T{n}", claim), AT) for n, claim in enumerate(claims)]
    return [Placed(n, f"areas/inbox/t{n}.html", op) for n, op in enumerate(ops)]


@pytest.fixture
def angles(store: str, monkeypatch: pytest.MonkeyPatch) -> Angles:
    bound = Angles()
    monkeypatch.setattr(choose, "bound_embedder", lambda: bound)
    monkeypatch.setattr("memhtml.doors.opening.bound_embedder", lambda: bound)
    return bound


def applied(store: str, *claims: str, memory_type: str = "semantic") -> list[dict[str, object]]:
    drafts = [draft(f"T {claim}", claim, memory_type) for claim in claims]
    answer = apply(store, iter(drafts), Wishes(near_duplicates=True))
    assert answer["near_duplicates_degraded"] is False
    found: list[dict[str, object]] = answer["results"]
    return found


def shown(result: dict[str, object]) -> list[tuple[object, float]]:
    findings = result["near_duplicates"]
    assert isinstance(findings, list)
    return [
        (each["path"] if each["path"] is not None else each["batch_index"], each["similarity"])
        for each in findings
    ]


def test_stored_memories_and_earlier_ops_are_named_best_first(store: str, angles: Angles) -> None:
    applied(store, "Old @0.", "Far @90.")
    first, second, third = applied(store, "New @10.", "Next @20.", "Away @200.")
    assert shown(first) == [("areas/inbox/t-old-0.html", round(math.cos(math.radians(10)), 6))]
    assert shown(second) == [
        (0, round(math.cos(math.radians(10)), 6)),
        ("areas/inbox/t-old-0.html", round(math.cos(math.radians(20)), 6)),
    ]
    assert shown(third) == []
    assert first["near_duplicates"] == [
        {
            "path": "areas/inbox/t-old-0.html",
            "batch_index": None,
            "claim": "Old @0.",
            "similarity": 0.984808,
        }
    ]


def test_arcs_tasks_and_retired_memories_are_not_compared_with(store: str, angles: Angles) -> None:
    from memhtml.doors.archive import archive

    applied(store, "Arc @1.", memory_type="arc")
    applied(store, "Task @2.", memory_type="task")
    [gone] = applied(store, "Gone @3.")
    archive(store, str(gone["path"]), "gone")
    [new] = applied(store, "New @0.")
    assert shown(new) == []


def test_an_op_that_writes_nothing_is_not_checked(store: str, angles: Angles) -> None:
    applied(store, "Old @0.")
    [twin] = applied(store, "Old @0.")
    assert twin["near_duplicates"] is None


def test_the_texts_of_a_batch_are_embedded_in_one_call(store: str, angles: Angles) -> None:
    applied(store, "One @0.", "Two @90.")
    assert angles.calls[0] == ["One @0.", "Two @90."]


def test_three_findings_are_the_most_and_ties_have_an_order() -> None:
    ops = placed(*(f"Number {n} @0." for n in range(6)))
    found = near(ops, _no_rows(), Angles())
    assert [[each.batch_index for each in found[n]] for n in range(6)] == [
        *([], [0], [0, 1], [0, 1, 2], [0, 1, 2], [0, 1, 2]),
    ]


def test_a_stored_memory_goes_before_an_equal_op() -> None:
    stored, batch = Finding(0.95, "c", path="areas/z.html"), Finding(0.95, "c", batch_index=0)
    other = Finding(0.95, "c", path="areas/a.html")
    assert sorted([batch, stored, other], key=lambda each: each.rank) == [other, stored, batch]


@pytest.mark.parametrize(("degrees", "named"), [(23, True), (24, False)])
def test_the_threshold_is_at_0_92(degrees: int, named: bool) -> None:
    # The cosine of 23 degrees is 0.9205, that of 24 is 0.9135.
    found = near(placed("One @0.", f"Two @{degrees}."), _no_rows(), Angles())
    assert bool(found[1]) is named


def test_a_zero_vector_is_like_nothing() -> None:
    found = near(placed("One @zero.", "Two @zero.", "Three @0."), _no_rows(), Angles())
    assert found == {0: [], 1: [], 2: []}


def test_blocks_and_slices_change_nothing(
    store: str, angles: Angles, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(store, *(f"Old {n} @{n * 10}." for n in range(8)))
    claims = [f"New {n} @{n * 9}." for n in range(9)]
    ops = placed(*claims)
    with open_index(store, state=False) as index:
        whole = near(ops, index.conn, angles)
        monkeypatch.setattr(module, "_BLOCK_ROWS", 2)
        monkeypatch.setattr(module, "_SLICE_BYTES", 24)
        assert near(ops, index.conn, angles) == whole
    assert sum(len(each) for each in whole.values()) > 9


def test_the_batch_itself_is_not_found_in_the_store(store: str, angles: Angles) -> None:
    applied(store, "One @0.")
    with open_index(store, state=False) as index:
        ops = [each._replace(path="areas/inbox/t-one-0.html") for each in placed("One @0.")]
        assert near(ops, index.conn, angles) == {0: []}


@pytest.mark.parametrize("embedder", [None, Silent()])
def test_without_a_model_the_report_is_degraded(embedder: Silent | None) -> None:
    results: list[dict[str, object]] = [{"near_duplicates": None}]
    assert report_near(results, placed("One @0."), _no_rows(), embedder) is True
    assert results == [{"near_duplicates": None}]


def test_a_database_that_fails_degrades_the_report() -> None:
    conn = _no_rows()
    conn.execute("DROP TABLE files")
    results: list[dict[str, object]] = [{"near_duplicates": None}]
    assert report_near(results, placed("One @0."), conn, Angles()) is True


def _no_rows() -> sqlite3.Connection:
    conn = sqlite3.connect(":memory:")
    conn.execute("CREATE TABLE files(path, gist, archived, memory_type)")
    conn.execute("CREATE TABLE chunks(path, ordinal, chunk_id)")
    conn.execute("CREATE TABLE embeddings(chunk_id, model, vec)")
    return conn
