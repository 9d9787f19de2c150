"""Random small trees against a slow second reading of spec `harvest` §3, and general properties.

The oracle knows each file by what it was made from, so it parses nothing: two files are the same
article when they were given the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import NamedTuple, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.harvest import Doc, summary

from memhtml_format.ops import touched
from memhtml_harvest.diff import diff_trees, harvest
from memhtml_harvest.report import Harvest
from memhtml_harvest.seed import Entry, FileEntry, MapSeed


class Note(NamedTuple):
    """What a file says, as far as these tests vary it."""

    words: str
    title: str = "Title"
    links: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    comment: bool = False
    broken: bool = False

    @property
    def data(self) -> bytes:
        """The file's bytes; a broken one lacks its title and says the same words."""
        return Doc(
            words=self.words,
            title="" if self.broken else self.title,
            links=tuple(("supports", href) for href in self.links),
            entities=self.entities,
            head_extra="<!-- x -->" if self.comment else "",
        ).data


LINK = "link"
File: TypeAlias = Note | str
Lines: TypeAlias = tuple[list[str], list[tuple[str, str]]]

LIVE = ("areas/inbox/a.html", "areas/inbox/b.html", "projects/p/c.html", "resources/people/p.html")
SLOTS = (
    "archive/2026/areas/inbox/a.html",
    "archive/2026.2/areas/inbox/a.html",
    "archive/2026.10/areas/inbox/a.html",
    "archive/0999/areas/inbox/b.html",
    "archive/2026/resources/people/p.html",
)
ODD = ("areas/inbox/x.txt", "loose.html", "areas/index.html", "areas/inbox/b.html/under.html")
HREFS = ("/areas/inbox/x.html", "/areas/inbox/y.html")

COMMANDS = ("retire", "move", "copy", "remove", "write", "edit", "edit", "link")

notes = st.builds(
    Note,
    words=st.sampled_from(["One.", "Two.", "Three."]),
    title=st.sampled_from(["Title", "Other"]),
    links=st.lists(st.sampled_from(HREFS), unique=True, max_size=2).map(tuple),
    entities=st.lists(st.sampled_from(["a:x", "b:y"]), unique=True, max_size=2).map(tuple),
    comment=st.booleans(),
    broken=st.just(False),
)
plain_notes = st.sampled_from([Note("One."), Note("Two."), Note("Three.")])
befores = st.dictionaries(
    st.sampled_from([*LIVE, *SLOTS]), plain_notes | notes, min_size=1, max_size=5
)
scopes = st.sampled_from(["session", "curate"])


@st.composite
def scripts(draw: st.DrawFn) -> tuple[dict[str, Note], dict[str, File]]:
    """A seed and the tree that a few commands leave of it."""
    before = draw(befores)
    after: dict[str, File] = dict(before)
    for _ in range(draw(st.integers(1, 5))):
        target = draw(st.sampled_from([*LIVE, *SLOTS, *ODD]))
        source = draw(st.sampled_from(sorted(after))) if after else target
        command = draw(st.sampled_from(COMMANDS))
        slots = [slot for slot in SLOTS if slot.endswith(f"/{source}")]
        if command == "retire" and slots:
            command, target = "move", draw(st.sampled_from(slots))
        _perform(command, source, target, after, draw)
    return before, _possible(after)


def _perform(
    command: str, source: str, target: str, after: dict[str, File], draw: st.DrawFn
) -> None:
    file = after.get(source)
    if command == "write":
        after[target] = draw(notes)
    elif command == "link":
        after[target] = LINK
    elif command == "remove":
        after.pop(source, None)
    elif command == "edit" and isinstance(file, Note):
        after[source] = _edited(file, draw)
    elif command in ("move", "copy") and file is not None:
        if command == "move":
            del after[source]
        after[target] = file


def _edited(note: Note, draw: st.DrawFn) -> Note:
    """The note with one field from another one, or without its title."""
    other = draw(notes)
    return draw(
        st.sampled_from(
            [
                note._replace(title=other.title),
                note._replace(links=other.links),
                note._replace(entities=other.entities),
                note._replace(comment=other.comment),
                note._replace(broken=True),
            ]
        )
    )


