"""What becomes of each operation of a batch."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.doors import AT

from memhtml.doors.batch import Op, Plan, plan, summary
from memhtml.doors.drafts import prepare
from memhtml.doors.places import Places
from memhtml.errors import MemhtmlError, StorageError
from memhtml_format.render import Draft

KEYS = [
    *("index", "ok", "path", "deduped", "existing_path", "code", "error", "skipped"),
    *("conflict", "near_duplicates"),
]


def op(title: str, body: str, memory_type: str = "semantic", **fields: Any) -> Op:
    try:
        return prepare(Draft(title, memory_type, body=body, **fields), AT)
    except MemhtmlError as error:
        return error


def planned(*ops: Op, stored: dict[str, str] | None = None, atomic: bool = True) -> Plan:
    places = Places(lambda path: path == "areas/x/taken.html", lambda _path: None)
    return plan(ops, AT, places, (stored or {}).get, atomic=atomic)


def brief(found: Plan) -> list[str]:
    """A word for each result: its path, what it is a twin of, its code, or that it was skipped."""
    said = []
    for number, each in enumerate(found.results):
        assert list(each) == KEYS
        assert each["index"] == number
        if each["skipped"]:
            said.append("skipped")
        elif each["code"]:
            said.append(each["code"])
        else:
            said.append(f"={each['existing_path']}" if each["deduped"] else each["path"])
    return said


GOOD, BAD = op("A", "The one."), op("B", "")
TAKEN = op("C", "The two.", path="areas/x/taken.html")


def test_a_batch_is_placed_in_input_order() -> None:
    found = planned(op("A", "The one."), op("A", "The two."))
    assert brief(found) == ["areas/inbox/a.html", "areas/inbox/a-2.html"]
    assert [(each.number, each.path) for each in found.placed] == [
        (0, "areas/inbox/a.html"),
        (1, "areas/inbox/a-2.html"),
    ]


@pytest.mark.parametrize(
    ("bad", "code"), [(BAD, "ERR_INVALID_MEMORY"), (TAKEN, "ERR_WRITE_CONFLICT")]
)
def test_one_refused_op_ends_an_atomic_batch(bad: Op, code: str) -> None:
    found = planned(GOOD, bad, op("D", "The three."))
    assert (brief(found), found.placed) == (["skipped", code, "skipped"], [])
    assert found.results[1]["error"]


def test_the_first_refused_op_is_the_one_that_is_named() -> None:
    assert brief(planned(TAKEN, BAD)) == ["ERR_WRITE_CONFLICT", "skipped"]
    assert brief(planned(BAD, TAKEN)) == ["ERR_INVALID_MEMORY", "skipped"]


def test_the_rest_lands_when_the_batch_goes_on() -> None:
    found = planned(GOOD, BAD, TAKEN, op("D", "The three."), atomic=False)
    assert brief(found) == [
        *("areas/inbox/a.html", "ERR_INVALID_MEMORY", "ERR_WRITE_CONFLICT", "areas/inbox/d.html"),
    ]
    assert [each.number for each in found.placed] == [0, 3]


def test_twins_of_the_store_and_of_the_batch_are_not_written() -> None:
    one = prepare(Draft("A", "semantic", body="The one."), AT)
    stored = {one.content_hash: "areas/old.html"}
    found = planned(GOOD, op("E", "The two."), op("F", "The two."), stored=stored)
    assert brief(found) == ["=areas/old.html", "areas/inbox/e.html", "=areas/inbox/e.html"]
    assert [each.number for each in found.placed] == [1]


def test_a_twin_is_found_before_its_own_path_is_taken() -> None:
    found = planned(op("A", "One.", path="areas/x/a.html"), op("A", "One.", path="areas/x/a.html"))
    assert brief(found) == ["areas/x/a.html", "=areas/x/a.html"]


def test_a_task_is_no_twin_in_either_direction() -> None:
    found = planned(op("A", "One.", "task"), op("A", "One."), op("A", "One.", "task"))
    assert brief(found) == [
        *("areas/inbox/tasks/a.html", "areas/inbox/a.html", "areas/inbox/tasks/a-2.html"),
    ]


@pytest.mark.parametrize(
    ("draft", "code", "said"),
    [
        (Draft("T", "essay", body="A."), "ERR_INVALID_MEMORY", "memhtml-type is 'essay'"),
        (Draft("T", "semantic"), "ERR_INVALID_MEMORY", "neither body nor article_html"),
        (Draft("T", "semantic", body="A.", importance=11), "ERR_INVALID_MEMORY", "importance"),
        (Draft("T", "semantic", body="A.", importance=0), "ERR_INVALID_MEMORY", "importance"),
        (Draft("T", "semantic", body="A.", confidence=1.5), "ERR_INVALID_MEMORY", "confidence"),
        (Draft("T", "semantic", body="A.", article_html="<p>"), "ERR_INVALID_FLAG", "exclude"),
        (Draft("T", "task", body="A.", status="later"), "ERR_INVALID_MEMORY", "task-status"),
        (
            Draft("T", "semantic", article_html="<p class=x><mark></mark><script>"),
            "ERR_INVALID_MEMORY",
            "there is no claim; script elements are not allowed; class attributes are not allowed",
        ),
    ],
)
def test_what_a_draft_breaks_is_its_refusal(draft: Draft, code: str, said: str) -> None:
    with pytest.raises(MemhtmlError, match=said) as caught:
        prepare(draft, AT)
    assert caught.value.code == code


def test_trouble_with_the_disk_is_no_refusal_of_an_op() -> None:
    def trouble(_path: str) -> bool:
        raise StorageError("read", "areas/inbox")

    with pytest.raises(StorageError):
        plan([GOOD], AT, Places(trouble, lambda _path: None), lambda _hash: None, atomic=False)


def test_a_summary_counts_every_op_once() -> None:
    stored = {prepare(Draft("A", "semantic", body="The one."), AT).content_hash: "areas/o.html"}
    going_on = planned(GOOD, BAD, op("D", "The three."), stored=stored, atomic=False)
    assert summary(going_on.results) == {
        "total": 3,
        "written": 1,
        "deduped": 1,
        "failed": 1,
        "skipped": 0,
    }
    ended = planned(GOOD, BAD, op("D", "The three."))
    assert summary(ended.results) == {
        "total": 3,
        "written": 0,
        "deduped": 0,
        "failed": 1,
        "skipped": 2,
    }
