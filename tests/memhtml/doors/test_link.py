"""`link`: one typed edge between memories that are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.doors import changes, detail, draft, head, put, refused, rows, said, state
from tests.support.session import checkout_state, git

from memhtml.doors.archive import archive
from memhtml.doors.link import RELS, link
from memhtml_format.record import Link

A, B = "areas/inbox/a.html", "areas/inbox/b.html"
T, U = "areas/inbox/tasks/t.html", "areas/inbox/tasks/u.html"


@pytest.fixture
def filled(store: str) -> str:
    task = draft("T", "T.", "task")
    put(store, draft("A", "A."), draft("B", "B."), task, task._replace(title="U", claim="U."))
    return store


def test_an_edge_is_one_commit_of_its_source(filled: str) -> None:
    before = detail(filled, A).record
    made = link(filled, f"/{A}", "relates_to", f"{B}/")
    assert made == {"commitSha": head(filled), "srcPath": A, "dstPath": B, "rel": "relates_to"}
    assert said(filled) == f"memhtml(link): relates_to {A} -> {B}"
    assert changes(filled) == [f"M {A}"]
    assert f'<link rel="memhtml-relates-to" href="/{B}">\n' in Path(filled, A).read_text()
    after = detail(filled, A).record
    assert after.links == (Link("relates_to", f"/{B}"),)
    assert after.content_hash == before.content_hash
    assert after.updated_at >= before.updated_at
    assert rows(filled, "SELECT src_path, rel, dst_path FROM edges") == [(A, "relates_to", B)]


def test_the_same_edge_again_makes_no_commit(filled: str) -> None:
    link(filled, A, "supports", B)
    before = state(filled)
    assert link(filled, A, "supports", B)["commitSha"] is None
    assert state(filled) == before
    assert link(filled, A, "relates_to", B)["commitSha"] is not None


def test_an_edge_may_point_into_the_archive(filled: str) -> None:
    slot = archive(filled, B, "gone")["archivePath"]
    link(filled, A, "supersedes", slot)
    assert detail(filled, A).record.links == (Link("supersedes", f"/{slot}"),)


def test_tasks_are_tied_to_tasks(filled: str) -> None:
    assert link(filled, T, "blocks", U)["commitSha"] == head(filled)


def test_an_uncommitted_edit_of_the_source_goes_along(filled: str) -> None:
    for path in (A, B):
        text = Path(filled, path).read_text()
        Path(filled, path).write_text(text.replace("</article>", "<p>By hand.</p>\n</article>"))
    link(filled, A, "relates_to", B)
    assert "By hand." in git(filled, "show", f"HEAD:{A}")
    assert checkout_state(filled) == f" M {B}"


@pytest.mark.parametrize(
    ("src", "rel", "dst", "code"),
    [
        (A, "relates-to", B, "ERR_INVALID_MEMORY"),
        (A, "about_person", B, "ERR_INVALID_MEMORY"),
        (A, "knows", B, "ERR_INVALID_MEMORY"),
        (A, "relates_to", f"/{A}", "ERR_INVALID_MEMORY"),
        (A, "blocks", B, "ERR_INVALID_MEMORY"),
        (T, "blocks", B, "ERR_INVALID_MEMORY"),
        (A, "subtask_of", T, "ERR_INVALID_MEMORY"),
        (T, "relates_to", B, "ERR_INVALID_MEMORY"),
        (A, "relates_to", T, "ERR_INVALID_MEMORY"),
        (A, "relates_to", "areas/inbox/none.html", "ERR_PATH_NOT_FOUND"),
        ("areas/inbox/none.html", "relates_to", B, "ERR_PATH_NOT_FOUND"),
        (A, "relates_to", "../b.html", "ERR_PATH_NOT_FOUND"),
    ],
)
def test_an_edge_that_is_not_allowed_is_refused(
    filled: str, src: str, rel: str, dst: str, code: str
) -> None:
    before = state(filled)
    assert refused(lambda: link(filled, src, rel, dst))[0] == code
    assert state(filled) == before


def test_an_archived_memory_states_no_new_edge(filled: str) -> None:
    slot = archive(filled, A, "gone")["archivePath"]
    assert refused(lambda: link(filled, slot, "relates_to", B))[0] == "ERR_INVALID_MEMORY"


def test_a_path_that_no_href_can_name_is_refused(filled: str) -> None:
    odd = "areas/inbox/what?.html"
    put(filled, draft("Odd", "Odd.", path=odd))
    code, text = refused(lambda: link(filled, A, "relates_to", odd))
    assert (code, text) == (
        "ERR_INVALID_MEMORY",
        f"no link can name {odd}, because it holds ? or #",
    )


def test_the_rels_are_those_of_memories_and_tasks() -> None:
    assert (
        *("supersedes", "contradicts", "caused_by", "leads_to", "part_of", "relates_to"),
        *("example_of", "supports", "laterally_related", "blocks", "subtask_of"),
    ) == RELS
