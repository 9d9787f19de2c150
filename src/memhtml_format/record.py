"""Reading memory files: what a file says, or why it is no record (spec `format` §3.6, §4).

Reading is total: any bytes give a record or problems, never an exception. Nothing here looks at a
disk, and nothing invents a value that the file does not state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from memhtml_format import html, paths, vocab
from memhtml_format.frame import frame
from memhtml_format.instants import is_instant
from memhtml_format.text import collapse_ascii, is_blank, number, trim

if TYPE_CHECKING:
    from memhtml_format.scan import Scan

_NOT_UTF8 = "not valid UTF-8"
_MOST_REPRIEVES = 2**53
_INSTANTS = ("created", "updated", "valid-from", "valid-until", "archived")


class Link(NamedTuple):
    """One typed edge of a head: the bare rel and the href as written."""

    rel: str
    href: str


class Facet(NamedTuple):
    """One `dt`/`dd` pair; `number` is the first finite `data` value inside the `dd`."""

    name: str
    value: str
    number: float | None


class Problem(NamedTuple):
    """One violated constraint: its code in spec `format` §3.6–3.7 and a sentence.

    `U1` is text that is not UTF-8 and `U2` markup too tangled to be parsed; both come alone.
    """

    code: str
    text: str


class Record(NamedTuple):
    """What one memory file says (spec `format` §1.2, §4). Absent single values are None.

    `entities` are the metas as written; `derived_entities` are the `concept:` and `lang:` ones of
    the search index. `disclosure_text` is what recall may quote (spec `retrieval` §2.1).
    """

    path: str
    blob_sha: str
    content_hash: str
    archived: bool
    memory_type: str
    status: str
    title: str
    claim: str
    frame_key: str | None
    frame_value: str | None
    created_at: str
    updated_at: str
    event_at: str | None
    confidence: float | None
    importance: int | None
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    links: tuple[Link, ...]
    facets: tuple[Facet, ...]
    body_text: str
    disclosure_text: str
    derived_entities: tuple[str, ...]


class Reading(NamedTuple):
    """The outcome of reading a file: a record, or the problems that make it none."""

    record: Record | None
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]


class Citation(NamedTuple):
    """A `cite`, or a `q` with its address."""

    text: str
    href: str | None


class Detail(NamedTuple):
    """A record with what only the search index and a full read ask for; absent values are None.

    Instants and texts are as written; `reprieves` reads as absent when it is no whole number.
    """

    record: Record
    author: str | None
    session_id: str | None
    prompt_id: str | None
    turn_uuid: str | None
    valid_from: str | None
    valid_until: str | None
    reprieves: int | None
    archived_at: str | None
    superseded_by: str | None
    needs_revision: bool
    task_status: str | None
    due_at: str | None
    citations: tuple[Citation, ...]


class DetailReading(NamedTuple):
    """The outcome of reading a file in full."""

    detail: Detail | None
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]


class DoorReading(NamedTuple):
    """A file as a door reads it; `problems` are the sentences of §3.6 and then of §3.7.

    `content_hash` is that of an empty article when the file cannot be parsed.
    """

    detail: Detail | None
    problems: tuple[str, ...]
    content_hash: str


class HeadView(NamedTuple):
    """What the harvester compares of two versions (spec `harvest` §3.4).

    `metas` holds the values of every `memhtml-` name but `entity`, in vocabulary order, as
    written. `article_html` is the article's inner markup, serialised, white space collapsed.
    """

    title: str
    metas: tuple[tuple[str, tuple[str, ...]], ...]
    entities: tuple[str, ...]
    links: tuple[Link, ...]
    article_html: str


def read(path: str, data: bytes) -> Reading:
    """The record in `data`, or its problems in the order of spec `format` §3.6. Never raises.

    `path` is normalised; only `archived` depends on it, and it is not judged here.
    """
    return _reading(path, data, _scan(data))


def _reading(path: str, data: bytes, found: Scan | Problem) -> Reading:
    if isinstance(found, Problem):
        return Reading(None, (found,), ())
    problems = tuple(_problems(found))
    warnings = tuple(_warnings(found))
    if problems:
        return Reading(None, problems, warnings)
    return Reading(_record(path, data, found), (), warnings)


def read_detail(path: str, data: bytes) -> DetailReading:
    """`read`, with every head meta and the citations; the file is parsed once. Never raises."""
    found = _scan(data)
    reading = _reading(path, data, found)
    if reading.record is None or isinstance(found, Problem):
        return DetailReading(None, reading.problems, reading.warnings)
    return DetailReading(_detail(reading.record, found), (), reading.warnings)


def article_markup(data: bytes) -> str:
    """The inner markup of the first article, serialised and trimmed; empty when there is none."""
    text = html.decode(data)
    if text is None:
        return ""
    try:
        article = html.first_of(html.parse(text), "article")
    except html.TooTangled:
        return ""
    return "" if article is None else trim(html.serialise(article.first_child))


def content_hash(data: bytes) -> str | None:
    """The content hash of a whole file, record or not; None when it cannot be parsed."""
    from memhtml_format.digest import article_hash

    text = html.decode(data)
    if text is None:
        return None
    try:
        return article_hash(text)
    except html.TooTangled:
        return None


def active_content(data: bytes) -> tuple[Problem, ...]:
    """The findings of the door rule P4 (spec `format` §3.7); empty for what cannot be parsed."""
    return _active_content(_scan(data, at_door=True))


def read_at_door(path: str, data: bytes) -> tuple[Reading, tuple[Problem, ...]]:
    """`read` and `active_content` of one file, which is parsed once."""
    found = _scan(data, at_door=True)
    return _reading(path, data, found), _active_content(found)


def read_detail_at_door(path: str, data: bytes) -> DoorReading:
    """`read_detail`, `active_content` and the content hash of one file, which is parsed once."""
    from memhtml_format.digest import hash_of_canonical

    found = _scan(data, at_door=True)
    reading = _reading(path, data, found)
    problems = tuple(problem.text for problem in (*reading.problems, *_active_content(found)))
    if isinstance(found, Problem):
        return DoorReading(None, problems, hash_of_canonical(""))
    if reading.record is None:
        return DoorReading(None, problems, hash_of_canonical(found.texts()[0]))
    detail = _detail(reading.record, found)
    return DoorReading(detail, problems, reading.record.content_hash)


def door_problems(path: str, data: bytes) -> tuple[str, ...]:
    """All that keeps bytes from being written at a normalised path, as sentences.

    The path rule comes first with the prefix `path: `, then §3.6 in its order, then P4.
    """
    fault = paths.problem(path)
    reading, active = read_at_door(path, data)
    said = [f"path: {fault}"] if fault else []
    said += [problem.text for problem in (*reading.problems, *active)]
    return tuple(said)


def head_view(data: bytes) -> HeadView | None:
    """The head and article of a file that parses as a record, else None."""
    text = html.decode(data)
    if text is None:
        return None
    from memhtml_format.edit import collapse_markup
    from memhtml_format.scan import scan

    try:
        tree = html.parse(text)
    except html.TooTangled:
        return None
    found = scan(tree)
    if any(True for _ in _problems(found)):
        return None
    article = html.first_of(tree, "article")
    markup = html.serialise(article.first_child) if article is not None else ""
    metas = (
        (vocab.PREFIX + name, tuple(_values(found, name)))
        for name in vocab.METAS
        if name != "entity"
    )
    return HeadView(
        title=_title(found),
        metas=tuple(metas),
        entities=tuple(filter(None, _values(found, "entity"))),
        links=_links(found),
        article_html=collapse_markup(markup),
    )


def _scan(data: bytes, *, at_door: bool = False) -> Scan | Problem:
    text = html.decode(data)
    if text is None:
        return Problem("U1", _NOT_UTF8)
    # The pass and the tree builder load on first use; paths that read no file stay light.
    from memhtml_format.scan import scan

    try:
        return scan(html.parse(text), at_door=at_door)
    except html.TooTangled as error:
        return Problem("U2", str(error))


def _active_content(found: Scan | Problem) -> tuple[Problem, ...]:
    if isinstance(found, Problem):
        return ()
    from memhtml_format.doors import active_content as judge

    return tuple(Problem("P4", sentence) for sentence in judge(found))


# Constraints, in the order of spec `format` §3.6.


def _problems(found: Scan) -> Iterator[Problem]:
    if found.titles != 1:
        yield Problem("H1", f"exactly one title element is needed, there are {found.titles}")
    elif is_blank(found.title_text):
        yield Problem("H1", "the title is blank")
    yield from _meta_problems(found)
    if found.articles != 1:
        yield Problem("A1", f"exactly one article element is needed, there are {found.articles}")
    elif found.marks != 1:
        yield Problem("A2", f"the article needs exactly one mark, there are {found.marks}")
    else:
        yield from _mark_problems(found)
    for value in found.times:
        if value is None:
            yield Problem("T1", "a time element has no datetime")
        elif not is_instant(value):
            yield Problem("T1", f"a time element has the datetime {value!r}, {_INSTANT_FORMS}")
    if found.scripts:
        yield Problem("P1", f"{' and '.join(sorted(found.scripts))} elements are not allowed")
    if found.styling:
        yield Problem("P2", f"{' and '.join(sorted(found.styling))} attributes are not allowed")
    if found.handlers:
        yield Problem("P3", f"event handlers are not allowed: {', '.join(sorted(found.handlers))}")
    yield from _link_problems(found)
    yield from _value_problems(found)


def _meta_problems(found: Scan) -> Iterator[Problem]:
    for name in vocab.REQUIRED:
        if vocab.PREFIX + name not in found.metas:
            yield Problem("H2", f"the meta memhtml-{name} is missing")
    for name in found.metas:
        if name.removeprefix(vocab.PREFIX) not in vocab.METAS:
            yield Problem("H3", f"{name!r} is no known meta name")
    for name, values in found.metas.items():
        meta = vocab.METAS.get(name.removeprefix(vocab.PREFIX))
        if meta and not meta.repeatable and len(values) > 1:
            yield Problem(
                "H4", f"the meta {name} may stand only once, it stands {len(values)} times"
            )


def _mark_problems(found: Scan) -> Iterator[Problem]:
    if is_blank("".join(found.claim)):
        yield Problem("A3", "the mark is empty, so there is no claim")
    if found.mark_in_aside:
        yield Problem("A4", "the mark may not be inside an aside")
    if found.mark_in_details:
        yield Problem("A5", "the mark may not be inside details")
    if not (found.mark_in_aside or found.mark_in_details or found.mark_in_first_block):
        yield Problem("A6", "the mark must be inside the first p or li of the article")


def _link_problems(found: Scan) -> Iterator[Problem]:
    for rel, _ in found.links:
        if vocab.rel_of_token(rel) is None:
            yield Problem("L1", f"{rel!r} is no known link rel")
    for rel, href in found.links:
        if not href:
            yield Problem("L2", f"the {rel} link has no href")
    for rel, href in found.links:
        if href and not paths.is_root_relative(href):
            yield Problem("L3", f"the {rel} link's href {href!r} is not root-relative")


def _value_problems(found: Scan) -> Iterator[Problem]:
    memory_type = _first(found, "type")
    if memory_type is not None and memory_type not in vocab.TYPES:
        yield Problem("M1", f"memhtml-type is {memory_type!r}, not one of {', '.join(vocab.TYPES)}")
    status = _first(found, "status")
    if status is not None and status not in vocab.STATUSES:
        yield Problem("M2", f"memhtml-status is {status!r}, not active or archived")
    if faults := list(_task_faults(found, memory_type)):
        yield Problem("M3", " and ".join(faults))
    for name in _INSTANTS:
        for bad in _not_instants(found, name):
            yield Problem("M4", f"memhtml-{name} is {bad!r}, {_INSTANT_FORMS}")


def _task_faults(found: Scan, memory_type: str | None) -> Iterator[str]:
    status = _first(found, "task-status")
    if status is None:
        if memory_type == "task":
            yield "a task needs memhtml-task-status"
    elif memory_type is not None and memory_type != "task":
        yield "memhtml-task-status is for tasks only"
    elif status not in vocab.TASK_STATUSES:
        yield f"memhtml-task-status is {status!r}, not one of {', '.join(vocab.TASK_STATUSES)}"
    for bad in _not_instants(found, "due"):
        yield f"memhtml-due is {bad!r}, {_INSTANT_FORMS}"


def _not_instants(found: Scan, name: str) -> list[str]:
    """The first value of a meta that is no instant, or nothing: one report a name."""
    return [value for value in _values(found, name) if not is_instant(value)][:1]


_INSTANT_FORMS = "not YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ"


def _warnings(found: Scan) -> Iterator[str]:
    for tag in found.unknown:
        yield f"{tag} is outside the element vocabulary"
    for language in found.languages:
        if not vocab.is_language(language):
            yield f"data-lang {language!r} is no language token"


# Values.


def _values(found: Scan, name: str) -> list[str]:
    return found.metas.get(vocab.PREFIX + name, [])


def _first(found: Scan, name: str) -> str | None:
    values = found.metas.get(vocab.PREFIX + name)
    return values[0] if values else None


def _title(found: Scan) -> str:
    return trim(collapse_ascii(found.title_text))


def _links(found: Scan) -> tuple[Link, ...]:
    return tuple(Link(vocab.rel_of_token(rel) or rel, href or "") for rel, href in found.links)


_Number = TypeVar("_Number", int, float)


def _ranged(
    found: Scan, name: str, low: float, high: float, kind: Callable[[float], _Number]
) -> _Number | None:
    """A numeric meta; anything that is no number of its range reads as absent (§3.2)."""
    value = number(_first(found, name) or "")
    if value is None or not low <= value <= high:
        return None
    return kind(value) if kind(value) == value else None


def _record(path: str, data: bytes, found: Scan) -> Record:
    from memhtml_format.digest import blob_sha, hash_of_canonical

    claim = trim(collapse_ascii("".join(found.claim)))
    slot = frame(claim)
    canonical, body = found.texts()
    return Record(
        path=path,
        blob_sha=blob_sha(data),
        content_hash=hash_of_canonical(canonical),
        archived=paths.is_archived(path),
        memory_type=_first(found, "type") or "",
        status=_first(found, "status") or "",
        title=_title(found),
        claim=claim,
        frame_key=slot.key if slot else None,
        frame_value=slot.value if slot else None,
        created_at=_first(found, "created") or "",
        updated_at=_first(found, "updated") or "",
        event_at=found.event_at,
        confidence=_ranged(found, "confidence", 0, 1, float),
        importance=_ranged(found, "importance", 1, 10, int),
        tags=tuple(filter(None, _values(found, "tag"))),
        entities=tuple(filter(None, _values(found, "entity"))),
        links=_links(found),
        facets=tuple(Facet(facet.name, facet.value, facet.number) for facet in found.facets),
        body_text=body,
        disclosure_text=_disclosure(claim, found),
        derived_entities=tuple(_derived(found)),
    )


def _detail(record: Record, found: Scan) -> Detail:
    revision = trim(_first(found, "needs-revision") or "").lower()
    return Detail(
        record=record,
        author=_first(found, "author"),
        session_id=_first(found, "session"),
        prompt_id=_first(found, "prompt"),
        turn_uuid=_first(found, "turn"),
        valid_from=_first(found, "valid-from"),
        valid_until=_first(found, "valid-until"),
        reprieves=_ranged(found, "reprieves", 0, _MOST_REPRIEVES, int),
        archived_at=_first(found, "archived"),
        superseded_by=_first(found, "superseded-by"),
        needs_revision=revision in ("true", "1", "yes"),
        task_status=_first(found, "task-status"),
        due_at=_first(found, "due"),
        citations=tuple(Citation(text, href) for text, href in found.citations),
    )


def _disclosure(claim: str, found: Scan) -> str:
    """Claim, summaries, facets and citations; nothing from asides and folded bodies."""
    facets = [trim(f"{facet.name}: {facet.value}") for facet in found.facets if not facet.hidden]
    cited = [text for text, _href in found.citations]
    return "\n".join(filter(None, [claim, *found.summaries, *facets, *cited]))


def _derived(found: Scan) -> list[str]:
    terms = [f"concept:{term}" for term in found.terms]
    languages = dict.fromkeys(f"lang:{language.lower()}" for language in found.languages)
    return terms + list(languages)