def _possible(after: dict[str, File]) -> dict[str, File]:
    """Without the files that would lie below another file."""
    return {
        path: file
        for path, file in after.items()
        if not any(path.startswith(f"{other}/") for other in after)
    }


def _reserved(path: str, scope: str) -> bool:
    return scope == "session" and "resources/people/" in path


def _slot(path: str) -> tuple[int, int, str] | None:
    if not path.startswith("archive/"):
        return None
    _, label, original = path.split("/", 2)
    year, _, number = label.partition(".")
    return int(year), int(number or 1), original


def _head(old: Note, new: Note, path: str) -> list[str] | None:
    """The operations of a head edit, None when it is more than links and entities."""
    ops = [
        *(f"link {path} supports {h}" for h in new.links if h not in old.links),
        *(f"unlink {path} supports {h}" for h in old.links if h not in new.links),
        *(f"label {path} {e}" for e in new.entities if e not in old.entities),
        *(f"unlabel {path} {e}" for e in old.entities if e not in new.entities),
    ]
    same = (old.title, old.comment) == (new.title, new.comment) and not new.broken
    return ops if ops and same else None


class Oracle:
    """Section 3 once more, with a scan where the harvester has an index."""

    def __init__(self, before: Mapping[str, Note], after: Mapping[str, File], scope: str) -> None:
        self.before, self.after, self.scope = before, after, scope
        self.gone = [p for p in sorted(before) if not isinstance(after.get(p), Note)]
        self.puts: dict[str, Note] = {}
        self.heads: dict[str, list[str]] = {}
        self.archives: list[str] = []
        self.moves: list[str] = []
        self.rejected: dict[str, str] = {}

    def lines(self) -> Lines:
        for path, file in self.after.items():
            if file != self.before.get(path):
                self._present(path, file)
        for path in self.gone:
            code = self._vanished(path)
            if code and self.after.get(path) != LINK:
                self.rejected[path] = code
        for path in [p for p in self.puts if _reserved(p, self.scope)]:
            del self.puts[path]
            self.rejected[path] = "reserved-path"
        ops = [f"put {p}" for p in sorted(self.puts)]
        ops += [line for p in sorted(self.heads) for line in self.heads[p]]
        return ops + self.archives + self.moves, sorted(self.rejected.items())

    def _present(self, path: str, file: File) -> None:
        code = self._name_code(path, file)
        if code:
            self.rejected[path] = code
            return
        assert isinstance(file, Note)
        old, slot = self.before.get(path), _slot(path)
        if old and slot:
            if slot[2] in self.gone:
                self.puts[path] = file
            else:
                self.rejected[path] = "archived-record"
        elif old and old.words == file.words and not file.broken:
            ops = _head(old, file, path)
            if ops is None:
                self.rejected[path] = "head-edit"
            else:
                self.heads[path] = ops
        else:
            self.puts[path] = file

    def _name_code(self, path: str, file: File) -> str | None:
        if file == LINK:
            return "not-a-regular-file"
        if path.endswith("index.html"):
            return "reserved-path"
        if path.endswith(".txt"):
            return "not-html"
        if path.startswith("resources/people/") and self.scope == "session":
            return "reserved-path"
        if "/" not in path:
            return "not-a-memory-path"
        if any(path.startswith(f"{record}/") for record in self.before):
            return "path-under-record"
        return "path-under-record" if any(r.startswith(f"{path}/") for r in self.before) else None

    def _vanished(self, path: str) -> str | None:
        """Settle one path; the code it is refused with, None when it became an operation."""
        if path.startswith("archive/"):
            return "deleted"
        record = self.before[path]
        slots = [(_slot(p), p) for p in self.puts]
        twins = sorted((s[0], s[1], p) for s, p in slots if s and s[2] == path)
        copies = [
            p
            for p, note in self.puts.items()
            if p not in self.before and not p.startswith("archive/") and note.words == record.words
        ]
        if not twins and len(copies) != 1:
            return "deleted"
        partner = twins[0][2] if twins else copies[0]
        if _reserved(path, self.scope):
            del self.puts[partner]
            self.rejected[partner] = "reserved-path"
            return "reserved-path"
        note = self.puts[partner]
        if note.words != record.words:
            return "twin-differs"
        if note.data != record.data:
            ops = _head(record, note, path)
            if ops is None:
                return "head-edit"
            self.heads[path] = ops
        del self.puts[partner]
        if twins:
            self.archives.append(f"archive {path} {partner}")
        else:
            self.moves.append(f"move {path} {partner}")
        return None


