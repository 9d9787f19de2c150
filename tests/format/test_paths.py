"""The path algebra of spec `format` §2 and the reserved paths of `write-bar` §4.1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memhtml_format import paths


@pytest.mark.parametrize(
    ("given_path", "expected"),
    [
        ("/resources//x/p3.html/", "resources/x/p3.html"),
        ("///", ""),
        ("areas/inbox/x.html", "areas/inbox/x.html"),
        ("/" * 100_000 + "a", "a"),
    ],
)
def test_normalise_drops_leading_doubled_and_trailing_slashes(
    given_path: str, expected: str
) -> None:
    assert paths.normalise(given_path) == expected


def test_href_is_the_normalised_path_with_one_slash() -> None:
    assert paths.href("//areas/inbox//x.html") == "/areas/inbox/x.html"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("notes/x.html", "not rooted in a PARA bucket"),
        ("areas", "not rooted in a PARA bucket"),
        ("", "not rooted in a PARA bucket"),
        ("areas/x.HTML", "does not end in .html"),
        ("areas/../x.html", "'..'"),
        ("areas/./x.html", "'.'"),
        ("areas//x.html", "blank"),
        ("areas/a\tb.html", "U+0009"),
        ("areas/a\x7fb.html", "U+007F"),
        ("areas/a\\b.html", "backslash"),
        ("areas/a\ud800.html", "U+D800"),
    ],
)
def test_problem_names_the_first_failing_check(path: str, said: str) -> None:
    found = paths.problem(path)
    assert found is not None
    assert said in found
    assert not paths.is_memory_path(path)


def test_problem_is_none_for_a_memory_path() -> None:
    assert paths.problem("projects/a/b/é x.html") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("areas/inbox/x.html", True),
        ("archive/x.html", True),
        ("areas/index.html", False),
        ("areas/inbox/x.txt", False),
        ("README.html", False),
        ("areas.html", False),
    ],
)
def test_record_path_is_an_html_file_in_a_bucket_but_no_listing(path: str, expected: bool) -> None:
    assert paths.is_record_path(path) is expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Déployé über Straße — ünïcode", "deploye-uber-stra-e-unicode"),
        ("日本語のタイトル", "untitled"),
        ("日本語のタイトル2", "2"),
        ("Über Tag", "uber-tag"),
        ("a\nb", "a-b"),
        ("", "untitled"),
        ("x" * 79 + " yz", "x" * 79),
    ],
)
def test_slug_of_a_title(title: str, expected: str) -> None:
    assert paths.slug(title) == expected


@given(st.text())
def test_slug_is_idempotent_short_and_plain(title: str) -> None:
    slug = paths.slug(title)
    assert paths.slug(slug) == slug
    assert 0 < len(slug) <= paths.SLUG_CHARS
    assert slug.strip("abcdefghijklmnopqrstuvwxyz0123456789-") == ""


@pytest.mark.parametrize(
    ("stem", "ordinal", "expected"),
    [
        ("cache", 1, "cache"),
        ("cache", 2, "cache-2"),
        ("cache-2", 2, "cache-2-2"),
        ("a" * 80, 12, "a" * 77 + "-12"),
        ("a" * 77 + "-bc", 2, "a" * 77 + "-2"),
        ("a" * 78 + "-2", 2, "a" * 77 + "-2"),
    ],
)
def test_suffixed_stays_within_the_limit_and_differs(
    stem: str, ordinal: int, expected: str
) -> None:
    assert paths.suffixed(stem, ordinal) == expected


@given(st.text(alphabet="ab-2", min_size=1, max_size=80), st.integers(2, 1000))
def test_suffixed_never_gives_the_stem_again(text: str, ordinal: int) -> None:
    stem = paths.slug(text)
    tried = paths.suffixed(stem, ordinal)
    assert tried != stem
    assert len(tried) <= paths.SLUG_CHARS
    assert paths.slug(tried) == tried


def test_filename_of_an_episode_carries_the_day_of_writing() -> None:
    assert paths.filename("x", "episodic", "2026-12-01T10:00:00Z") == "20261201-x.html"
    assert paths.filename("x", "semantic", "2026-12-01T10:00:00Z") == "x.html"


@pytest.mark.parametrize(
    ("memory_type", "workspace", "tags", "expected"),
    [
        ("arc", "checkout", ["a"], "areas/arcs"),
        ("task", "Check Out", [], "projects/check-out/tasks"),
        ("task", None, ["a"], "areas/inbox/tasks"),
        ("semantic", "checkout", ["a"], "projects/checkout"),
        ("semantic", " ", ["", " ", "Über Tag"], "resources/uber-tag"),
        ("procedural", None, ["a"], "resources/a"),
        ("precedent", None, ["People"], "areas/inbox"),
        ("agent_insight", None, ["a"], "areas/inbox"),
        ("semantic", None, [], "areas/inbox"),
    ],
)
def test_placement_takes_the_first_matching_rule(
    memory_type: str, workspace: str | None, tags: list[str], expected: str
) -> None:
    assert paths.placement(memory_type, workspace, tags) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("archive/2026/areas/x.html", (2026, 1, "areas/x.html")),
        ("archive/2026.2/areas/x.html", (2026, 2, "areas/x.html")),
        ("archive/2026.10/areas/x.html", (2026, 10, "areas/x.html")),
        ("archive/12026/areas/x.html", (12026, 1, "areas/x.html")),
        ("archive/0026/areas/x.html", (26, 1, "areas/x.html")),
        ("archive/2026.0/areas/x.html", None),
        ("archive/2026.1/areas/x.html", None),
        ("archive/2026.02/areas/x.html", None),
        ("archive/02026/areas/x.html", None),
        ("archive/226/areas/x.html", None),
        ("archive/2026/", None),
        ("archive/٢٠٢٦/areas/x.html", None),
        ("areas/x.html", None),
    ],
)
def test_archive_slot_reads_exactly_one_prefix(
    path: str, expected: tuple[int, int, str] | None
) -> None:
    assert paths.archive_slot(path) == expected


@given(st.text(min_size=1), st.integers(0, 10**6), st.integers(1, 10**6))
def test_archive_slot_is_a_left_inverse(path: str, year: int, slot: int) -> None:
    assert paths.archive_slot(paths.archive_path(path, year, slot)) == (year, slot, path)


@pytest.mark.parametrize(
    ("path", "session", "curate"),
    [
        (".memhtml", "state", "state"),
        (".memhtml/x.html", "state", "state"),
        ("memhtml.config.json", "policy", "policy"),
        ("areas/memhtml.config.json", None, None),
        ("areas/x/index.html", "generated", "generated"),
        ("sitemap.xml", "generated", "generated"),
        ("areas/arcs/x.html", "curation", None),
        ("/areas//arcs/x.html", "curation", None),
        ("resources/people/x.html", "curation", None),
        ("archive/2026/areas/arcs/x.html", "curation", None),
        ("archive/2026.2/archive/2025/resources/people/x.html", "curation", None),
        ("areas/inbox/arcs-note.html", None, None),
        ("areas/arcs-2/x.html", None, None),
    ],
)
def test_reserved_paths_by_scope(path: str, session: str | None, curate: str | None) -> None:
    for scope, expected in (("session", session), ("curate", curate)):
        found = paths.reserved(path, scope)
        assert (found.kind if found else None) == expected


def test_parents_come_shortest_first() -> None:
    assert list(paths.parents("areas/inbox/x.html")) == ["areas", "areas/inbox"]
    assert list(paths.parents("x")) == []


@pytest.mark.parametrize(
    ("href", "fits", "target"),
    [
        ("/areas/x.html", True, "areas/x.html"),
        ("/areas/x.html?a=//#../b", True, "areas/x.html"),
        ("/areas/x.html#a?b", True, "areas/x.html"),
        ("//host/x", False, "/host/x"),
        ("x.html", False, "x.html"),
        ("/a//b", False, "a//b"),
        ("/", False, ""),
        ("/a/", False, "a/"),
        ("/a/../b", False, "a/../b"),
        ("/?x", False, ""),
        ("https://host/x", False, "https://host/x"),
        (" /a", False, " /a"),
    ],
)
def test_href_shape_and_target(href: str, fits: bool, target: str) -> None:
    assert paths.is_root_relative(href) is fits
    assert paths.href_target(href) == target


@pytest.mark.parametrize(
    "segment",
    [".git", ".GIT", ".git.", "git~1", ".g\u200cit", ".git:x", "x" * 256, "é" * 128],
)
def test_path_that_no_checkout_can_hold_is_no_memory_path(segment: str) -> None:
    assert paths.problem(f"areas/{segment}/a.html") is not None


def test_longest_name_that_fits_is_a_memory_path() -> None:
    assert paths.problem(f"areas/{'x' * 250}.html") is None
