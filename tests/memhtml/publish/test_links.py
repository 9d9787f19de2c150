"""Addresses between pages: they must lead where a browser would go."""

from __future__ import annotations

from urllib.parse import unquote, urljoin, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from memhtml.publish.links import absolute, page_text, relative

SEGMENT = st.text(
    st.characters(exclude_characters="/\\", exclude_categories=("Cs", "Cc")), min_size=1, max_size=8
).filter(lambda text: text not in (".", ".."))
FOLDER = st.lists(SEGMENT, max_size=4).map("/".join)
FILE = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)


@given(FOLDER, FILE)
def test_relative_address_leads_to_the_file_on_disk_and_server(folder: str, path: str) -> None:
    for start in ("file:///home/you/store/", "https://example.org/notes/"):
        here = start + absolute(f"{folder}/index.html" if folder else "index.html")[1:]
        found = urljoin(here, relative(path, folder))
        assert unquote(found) == unquote(start) + path
        assert not (urlsplit(found).query or urlsplit(found).fragment)


@given(FILE)
def test_absolute_address_names_its_path_and_nothing_else(path: str) -> None:
    found = absolute(path)
    assert found.isascii()
    assert unquote(found) == f"/{path}"
    assert urlsplit(f"https://example.org{found}").path == found


def test_relative_address_is_short() -> None:
    assert relative("areas/inbox/a.html", "areas/inbox") == "a.html"
    assert relative("areas/inbox/index.html", "areas") == "inbox/index.html"
    assert relative("index.html", "areas/inbox") == "../../index.html"
    assert relative("archive/2026/areas/x.html", "areas") == "../archive/2026/areas/x.html"
    assert relative("areas/a:b?c#d%.html", "areas") == "a%3Ab%3Fc%23d%25.html"


def test_characters_that_xml_refuses_are_replaced() -> None:
    assert page_text("a\x00\x01\x0b\ufffe\ud800b\t\n\U0001f600") == "a�����b\t\n\U0001f600"