def entries(after: Mapping[str, File]) -> dict[bytes, Entry]:
    return {
        path.encode(): FileEntry(file.data) if isinstance(file, Note) else FileEntry(kind=file)
        for path, file in after.items()
    }


def harvested(before: Mapping[str, Note], after: Mapping[str, File], scope: str) -> Harvest:
    seed = {path: note.data for path, note in before.items()}
    changes = diff_trees(seed, entries(after))
    return harvest(changes.changed, changes.vanished, MapSeed(seed), scope=scope)


@settings(max_examples=300, deadline=None)
@given(scripts(), scopes)
def test_harvest_agrees_with_the_slow_reading(
    trees: tuple[dict[str, Note], dict[str, File]], scope: str
) -> None:
    before, after = trees
    ops, rejected = Oracle(before, after, scope).lines()

    result = harvested(before, after, scope)

    assert summary(result)[0] == ops
    assert [(item.path, item.code) for item in result.rejected] == rejected


@settings(max_examples=100, deadline=None)
@given(scripts(), scopes)
def test_nothing_changed_goes_unreported(
    trees: tuple[dict[str, Note], dict[str, File]], scope: str
) -> None:
    before, after = trees
    seed = {path: note.data for path, note in before.items()}
    changes = diff_trees(seed, entries(after))

    result = harvest(changes.changed, changes.vanished, MapSeed(seed), scope=scope)

    named = {path for op in result.ops for path in touched(op)}
    listed = [item.path for item in result.rejected]
    changed = {raw.decode() for raw in changes.changed} | changes.vanished
    assert changed == named | set(listed)
    assert len(listed) == len(set(listed))


@settings(max_examples=60, deadline=None)
@given(scripts(), scopes, st.randoms())
def test_equal_trees_give_equal_reports_in_any_order(
    trees: tuple[dict[str, Note], dict[str, File]], scope: str, random: Random
) -> None:
    before, after = trees
    paths = list(after)
    random.shuffle(paths)
    seeded = list(before)
    random.shuffle(seeded)

    shuffled = harvested({p: before[p] for p in seeded}, {p: after[p] for p in paths}, scope)

    assert shuffled == harvested(before, after, scope)


@settings(max_examples=100, deadline=None)
@given(scripts(), scopes)
def test_operations_and_rejections_are_in_the_fixed_order(
    trees: tuple[dict[str, Note], dict[str, File]], scope: str
) -> None:
    result = harvested(*trees, scope)

    rank = {"put": 0, "archive": 2, "move": 3}
    keys = [(rank.get(op.kind, 1), op.path) for op in result.ops]
    assert keys == sorted(keys)
    assert [item.path for item in result.rejected] == sorted(i.path for i in result.rejected)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.binary(min_size=1, max_size=12).filter(
            lambda raw: b"\0" not in raw and not {b"", b".", b"..", b".git"} & set(raw.split(b"/"))
        ),
        st.sampled_from(["file", "link", "pipe", "too-deep"]),
        max_size=6,
    )
)
def test_any_names_at_all_are_reported_and_never_raise(kinds: dict[bytes, str]) -> None:
    changed: dict[bytes, Entry] = {raw: FileEntry(kind=kind) for raw, kind in kinds.items()}

    result = harvest(changed, (), MapSeed({}), scope="session")

    assert len(result.ops) + len(result.rejected) == len(changed)
