"""The shared golden renderings, read as one stream."""

from __future__ import annotations

import json

from lxml import etree
from lxml import html as lxml_html
from tests.support.format import AT, shared_cases

from memhtml_format import jsonl, record, render


def test_golden_lines_render_byte_for_byte_as_one_stream() -> None:
    cases = shared_cases("render.json")
    stream = "\n".join(json.dumps(case["line"]) for case in cases)
    lines = jsonl.decode_lines(stream)
    paths: set[str] = set()
    hashes: set[str] = set()
    for case, line in zip(cases, lines, strict=True):
        assert isinstance(line, jsonl.WriteLine)
        made = render.render(line.draft, AT)
        if made.problems:
            assert case["expect"] == {"refused": "ERR_INVALID_MEMORY"}, case["name"]
            continue
        if made.content_hash in hashes:
            assert case["expect"] == {"deduped": True}, case["name"]
            continue
        path = render.plan_path(line.draft, AT, paths.__contains__)
        paths.add(path)
        hashes.add(made.content_hash)
        got = {
            "path": path.replace("20261201", "{DATE}"),
            "contentHash": made.content_hash,
            "html": made.html.replace(AT, "{AT}"),
        }
        assert got == case["expect"], case["name"]
    assert len(paths) == 47


def test_golden_files_read_alike_in_a_second_reader() -> None:
    for case in shared_cases("render.json"):
        source = case["expect"].get("html")
        if source is None:
            continue
        source = source.replace("{AT}", AT)
        found = record.read("areas/inbox/x.html", source.encode()).record
        assert found is not None, case["name"]
        tree = lxml_html.document_fromstring(source)
        assert found.tags == tuple(_metas(tree, "memhtml-tag")), case["name"]
        assert found.entities == tuple(_metas(tree, "memhtml-entity")), case["name"]
        assert [found.memory_type] == _metas(tree, "memhtml-type"), case["name"]
        assert found.title == " ".join((tree.findtext(".//title") or "").split())
        mark = tree.find(".//mark")
        assert mark is not None
        if mark.find(".//code") is None:
            text = etree.tostring(mark, method="text", encoding="unicode", with_tail=False)
            assert found.claim == " ".join(text.split(" ")).replace("\n", " ").strip()


def _metas(tree: lxml_html.HtmlElement, name: str) -> list[str]:
    return [str(value) for value in tree.xpath("//head/meta[@name=$name]/@content", name=name)]
