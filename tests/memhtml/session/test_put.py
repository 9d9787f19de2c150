"""What a put refuses before it does any work."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.session import make_store, put_op, start_log, who

from memhtml.errors import MemhtmlError
from memhtml.session import put as session_put
from memhtml.session.log import read_log
from memhtml_format.jsonl import decode_lines
from memhtml_format.violations import BATCH_CAP

LINE = '{"op":"write","title":"One title","type":"semantic","body":"The fact %d holds."}'
LABEL = '{"op":"label","path":"areas/inbox/a.html","entity":"team:%d"}'


@pytest.fixture
def store(tmp_path: Path) -> str:
    """An empty store."""
    return make_store(str(tmp_path / "store"))


def refused(root: str, line: str, count: int) -> str:
    """The sentence of a put that is refused."""
    text = "\n".join(line % number for number in range(count))
    lines = decode_lines(text, ops=frozenset({"write", "label"}), command="session put")
    with pytest.raises(MemhtmlError) as caught:
        session_put.put(root, who("s"), lines)
    assert caught.value.code == "ERR_INVALID_MEMORY"
    return str(caught.value)


def test_put_of_too_many_lines_answers_the_cap_and_renders_nothing(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_log(store, "s", [])
    monkeypatch.setattr(session_put, "render", None)
    # More of one title than there are names for it.
    said = refused(store, LINE, 1_200)
    assert said.startswith("nothing was appended: the session would hold 1200 operations")
    assert f"at most {BATCH_CAP}" in said
    assert read_log(store, "s").ops == ()


@pytest.mark.parametrize("line", [LINE, LABEL], ids=["write", "label"])
def test_cap_counts_what_the_log_holds(store: str, line: str) -> None:
    start_log(store, "s", [put_op(f"o{number}") for number in range(BATCH_CAP - 1)])
    assert f"would hold {BATCH_CAP + 1} operations" in refused(store, line, 2)


def test_a_refusal_of_several_lines_names_the_line_and_what_it_lacks(store: str) -> None:
    start_log(store, "s", [])
    good = LINE % 1
    bad = '{"op":"write","title":"Bad","type":"semantic"}'
    for text, wanted in (
        (f"{good}\n\n{bad}", "nothing was appended: line 3: areas/inbox/bad.html: "),
        (bad, "nothing was appended: areas/inbox/bad.html: "),
    ):
        lines = decode_lines(text, command="session put")
        with pytest.raises(MemhtmlError) as caught:
            session_put.put(store, who("s"), lines)
        assert str(caught.value).startswith(wanted)
        assert str(caught.value).endswith("the line has neither body nor article_html")
        assert caught.value.suggestions == ("memhtml help session put",)
