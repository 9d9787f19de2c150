"""`apply` at the command line: the stream, whole envelopes, and the golden renderings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import shared_cases
from tests.support.cli import check_lines
from tests.support.command import Said, memhtml
from tests.support.doors import committed, fact, head, indexed, line, rows, said, state
from tests.support.session import checkout_state, make_store, page

from memhtml.cli import inputs
from memhtml.schema.envelope import validate_envelope

OFF = {"MEMHTML_EMBED": "off"}


@pytest.fixture
def store(tmp_path: Path) -> str:
    return make_store(str(tmp_path / "store"))


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store for calls that change nothing."""
    return make_store(str(tmp_path_factory.mktemp("apply") / "store"))


def applied(store: str, text: str | bytes, *words: str) -> Said:
    """A call that answers, whatever became of its operations."""
    done = memhtml("apply", "--repo", store, *words, text=text, env=OFF)
    assert done.status == 0, done.stdout
    validate_envelope(done.envelope)
    return done


def result(index: int, **fields: Any) -> dict[str, Any]:
    """A whole result; what is not named has no value."""
    empty: dict[str, Any] = {
        "index": index,
        "ok": False,
        "path": None,
        "deduped": False,
        "existing_path": None,
        "code": None,
        "error": None,
        "skipped": False,
        "conflict": None,
        "near_duplicates": None,
    }
    return empty | fields


def test_a_stream_is_one_commit(store: str) -> None:
    text = "\ufeff" + fact(1) + "\r\n\n  \n" + fact(2, workspace="p", tags=["a", "", "b"], tag="c")
    done = applied(store, text)
    assert done.stderr == ""
    assert done.envelope == {
        "apiVersion": "1",
        "type": "batch.applied",
        "data": {
            "results": [
                result(0, ok=True, path="areas/inbox/fact-1.html"),
                result(1, ok=True, path="projects/p/fact-2.html"),
            ],
            "summary": {"total": 2, "written": 2, "deduped": 0, "failed": 0, "skipped": 0},
            "commit_sha": head(store),
            "near_duplicates_degraded": False,
        },
    }
    assert said(store) == "memhtml(batch): 2 memories"
    assert checkout_state(store) == ""
    assert indexed(store) == committed(store)
    tags = rows(store, "SELECT tag FROM file_tags ORDER BY tag")
    assert tags == [("a",), ("b",), ("c",)]


def test_one_refused_line_writes_nothing(still: str) -> None:
    before = state(still)
    text = "\n".join([fact(1), line("Two", "Two.", importance=11), fact(3)])
    done = applied(still, text, "--file", "-")
    assert done.data == {
        "results": [
            result(0, skipped=True),
            result(
                1, code="ERR_INVALID_MEMORY", error="importance must be an integer from 1 to 10"
            ),
            result(2, skipped=True),
        ],
        "summary": {"total": 3, "written": 0, "deduped": 0, "failed": 1, "skipped": 2},
        "commit_sha": None,
        "near_duplicates_degraded": False,
    }
    assert state(still) == before


def test_the_rest_lands_with_continue_on_error(store: str) -> None:
    Path(store, "areas/inbox/taken.html").write_text(page("Taken."))
    lines = [
        fact(1),
        line("Both", "B.", article_html="<p><mark>B</mark></p>"),
        line("None"),
        line("Essay", "E.", type="essay"),
        line("Taken", "Another.", path="areas/inbox/taken.html"),
        line("Strict", "S.", path="x.html", strict_path=True),
        line("Twin", "The fact number 1 holds."),
        fact(2),
    ]
    done = applied(store, "\n".join(lines), "-", "--continue-on-error", "--session-id", "s1")
    found = done.data["results"]
    assert [each["code"] for each in found] == [
        *(None, "ERR_INVALID_FLAG", "ERR_INVALID_MEMORY", "ERR_INVALID_MEMORY"),
        *("ERR_WRITE_CONFLICT", "ERR_INVALID_MEMORY", None, None),
    ]
    assert all(bool(each["error"]) == bool(each["code"]) for each in found)
    assert found[6] == result(
        6,
        ok=True,
        path="areas/inbox/fact-1.html",
        deduped=True,
        existing_path="areas/inbox/fact-1.html",
    )
    assert done.data["summary"] == {
        "total": 8,
        "written": 2,
        "deduped": 1,
        "failed": 5,
        "skipped": 0,
    }
    assert done.data["commit_sha"] == head(store)
    assert said(store).splitlines() == ["memhtml(batch): 2 memories", "", "Memhtml-Session: s1"]


def test_both_reports_are_made_when_they_are_asked_for(store: str) -> None:
    applied(store, line("One", "The relay limit is 5."))
    lines = [line("Two", "The relay limit is 6."), line("Three", "The relay limit is 7.")]
    words = ("apply", "--repo", store, "--detect-conflicts", "--detect-near-duplicates")
    done = memhtml(*words, text="\n".join(lines), env={"MEMHTML_EMBED": "hash"})
    validate_envelope(done.envelope)
    stored = {"path": "areas/inbox/one.html", "batch_index": None, "claim": "The relay limit is 5."}
    assert [each["conflict"] for each in done.data["results"]] == [stored, stored]
    assert done.data["near_duplicates_degraded"] is False
    assert [each["near_duplicates"] for each in done.data["results"]] == [[], []]
    degraded = applied(store, fact(9), "--detect-near-duplicates")
    assert degraded.data["near_duplicates_degraded"] is True


