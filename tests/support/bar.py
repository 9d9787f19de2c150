"""Small corpora and pages for tests of the write bar."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memhtml.bar.judge import judge
from memhtml.corpus.interface import FileKind
from memhtml.corpus.memory import MemoryCorpus
from memhtml.policy import DEFAULT, Policy
from memhtml_format.ops import Op
from memhtml_format.violations import Violation
from memhtml_format.vocab import rel_token

A = "areas/inbox/a.html"
B = "areas/inbox/b.html"
C = "areas/inbox/c.html"
STRICT = Policy(require_anchor=True)


class CountingCorpus(MemoryCorpus):
    """An in-memory corpus that remembers what was asked of the tree."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(files)
        self.tree_questions: list[str] = []

    def file_kind(self, path: str) -> FileKind | None:
        """As the corpus answers, and counted."""
        self.tree_questions.append(path)
        return super().file_kind(path)


def page(
    claim: str,
    *,
    kind: str = "semantic",
    title: str = "A title",
    entities: Sequence[str] = (),
    links: Sequence[tuple[str, str]] = (),
    extra_head: Sequence[str] = (),
) -> str:
    """A whole memory file with one claim; `links` are bare rels and hrefs."""
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f"<title>{title}</title>",
        f'<meta name="memhtml-type" content="{kind}">',
        '<meta name="memhtml-status" content="active">',
        '<meta name="memhtml-created" content="2026-03-01T09:00:00Z">',
        '<meta name="memhtml-updated" content="2026-03-01T09:00:00Z">',
        *(['<meta name="memhtml-task-status" content="todo">'] if kind == "task" else []),
        *(f'<meta name="memhtml-entity" content="{value}">' for value in entities),
        *extra_head,
        *(f'<link rel="{rel_token(rel)}" href="{href}">' for rel, href in links),
        "</head>",
        "<body>",
        "<article>",
        f"<p><mark>{claim}</mark></p>",
        "</article>",
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(lines)


def corpus(records: Mapping[str, str], others: Collection[str] = ()) -> CountingCorpus:
    """A base with these records; `others` are files that are no records."""
    files = {path: html.encode() for path, html in records.items()}
    return CountingCorpus(files | {path: b"not a memory" for path in others})


def judged(
    base: MemoryCorpus, *ops: Op, policy: Policy = DEFAULT, scope: str = "session"
) -> list[Violation]:
    """The bar's findings over a whole log."""
    return judge(ops, base, policy, scope)


def kinds(found: Sequence[Violation]) -> list[tuple[str, str | None]]:
    """Kind and path of each finding, in order."""
    return [(violation.kind, violation.path) for violation in found]


def only_reason(found: Sequence[Violation], kind: str, path: str) -> str:
    """The one reason of the one finding, which must be of this kind at this path."""
    assert kinds(found) == [(kind, path)], found
    assert len(found[0].reasons) == 1, found
    return found[0].reasons[0]


def reasons(found: Sequence[Violation], kind: str, path: str) -> str:
    """All reasons of the one finding, joined as a sentence joins them."""
    assert kinds(found) == [(kind, path)], found
    return "; ".join(found[0].reasons)
