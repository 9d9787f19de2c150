"""The words the generated memories are made of. Data only; `generator` puts them together.

In a pattern `{a}` is the topic's anchor word, `{p}` and `{q}` are two of its parts, `{w}` a place,
`{n}` a whole number, `{d}` one with a decimal, `{u}` a unit of time, `{m}` another unit, `{v}` a
participle, `{s}` a season, `{o}` a person, `{c}` a colour.
"""

from __future__ import annotations

from typing import NamedTuple


class Topic(NamedTuple):
    """A subject: the tag its memories carry, its anchor word and the parts it has."""

    tag: str
    anchor: str
    parts: tuple[str, ...]


class Pattern(NamedTuple):
    """How a memory of one kind is worded."""

    title: str
    claim: str


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _topic(tag: str, anchor: str, parts: str) -> Topic:
    return Topic(tag, anchor, _words(parts))


TOPICS: tuple[Topic, ...] = (
    _topic("messaging", "relay", "batch backlog consumer shard cursor retry topic replica"),
    _topic("billing", "ledger", "charge refund invoice payout mandate statement voucher fee"),
    _topic("glasshouse", "boiler", "valve pump burner gauge flue manifold thermostat filter"),
    _topic("harbour", "crane", "winch brake boom cable hook cabin outrigger sheave"),
    _topic("bakery", "oven", "stone damper probe rack steamer hatch timer hearth"),
    _topic("library", "catalogue", "shelfmark loan notice reader export facet barcode import"),
    _topic("tramway", "tram", "pantograph bogie doorway sander timetable coupler bell axle"),
    _topic("laboratory", "centrifuge", "rotor lid sample spindle label logbook gasket tray"),
    _topic("observatory", "telescope", "dome mirror guider shutter camera mount finder focuser"),
    _topic("brewery", "fermenter", "airlock jacket yeast sensor drain hose manway sightglass"),
    _topic("network", "gateway", "certificate route listener handshake token header proxy peer"),
    _topic("warehouse", "conveyor", "belt scanner sorter roller motor lane chute tray"),
)

PLACES = _words(
    "Aldermoor Birchgate Caswick Dunholme Eastry Fennimore Garrick Halewood Inverlea Jarrold "
    "Kestrel Lowick Marden Northam Oakhanger Pendle Quarley Rushden Selwick Thornby Ullock "
    "Verwood Wharram Yarrow"
)

PEOPLE: tuple[str, ...] = ("Ines Okafor", "Tomas Lind", "Priya Raman", "Jonas Weber", "Mei Tanaka")

TIMES = _words("minutes hours days weeks cycles")
MEASURES = _words("bar kilograms watts litres millimetres")
PARTICIPLES = _words("flushed greased reset weighed sealed drained aligned")
SEASONS = _words("spring summer autumn winter")
COLOURS = _words("amber copper indigo russet violet")

PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "semantic": (
        Pattern("Rating of the {p}", "The {a} {p} in {w} is rated for {n} {m}."),
        Pattern("{p} readings", "Readings of the {a} {p} at {w} are kept for {n} {u}."),
        Pattern("{p} after the refit", "After the refit the {w} {a} {p} was set to {n} {m}."),
        Pattern("{p} capacity", "One {a} {p} in {w} can serve {n} {q} lines at once."),
        Pattern("Where the {p} comes from", "The {a} {p} at {w} comes from the {c} works."),
        Pattern("{p} limit in {s}", "The {a} {p} of {w} stays below {n} {m} in {s}."),
        Pattern("{p} drift", "The {a} {p} at {w} does not drift by more than {d} {m}."),
        Pattern("{p} share", "Each {w} {a} draws {d} {m} through its {p} and {n} through its {q}."),
        Pattern("Keeper of the {p}", "{o} keeps the spare {a} {p} for {w} in the {c} cabinet."),
    ),
    "procedural": (
        Pattern("Service of the {p}", "The {a} {p} in {w} must be {v} every {n} {u}."),
        Pattern("{p} before {s}", "Before {s} the {a} {p} at {w} should be {v} {n} times."),
        Pattern("{p} restart", "Restart the {a} {p} of {w} and wait {n} {u} before the {q} opens."),
        Pattern("{p} handover", "Whoever opens the {w} {a} {p} writes the {q} count down first."),
        Pattern("{p} lockout", "The {a} {p} at {w} must never run above {n} {m}."),
        Pattern("{p} inspection", "A check of the {w} {a} {p} will take {d} {u} once {v}."),
        Pattern("{p} order", "Once the {a} {q} in {w} were {v}, the {p} follows within {n} {u}."),
    ),
    "episodic": (
        Pattern("{p} trouble at {w}", "The {a} {p} at {w} stood still for {n} {u} in {s}."),
        Pattern("{p} visit to {w}", "{o} saw the {a} {p} at {w} being {v}."),
    ),
    "agent_insight": (
        Pattern("{p} and {q}", "Most {a} {p} questions about {w} turn out to be about the {q}."),
    ),
    "user_preference": (Pattern("{p} report", "{o} wants the {w} {a} {p} report within {n} {u}."),),
    "error_pattern": (
        Pattern("{p} alarm", "A {c} light on the {w} {a} means that the {p} was not {v}."),
    ),
    "verdict": (Pattern("{p} review", "The {w} {a} {p} passed its review after {n} {u}."),),
    "precedent": (
        Pattern("{p} ruling", "A late {a} {p} at {w} was excused because the {q} was being {v}."),
    ),
    "arc": (
        Pattern("The {a} of {w}", "Over the year the {a} of {w} moved from {p} faults to the {q}."),
    ),
}

DETAILS: tuple[str, ...] = (
    "Noted during the {s} round by {o}.",
    "It came up twice while the {q} was looked at.",
    "The drawing in the {c} folder shows the same.",
    "Ask {o} before the {q} is moved.",
    "Seen again on the next {s} shift, with the {q} shut.",
)