BAD_STREAMS = [
    ("", "ERR_MISSING_ARGUMENT", "memhtml apply: no operations given"),
    ("\n \r\n", "ERR_MISSING_ARGUMENT", "no operations given"),
    ("nonsense", "ERR_INVALID_FLAG", "memhtml apply: line 1: not valid JSON"),
    (f"{fact(1)}\n\n[1]", "ERR_INVALID_FLAG", "memhtml apply: line 3: not a JSON object"),
    (line("T", "A.", colour="red"), "ERR_INVALID_FLAG", "line 1: unknown field 'colour'"),
    (line("T", "A.", tags="x", tag=7), "ERR_INVALID_FLAG", "line 1: tag must be a string or"),
    (line("T", "A.", importance="x"), "ERR_INVALID_FLAG", "line 1: importance must be a finite"),
    (line("T", "A.", op="label"), "ERR_INVALID_FLAG", "line 1: op must be one of write"),
    ('{"op":"write","op":"write"}', "ERR_INVALID_FLAG", "line 1: the field 'op' is given twice"),
    ('{"op":"write","type":"semantic"}', "ERR_MISSING_ARGUMENT", "line 1: title is required"),
    (line(" ", "A."), "ERR_MISSING_ARGUMENT", "line 1: title is required"),
    (fact(1).encode() + b'\n{"op":"\xff"}', "ERR_INVALID_FLAG", "line 2: not valid UTF-8"),
]


@pytest.mark.parametrize(("text", "code", "message"), BAD_STREAMS)
def test_a_bad_stream_names_its_line_and_writes_nothing(
    still: str, text: str | bytes, code: str, message: str
) -> None:
    before = state(still)
    done = memhtml("apply", "--repo", still, text=text)
    validate_envelope(done.envelope)
    assert (done.status, done.envelope["code"]) == (2, code)
    assert message in done.envelope["error"]
    assert done.envelope["suggestions"] == ["memhtml help apply"]
    assert state(still) == before


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--file", "none.jsonl"), "ERR_PATH_NOT_FOUND", "cannot read none.jsonl"),
        (("--file", "."), "ERR_PATH_NOT_FOUND", "cannot read .: Is a directory"),
        (("-", "--file", "some.jsonl"), "ERR_INVALID_FLAG", "from one place"),
        (("some.jsonl",), "ERR_UNEXPECTED_ARGUMENT", "'some.jsonl'"),
        (("--consolidate",), "ERR_INVALID_FLAG", "no flag --consolidate"),
        (("--continue-on-error", "true"), "ERR_INVALID_FLAG", "takes no separate value"),
    ],
)
def test_a_wrong_call_is_a_usage_error(
    still: str, words: tuple[str, ...], code: str, text: str
) -> None:
    done = memhtml("apply", "--repo", still, *words, text=fact(1))
    validate_envelope(done.envelope)
    assert (done.status, done.envelope["code"]) == (2, code)
    assert text in done.envelope["error"]
    check_lines(done.envelope["suggestions"])


def test_a_closed_door_reads_no_stream(still: str) -> None:
    done = memhtml("apply", "--repo", still, text="nonsense", env={"MEMHTML_SESSION": "s1"})
    assert (done.status, done.envelope["code"]) == (2, "ERR_SESSION_BOUND")


def test_a_file_is_read_and_relative_names_are_those_of_the_caller(store: str) -> None:
    path = Path(store, "..", "facts.jsonl")
    path.write_text(fact(1))
    done = applied(store, "", "--file", os.path.relpath(path))
    assert done.data["summary"]["written"] == 1


def test_a_stream_has_a_limit_that_is_named(
    still: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.cli import here

    path = tmp_path / "facts.jsonl"
    path.write_text(fact(1))
    monkeypatch.setattr(inputs, "BATCH_BYTES", 20)
    ran = here("apply", "--repo", still, "--file", str(path))
    assert (ran.status, ran.code) == (2, "ERR_INVALID_FLAG")
    assert "at most 20 bytes of lines" in ran.envelope["error"]


def test_the_golden_stream_lands_as_the_reference_renders_it(store: str) -> None:
    cases = shared_cases("render.json")
    if not cases:
        pytest.skip("the shared cases are not here")
    stream = "\n".join(json.dumps(case["line"]) for case in cases)
    done = applied(store, stream, "--continue-on-error")
    hashes = dict(rows(store, "SELECT path, content_hash FROM files"))
    for case, each in zip(cases, done.data["results"], strict=True):
        expect = case["expect"]
        if "refused" in expect:
            assert (each["ok"], each["code"]) == (False, expect["refused"]), case["name"]
        elif "deduped" in expect:
            assert (each["ok"], each["deduped"]) == (True, True), case["name"]
        else:
            text = Path(store, each["path"]).read_bytes().decode()
            at = text.partition('"memhtml-created" content="')[2][:20]
            assert {
                "path": each["path"].replace(at[:10].replace("-", ""), "{DATE}"),
                "contentHash": hashes[each["path"]],
                "html": text.replace(at, "{AT}"),
            } == expect, case["name"]
    assert done.data["summary"]["written"] == len(hashes) == 47
