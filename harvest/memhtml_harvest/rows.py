"""The table of spec `harvest` §3.3: what one file that is present and new or different means.

`place_refusal` holds the rows that need a name and a kind, `content` those that need the bytes,
`file_change` the rest. The first row that matches decides; their order is the specification's.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from memhtml_format import paths
from memhtml_harvest import heads
from memhtml_harvest.budget import Budget
from memhtml_harvest.report import Candidate, Findings, Refusal
from memhtml_harvest.seed import Entry, Seed, holds_exactly, record_above

FILE_BYTES_CAP = 1_048_576
"""A harvested file holds at most this many bytes (spec `harvest` §2.2)."""

_GENERATED = ("index.html", "sitemap.xml")
_POLICY = "memhtml.config.json"
_KINDS = {
    "link": "a symbolic link; its target is not read",
    "pipe": "a named pipe",
    "socket": "a socket",
    "device": "a device",
}


def git_entry(raw: bytes) -> bytes | None:
    """Row 1: the outermost part of a name that ends in a `.git` segment, in any case."""
    if b".git" not in raw.lower():
        return None
    segments = raw.split(b"/")
    for at, segment in enumerate(segments):
        if segment.lower() == b".git":
            return b"/".join(segments[: at + 1])
    return None


class Run(NamedTuple):
    """What the table asks about one run: `gone` are the vanished paths."""

    seed: Seed
    gone: Collection[str]
    scope: str
    budget: Budget


def file_change(raw: bytes, entry: Entry, findings: Findings, run: Run) -> None:
    """File what the entry `raw` of the changed tree means."""
    path = _decoded(raw)
    seeded = None if path is None else run.seed.read(path)
    if seeded is not None and holds_exactly(entry, seeded):
        return
    git = git_entry(raw)
    if git is not None:
        findings.reject(git, Refusal("git-internal", "git's own storage, never a memory"))
        return
    refusal = _kind_refusal(entry)
    if refusal or path is None:
        findings.reject(raw, refusal or Refusal("not-a-memory-path", "the name is not UTF-8"))
        return
    refusal = place_refusal(path, run.seed, run.scope)
    html = refusal or content(entry, run.budget)
    if isinstance(html, Refusal):
        findings.reject(raw, html)
        return
    _file_content(path, html, seeded, findings, run)


def place_refusal(path: str, seed: Seed, scope: str) -> Refusal | None:
    """Rows 3 to 8: why no file at `path` can be taken, whatever it holds; None when one can."""
    control = next((c for c in path if c < " " or c == "\x7f"), None)
    if control:
        return Refusal("not-a-memory-path", f"holds the character U+{ord(control):04X}")
    name = path.rpartition("/")[2]
    if name in _GENERATED:
        return Refusal("reserved-path", f"{name} is a generated page, no session writes it")
    if path == _POLICY:
        return Refusal("reserved-path", "the store policy, no session writes it")
    if not path.endswith(".html"):
        return Refusal("not-html", "a memory's name ends in .html, in lower case")
    slot = paths.archive_slot(path)
    reserved = None if slot else paths.reserved(path, scope)
    if reserved:
        return Refusal("reserved-path", reserved.text)
    return _memory_path_refusal(path, slot) or _nesting_refusal(path, seed)


def content(entry: Entry, budget: Budget) -> bytes | Refusal:
    """Rows 9 and 10: the bytes of a regular file, or why they cannot be taken.

    The budget is charged with the size that the file states, before it is read.
    """
    if entry.size > FILE_BYTES_CAP:
        return _too_large(entry.size)
    refusal = budget.take_file(entry.size)
    if refusal:
        return refusal
    try:
        data = entry.read(FILE_BYTES_CAP + 1)
    except OSError as error:
        return Refusal("unreadable", error.strerror or "the file could not be read")
    if len(data) > FILE_BYTES_CAP:
        return _too_large(len(data))
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return Refusal("not-utf8", f"byte {error.start} begins no UTF-8 character")
    return data


def _file_content(
    path: str, data: bytes, seeded: bytes | None, findings: Findings, run: Run
) -> None:
    """Rows 11 to 14."""
    if seeded is None:
        findings.puts[path] = Candidate(data, new=True)
        return
    if paths.is_archived(path):
        slot = paths.archive_slot(path)
        if slot and slot.original in run.gone and not paths.is_archived(slot.original):
            findings.puts[path] = Candidate(data, new=False)
            return
        text = "an archived record is history and is never edited"
        findings.reject_path(path, Refusal("archived-record", text))
        return
    edit = heads.edit_of(seeded, data, run.seed.content_hash(path))
    if edit is None:
        findings.puts[path] = Candidate(data, new=False)
        return
    refusal = heads.refusal(edit) or run.budget.take_head_ops(edit.ops_count)
    if refusal:
        findings.reject_path(path, refusal)
    else:
        findings.head_ops[path] = heads.operations(path, edit)


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _kind_refusal(entry: Entry) -> Refusal | None:
    """Row 2, and the entries that lie too deep for the walk (spec `sandbox` §7)."""
    if entry.kind == "file":
        return None
    if entry.kind == "too-deep":
        text = "lies below more folders than the harvest descends into"
        return Refusal("not-a-memory-path", text)
    return Refusal("not-a-regular-file", _KINDS.get(entry.kind, "no regular file"))


def _memory_path_refusal(path: str, slot: paths.ArchiveSlot | None) -> Refusal | None:
    """Row 7."""
    problem = paths.problem(path)
    if problem:
        return Refusal("not-a-memory-path", problem)
    if not paths.is_archived(path):
        return None
    if slot is None:
        return Refusal("not-a-memory-path", "under archive/ only archive/<year>[.N]/<path> is one")
    problem = paths.problem(slot.original)
    if problem:
        return Refusal("not-a-memory-path", f"the archive slot is for a path that {problem}")
    return None


def _nesting_refusal(path: str, seed: Seed) -> Refusal | None:
    """Row 8: git holds a file or a folder at a path, never both."""
    above = record_above(seed, path)
    if above is not None:
        return Refusal("path-under-record", f"{above} is a record, so nothing can lie below it")
    if seed.holds_under(path):
        return Refusal("path-under-record", "the path is a folder that holds records")
    return None


def _too_large(size_bytes: int) -> Refusal:
    text = f"{size_bytes} bytes, and a harvested file holds at most {FILE_BYTES_CAP}"
    return Refusal("too-large", text)
