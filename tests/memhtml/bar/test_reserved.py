"""The write bar's reserved-path rule (spec `write-bar` §4.1)."""

from __future__ import annotations

import pytest
from tests.support.bar import A, corpus, judged, kinds, page

from memhtml_format.ops import AddLabel, AddLink, Archive, DropLabel, DropLink, Move, Op, Put
from memhtml_format.violations import sentence

PERSON = "resources/people/ada.html"
ARC = "areas/arcs/launch.html"


@pytest.mark.parametrize(
    "path",
    [
        ".memhtml/x.html",
        ".memhtml",
        "memhtml.config.json",
        "areas/inbox/index.html",
        "projects/p/deep/sitemap.xml",
        "index.html",
    ],
)
@pytest.mark.parametrize("scope", ["session", "curate"])
def test_path_of_the_store_itself_is_reserved_in_every_scope(path: str, scope: str) -> None:
    found = judged(corpus({}), Put(path, page("x is new")), scope=scope)
    assert kinds(found)[0] == ("reserved-path", path)
    assert "reserved path" in sentence(found[0])


@pytest.mark.parametrize("path", [ARC, PERSON, f"archive/2026/{ARC}", f"archive/2026.3/{PERSON}"])
def test_curated_folder_is_reserved_for_a_session_alone(path: str) -> None:
    put = Put(path, page("x is new"))
    assert kinds(judged(corpus({}), put)) == [("reserved-path", path)]
    assert judged(corpus({}), put, scope="curate") == []


@pytest.mark.parametrize(
    "path",
    ["areas/inbox/arcs-note.html", "areas/inbox/index.htm.html", "areas/arcs.html"],
)
def test_name_that_only_resembles_a_reserved_one_is_free(path: str) -> None:
    assert judged(corpus({}), Put(path, page("x is new"))) == []


@pytest.mark.parametrize(
    "op",
    [
        AddLink(PERSON, "supports", f"/{A}"),
        DropLink(PERSON, "relates_to", f"/{A}"),
        AddLabel(PERSON, "person:ada"),
        DropLabel(PERSON, "team:core"),
        Archive(PERSON, f"archive/2026/{PERSON}", page("ada leads")),
        Move(PERSON, "resources/staff/ada.html", page("ada leads")),
    ],
)
def test_every_kind_of_operation_on_a_reserved_path_is_refused(op: Op) -> None:
    ada = page("ada leads", entities=["team:core"], links=[("relates_to", f"/{A}")])
    base = corpus({PERSON: ada, A: page("a is here")})
    found = judged(base, op)
    assert set(kinds(found)) <= {
        ("reserved-path", PERSON),
        ("reserved-path", f"archive/2026/{PERSON}"),
    }
    assert kinds(found)[0] == ("reserved-path", PERSON)
    assert judged(base, op, scope="curate") == []


def test_archive_of_a_reserved_record_is_one_violation_for_each_touched_path() -> None:
    twin = f"archive/2026/{PERSON}"
    base = corpus({PERSON: page("ada leads")})
    found = judged(base, Archive(PERSON, twin, page("ada leads")))
    assert kinds(found) == [("reserved-path", PERSON), ("reserved-path", twin)]


def test_move_into_a_reserved_folder_names_the_destination_only() -> None:
    base = corpus({A: page("ada leads")})
    found = judged(base, Move(A, PERSON, page("ada leads")))
    assert kinds(found) == [("reserved-path", PERSON)]


def test_being_a_link_target_is_not_touching() -> None:
    base = corpus({A: page("a is here"), PERSON: page("ada leads")})
    assert judged(base, AddLink(A, "about_person", f"/{PERSON}")) == []


def test_reserved_put_counts_as_done_for_what_follows() -> None:
    found = judged(corpus({}), Put(PERSON, page("ada leads")), AddLabel(PERSON, "team:core"))
    assert kinds(found) == [("reserved-path", PERSON), ("reserved-path", PERSON)]


def test_reserved_path_comes_before_format_of_the_same_operation() -> None:
    path = "areas/arcs/bad.html"
    found = judged(corpus({}), Put(path, "<p>no claim"))
    assert kinds(found) == [("reserved-path", path), ("format", path)]


def test_path_is_compared_normalised() -> None:
    found = judged(corpus({}), Put("/areas//arcs/x.html", page("x is new")))
    assert [violation.kind for violation in found] == ["reserved-path", "format"]
    assert "areas/arcs/x.html" in found[1].reasons[0]
