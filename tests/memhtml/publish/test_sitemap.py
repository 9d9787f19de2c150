"""The site map, against the published schema of its format."""

from __future__ import annotations

from lxml import etree

from memhtml.publish.folders import folders_of
from memhtml.publish.marks import is_generated
from memhtml.publish.rows import Row
from memhtml.publish.sitemap import NAMESPACE, SiteMap

# The rules of sitemaps.org's sitemap.xsd, version 0.9, for what is used here.
SCHEMA = etree.XMLSchema(
    etree.fromstring(
        f"""<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema"
  targetNamespace="{NAMESPACE}" xmlns="{NAMESPACE}" elementFormDefault="qualified">
 <xsd:element name="urlset"><xsd:complexType><xsd:sequence>
  <xsd:element name="url" minOccurs="0" maxOccurs="unbounded"><xsd:complexType><xsd:sequence>
   <xsd:element name="loc"><xsd:simpleType><xsd:restriction base="xsd:anyURI">
    <xsd:minLength value="12"/><xsd:maxLength value="2048"/></xsd:restriction></xsd:simpleType>
   </xsd:element>
   <xsd:element name="lastmod" minOccurs="0"><xsd:simpleType>
    <xsd:union memberTypes="xsd:date xsd:dateTime"/></xsd:simpleType></xsd:element>
  </xsd:sequence></xsd:complexType></xsd:element>
 </xsd:sequence></xsd:complexType></xsd:element>
</xsd:schema>"""
    )
)


def chart(*rows: tuple[str, str]) -> bytes:
    """The site map of memories at these paths, updated at these instants."""
    made = SiteMap()
    listed = [Row(path, "T", "C", "semantic", at, None, None, None) for path, at in sorted(rows)]
    for folder in folders_of(listed):
        made.add(folder)
    return made.finish()


def entries(data: bytes) -> list[tuple[str, str | None]]:
    """Address and instant of each entry."""
    tree = etree.fromstring(data)
    assert SCHEMA.validate(tree), SCHEMA.error_log
    names = {"s": NAMESPACE}
    return [
        (url.findtext("s:loc", namespaces=names) or "", url.findtext("s:lastmod", namespaces=names))
        for url in tree.iterfind("s:url", namespaces=names)
    ]


def test_site_map_lists_live_memories_and_the_pages_of_their_folders() -> None:
    data = chart(("areas/inbox/a.html", "2026-05-04T09:00:00Z"), ("areas/b.html", "2026-06-01"))
    assert entries(data) == [
        ("/areas/inbox/a.html", "2026-05-04T09:00:00Z"),
        ("/areas/inbox/index.html", "2026-05-04T09:00:00Z"),
        ("/areas/b.html", "2026-06-01"),
        ("/areas/index.html", "2026-06-01"),
        ("/projects/index.html", None),
        ("/resources/index.html", None),
    ]


def test_what_is_archived_is_left_out() -> None:
    data = chart(("archive/2026/areas/old.html", "2026-05-04"))
    assert not [address for address, _at in entries(data) if "archive" in address]


def test_odd_names_and_leap_seconds_keep_to_the_schema() -> None:
    data = chart(("areas/a&b <ü>?#.html", "2026-06-30T23:59:60Z"))
    assert entries(data)[0] == ("/areas/a%26b%20%3C%C3%BC%3E%3F%23.html", "2026-06-30")


def test_shortest_address_of_all_is_long_enough() -> None:
    assert entries(chart(("areas/.html", "2026-06-30")))[0][0] == "/areas/.html"


def test_site_map_is_one_entry_a_line_and_known_as_generated() -> None:
    data = chart(("areas/a.html", "2026-05-04"))
    assert data.startswith(b"<?xml version='1.0' encoding='utf-8'?>\n<urlset ")
    assert data.count(b"\n") == 7
    assert is_generated("sitemap.xml", data)
    assert data == chart(("areas/a.html", "2026-05-04"))


def test_files_that_are_no_site_map_are_told_apart() -> None:
    for data in (b"", b"<urlset/>", b"no xml", b"\xff\xfe", b"<html></html>", b"<!DOCTYPE a ["):
        assert not is_generated("sitemap.xml", data)
    other = f'<?xml version="1.0"?><sitemapindex xmlns="{NAMESPACE}"/>'
    assert is_generated("sitemap.xml", other.encode())


def test_listings_that_somebody_wrote_are_told_apart() -> None:
    for data in (b"", b"<p>mine</p>", b"\x00", b"<meta name=generator content='Hand'>", b"\xff"):
        assert not is_generated("areas/index.html", data)
    marked = b"<html><head><meta content='memhtml publish' name='generator'></head></html>"
    assert is_generated("areas/index.html", marked)
