"""What an href names (spec `format` §3.3)."""

from __future__ import annotations

import pytest

from memhtml.bar.hrefs import is_root_relative, target


@pytest.mark.parametrize(
    ("href", "named"),
    [
        ("/a/b.html", "a/b.html"),
        ("/a/b.html?x#y", "a/b.html"),
        ("/a/b.html#y?x", "a/b.html"),
        ("/a%20b.html", "a%20b.html"),
        ("//a", "/a"),
    ],
)
def test_target_is_the_part_before_query_and_fragment_without_one_slash(
    href: str, named: str
) -> None:
    assert target(href) == named


@pytest.mark.parametrize(
    ("href", "allowed"),
    [
        ("/a", True),
        ("/a/b.html?q=//x", True),
        ("/a#../b", True),
        ("", False),
        ("/", False),
        ("/#x", False),
        ("a/b.html", False),
        ("//host/x", False),
        ("/a//b", False),
        ("/a/", False),
        ("/a/./b", False),
        ("/../b", False),
        ("http://host/x", False),
    ],
)
def test_root_relative_href_has_one_slash_and_plain_segments(href: str, allowed: bool) -> None:
    assert is_root_relative(href) is allowed
