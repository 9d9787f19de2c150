"""Where drafts go, and that looking for a free name never starts over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.doors import AT, refused

from memhtml.doors.places import Places
from memhtml.errors import StorageError
from memhtml_format import render
from memhtml_format.render import Draft


def places(*taken: str, blocker: str | None = None) -> Places:
    return Places(lambda path: path in taken, lambda _path: blocker)


def test_a_draft_goes_where_its_rule_says_and_the_next_one_beside_it() -> None:
    found = places("areas/inbox/a.html", "areas/inbox/a-3.html")
    draft = Draft("A", "semantic")
    assert [found.find(draft, AT) for _ in range(3)] == [
        "areas/inbox/a-2.html",
        "areas/inbox/a-4.html",
        "areas/inbox/a-5.html",
    ]


def test_names_that_meet_each_other_are_told_apart() -> None:
    found = places()
    titles = ["A", "A 2", "A", "A 2", "A"]
    assert [found.find(Draft(title, "semantic"), AT)[12:-5] for title in titles] == [
        *("a", "a-2", "a-3", "a-2-2", "a-4"),
    ]


def test_an_episodic_name_carries_the_day_of_writing() -> None:
    assert places().find(Draft("A", "episodic"), AT) == "areas/inbox/20260504-a.html"


@given(
    st.lists(st.sampled_from(["a", "a 2", "a-3", "b", "x" * 80, "x" * 79]), max_size=30),
    st.sets(st.sampled_from([f"areas/inbox/a-{n}.html" for n in range(2, 9)])),
)
def test_places_are_those_of_a_search_from_the_start(titles: list[str], there: set[str]) -> None:
    found, claimed = places(*there), set(there)
    for title in titles:
        draft = Draft(title, "semantic")
        expected = render.plan_path(draft, AT, claimed.__contains__)
        claimed.add(expected)
        assert found.find(draft, AT) == expected


def test_equal_titles_are_looked_up_once_each() -> None:
    asked: list[str] = []

    def exists(path: str) -> bool:
        asked.append(path)
        return False

    found = Places(exists, lambda _path: None)
    for _ in range(500):
        found.find(Draft("Same", "semantic"), AT)
    assert len(asked) == 500


def test_the_thousandth_name_is_the_last_and_the_rest_is_not_searched_again() -> None:
    asked: list[str] = []

    def exists(path: str) -> bool:
        asked.append(path)
        return False

    found = Places(exists, lambda _path: None)
    for _ in range(1000):
        found.find(Draft("Same", "semantic"), AT)
    for _ in range(3):
        code, text = refused(lambda: found.find(Draft("Same", "semantic"), AT))
        assert code == "ERR_STORAGE"
        assert text.startswith("storage operation failed: write.pathExhausted: ")
    assert len(asked) == 1000


@pytest.mark.parametrize("path", ["areas/x/a.html", "/areas//x/a.html/"])
def test_a_path_of_its_own_is_used_as_it_is_and_taken_once(path: str) -> None:
    found = places()
    draft = Draft("T", "semantic", path=path)
    assert found.find(draft, AT) == "areas/x/a.html"
    assert refused(lambda: found.find(draft, AT))[0] == "ERR_WRITE_CONFLICT"


def test_a_path_of_its_own_gets_no_suffix_when_the_checkout_has_it() -> None:
    found = places("areas/x/a.html")
    code, text = refused(lambda: found.find(Draft("T", "semantic", path="areas/x/a.html"), AT))
    assert (code, text) == ("ERR_WRITE_CONFLICT", "areas/x/a.html is taken")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("areas/x/a.html", "areas/x/a.html/b.html"),
        ("areas/x/a.html/b.html", "areas/x/a.html"),
    ],
)
def test_a_file_of_the_call_is_no_folder_of_another(first: str, second: str) -> None:
    found = places()
    found.find(Draft("T", "semantic", path=first), AT)
    assert refused(lambda: found.find(Draft("T", "semantic", path=second), AT))[0] == (
        "ERR_WRITE_CONFLICT"
    )


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("notes/a.html", "not rooted in a PARA bucket"),
        ("areas/a.txt", "does not end in .html"),
        ("areas/../a.html", "'..'"),
        ("areas/x/index.html", "a generated page"),
        ("", "is blank"),
        (" ", "is blank"),
    ],
)
def test_an_unusable_path_is_ignored_or_refused_when_it_is_strict(path: str, why: str) -> None:
    draft = Draft("T", "semantic", path=path)
    assert places().find(draft, AT) == "areas/inbox/t.html"
    strict = draft._replace(strict_path=True)
    code, text = refused(lambda: places().find(strict, AT))
    assert code == "ERR_INVALID_MEMORY"
    assert why in text


def test_strictness_without_a_path_does_nothing() -> None:
    assert places().find(Draft("T", "semantic", strict_path=True), AT) == "areas/inbox/t.html"


def test_a_file_where_the_folder_has_to_be_is_named_at_once() -> None:
    asked: list[str] = []

    def exists(path: str) -> bool:
        asked.append(path)
        return True

    found = Places(exists, lambda _path: "projects/p")
    with pytest.raises(StorageError, match="write: projects/p is in the way"):
        found.find(Draft("T", "semantic", workspace="p"), AT)
    assert len(asked) == 1
