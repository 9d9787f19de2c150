"""Tells a generated page from one that a person wrote under the same name."""

from __future__ import annotations

import io

from lxml import etree  # Loaded with this module, which only `publish` loads.

from memhtml.publish.page import GENERATOR
from memhtml.publish.sitemap import NAMESPACE, PATH

_MARK = f"//meta[@name = 'generator' and @content = '{GENERATOR}']"
_ROOTS = frozenset({f"{{{NAMESPACE}}}urlset", f"{{{NAMESPACE}}}sitemapindex"})


def is_generated(path: str, data: bytes) -> bool:
    """Whether a file may be made anew: a listing that names its generator, or any site map.

    A site map says nothing that a person could have written better, whoever made it. Never raises.
    """
    return _is_site_map(data) if path == PATH else _is_listing(data)


def _is_listing(data: bytes) -> bool:
    try:
        tree = etree.fromstring(data, etree.HTMLParser(no_network=True, huge_tree=False))
    except (etree.LxmlError, ValueError):
        return False
    return tree is not None and bool(tree.xpath(_MARK))


def _is_site_map(data: bytes) -> bool:
    # Only the first start tag is read, however long the file is.
    events = etree.iterparse(io.BytesIO(data), ("start",), no_network=True, resolve_entities=False)
    try:
        return next((element.tag in _ROOTS for _event, element in events), False)
    except (etree.LxmlError, SyntaxError, ValueError):
        return False
