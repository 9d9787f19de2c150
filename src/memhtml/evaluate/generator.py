"""The memories of the gate's throwaway store: a function of a seed, an instant and a size (§19).

Makes values only. Nothing here reads a clock or a disk, or depends on the order of a set.
"""

from __future__ import annotations

from typing import NamedTuple

from memhtml.evaluate import wording
from memhtml.evaluate.chance import Chance
from memhtml_format import edit, paths
from memhtml_format.instants import second
from memhtml_format.record import Link
from memhtml_format.render import Draft, plan_path, render

DAY_S = 86_400
_OLDEST_DAYS = 400
_YOUNGEST_DAYS = 3
# One cycle of memory types: nine of them, the probed two in almost every second place.
_TYPES = (
    *("semantic", "procedural", "episodic", "semantic", "agent_insight", "procedural", "verdict"),
    *("semantic", "user_preference", "procedural", "error_pattern", "episodic", "semantic"),
    *("precedent", "procedural", "arc"),
)
_LINKS = ("relates_to", "supports", "part_of", "example_of", "caused_by")
_TRIES = 40


class Memory(NamedTuple):
    """One generated memory: where it goes, what it says, and when it was written (Unix seconds)."""

    path: str
    draft: Draft
    at_s: int
    anchor: str

    @property
    def claim(self) -> str:
        """The sentence the memory states."""
        return self.draft.claim or ""


class Access(NamedTuple):
    """How often and how usefully a memory was read; `last_s` is Unix seconds."""

    path: str
    reads: int
    reinforced: int
    outcome: float
    last_s: int


class Corpus(NamedTuple):
    """What a store is built from; `base` are the memories that probes are taken from."""

    base: tuple[Memory, ...]
    people: tuple[Memory, ...]
    archived: tuple[tuple[str, bytes], ...]
    access: tuple[Access, ...]


class Writer:
    """Hands out claims and paths, each of them once."""

    def __init__(self) -> None:
        self.claims: set[str] = set()
        self.paths: set[str] = set()

    def place(self, draft: Draft, at_s: int) -> str:
        """The path of a draft, free until now; a placed one gets a suffix."""
        path = plan_path(draft, second(at_s), self.paths.__contains__)
        self.paths.add(path)
        return path


def generate(seed: int, now_s: int, size: int, writer: Writer) -> Corpus:
    """A corpus of `size` base memories; `now_s` is the start of a UTC day in Unix seconds."""
    chance = Chance(seed)
    people = tuple(_people(now_s, writer))
    base: list[Memory] = []
    for number in range(size):
        base.append(_memory(number, now_s, base, people, chance, writer))
    archived = []
    for at in range(len(base)):
        if base[at].draft.memory_type == "semantic" and chance.percent(12):
            base[at], file = _earlier(base[at], chance)
            archived.append(file)
    access = tuple(_access(memory, now_s, chance) for memory in base if chance.percent(60))
    return Corpus(tuple(base), people, tuple(archived), access)


def page(memory: Memory) -> bytes:
    """The file of a memory."""
    return render(memory.draft, second(memory.at_s)).html.encode()


def _people(now_s: int, writer: Writer) -> list[Memory]:
    """The person files; curation writes such files, so they are placed here by hand."""
    found = []
    for number, name in enumerate(wording.PEOPLE):
        topic = wording.TOPICS[number]
        claim = f"{name} looks after the {topic.anchor} and its {topic.parts[0]}."
        path = f"resources/people/{paths.slug(name)}.html"
        entity = f"person:{name.lower()}"
        draft = Draft(name, "semantic", claim=claim, path=path, entities=(entity,))
        at_s = now_s - _OLDEST_DAYS * DAY_S
        writer.claims.add(claim)
        found.append(Memory(writer.place(draft, at_s), draft, at_s, topic.anchor))
    return found


def _memory(
    number: int,
    now_s: int,
    before: list[Memory],
    people: tuple[Memory, ...],
    chance: Chance,
    writer: Writer,
) -> Memory:
    memory_type = _TYPES[number % len(_TYPES)]
    topic = wording.TOPICS[chance.below(len(wording.TOPICS))]
    words, pattern = _worded(number, memory_type, topic, chance, writer)
    claim = pattern.claim.format_map(words)
    age_s = chance.below((_OLDEST_DAYS - _YOUNGEST_DAYS) * DAY_S) + _YOUNGEST_DAYS * DAY_S
    links = tuple(_links(claim, topic.anchor, before, people, chance))
    draft = Draft(
        _sentence(pattern.title.format_map(words)),
        memory_type,
        claim=claim,
        paragraphs=(chance.pick(wording.DETAILS).format_map(words),) if chance.percent(70) else (),
        workspace=topic.tag if memory_type in ("episodic", "verdict") else None,
        tags=(topic.tag, words["c"]) if chance.percent(30) else (topic.tag,),
        entities=(f"system:{topic.anchor}", f"place:{words['w'].lower()}"),
        links=links,
        importance=chance.below(10) + 1 if chance.percent(50) else None,
        confidence=(chance.below(50) + 50) / 100 if chance.percent(50) else None,
        valid_from=second(now_s - age_s) if chance.percent(10) else None,
    )
    if memory_type == "episodic":
        draft = _dated(draft, second(now_s - age_s - DAY_S)[:10])
    path = writer.place(draft, now_s - age_s)
    return Memory(path, draft._replace(path=path), now_s - age_s, topic.anchor)


def _worded(
    number: int, memory_type: str, topic: wording.Topic, chance: Chance, writer: Writer
) -> tuple[dict[str, str], wording.Pattern]:
    """Words and a pattern that make a claim nobody made before."""
    for _ in range(_TRIES):
        pattern = chance.pick(wording.PATTERNS[memory_type])
        words = _words(topic, chance)
        claim = pattern.claim.format_map(words)
        if claim not in writer.claims:
            writer.claims.add(claim)
            return words, pattern
    # Only a corpus near the number of possible claims comes here.
    words["w"] = f"{words['w']} {number}"
    writer.claims.add(pattern.claim.format_map(words))
    return words, pattern


def _words(topic: wording.Topic, chance: Chance) -> dict[str, str]:
    part = chance.below(len(topic.parts))
    other = (part + 1 + chance.below(len(topic.parts) - 1)) % len(topic.parts)
    return {
        "a": topic.anchor,
        "p": topic.parts[part],
        "q": topic.parts[other],
        "w": chance.pick(wording.PLACES),
        "n": str(chance.below(180) + 2),
        "d": f"{chance.below(90) + 1}.{chance.below(9) + 1}",
        "u": chance.pick(wording.TIMES),
        "m": chance.pick(wording.MEASURES),
        "v": chance.pick(wording.PARTICIPLES),
        "s": chance.pick(wording.SEASONS),
        "o": chance.pick(wording.PEOPLE),
        "c": chance.pick(wording.COLOURS),
    }


def _links(
    claim: str, anchor: str, before: list[Memory], people: tuple[Memory, ...], chance: Chance
) -> list[Link]:
    """Edges to an earlier memory on the same subject, and to the person the claim names."""
    links = [
        Link("about_person", paths.href(person.path))
        for person in people
        if person.draft.title in claim
    ]
    related = [memory for memory in before if memory.anchor == anchor]
    if related and chance.percent(25):
        links.append(Link(chance.pick(_LINKS), paths.href(chance.pick(related).path)))
    return links


def _dated(draft: Draft, day: str) -> Draft:
    """The draft with the day it happened, which only markup can state."""
    rest = "".join(f" {paragraph}" for paragraph in draft.paragraphs)
    markup = f'<p><mark>{draft.claim}</mark> On <time datetime="{day}">{day}</time>.{rest}</p>'
    return draft._replace(article_html=markup)


def _earlier(memory: Memory, chance: Chance) -> tuple[Memory, tuple[str, bytes]]:
    """The memory as one that replaced an older reading, and that reading's archived file."""
    year = second(memory.at_s)[:4]
    path = f"archive/{year}/{memory.path}"
    written_s = memory.at_s - (chance.below(60) + 1) * DAY_S
    claim = f"{memory.claim[:-1]}, as measured before the {chance.pick(wording.COLOURS)} refit."
    draft = memory.draft._replace(claim=claim, links=(), valid_from=None)
    old = Memory(path, draft, written_s, memory.anchor)
    data = edit.archive_stamp(page(old), second(memory.at_s))
    data = edit.set_meta(data, "superseded-by", paths.href(memory.path))
    data = edit.set_meta(data, "valid-until", second(memory.at_s))
    link = Link("supersedes", paths.href(path))
    draft = memory.draft._replace(links=(*memory.draft.links, link))
    return memory._replace(draft=draft), (path, data)


def _access(memory: Memory, now_s: int, chance: Chance) -> Access:
    reads = chance.below(20) + 1
    reinforced = chance.below(reads + 1) // 2
    outcome = (chance.below(131) - 30) / 100 if reinforced else 0.0
    last_s = memory.at_s + chance.below(now_s - memory.at_s)
    return Access(memory.path, reads, reinforced, outcome, last_s)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
