"""A generated set of facts and questions, to measure retrieval on; the same for the same seed.

People and projects share frames (`question_frames.txt`), so that each fact has distractors: the
same person in another event, another person in the same event, the same event at another date. No
question is made from a fact by rule alone: each frame has one question in nearly the fact's words
and one in other words, both written by hand. Halves split the frames, so that what is tuned on one
half is reported on words it has never seen.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from typing import NamedTuple

FRAMES = os.path.join(os.path.dirname(__file__), "question_frames.txt")
STORIES = os.path.join(os.path.dirname(__file__), "question_stories.txt")
CLASSES = ("story", "open", "near", "far", "date", "negation", "number", "replaced", "twice")
_PEOPLE_TEXT = (
    "Adela Bruno Carla Dmitri Elif Farid Greta Hugo Imani Jonas Kiran Leila Marek Nadia Oskar Priya"
    " Quentin Rosa Stefan Tamara Umberto Vera Wendell Yasmin"
)
PEOPLE = _PEOPLE_TEXT.split()
_PROJECTS_TEXT = (
    "checkout-api ledger atlas-web harbor-sync quill magpie invoice-hub north-gateway tessera"
    " pelican loom-search basalt"
)
PROJECTS = _PROJECTS_TEXT.split()
_OTHER_FIRST_TEXT = (
    "Aaron Beatriz Cedric Dagmar Edwin Fiona Gustav Hanna Isaac Juliet Konrad Lucia Miles Nora"
    " Ophelia Pablo Ramona Silas Theresa Ulrich Valentin Wanda Xavier Yolanda Zeno Anselm Bianca"
    " Cosima Dario Esther Felix Gerda Hector Ines Jasper Katya Lorenz Mireille Nikolai Olga"
)
OTHER_FIRST = _OTHER_FIRST_TEXT.split()
_OTHER_LAST_TEXT = (
    "Abbott Bauer Castellan Dvorak Eriksen Fontaine Grimaldi Hoffman Ivanov Jansen Kowalski"
    " Lindgren Moreau Novak Okafor Petrov Quist Romero Sandoval Takeda Ueda Vasquez Winther Yilmaz"
    " Zimmer Archer Blythe Corrigan Delgado Ekholm Ferrante Garnier Halvorsen Ishikawa Juarez"
    " Karlsen Lambert Medina Norberg Olsen"
)
OTHER_LAST = _OTHER_LAST_TEXT.split()
_CITIES_TEXT = (
    "Lisbon Ghent Turin Krakow Bergen Porto Leipzig Nantes Utrecht Malmö Graz Split Tartu Cork"
    " Bilbao Zadar Basel Aarhus Trieste Brno"
)
CITIES = _CITIES_TEXT.split()
_MONTHS_TEXT = (
    "January February March April May June July August September October November December"
)
MONTHS = _MONTHS_TEXT.split()
_DAYS_TEXT = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
DAYS = _DAYS_TEXT.split()
# Who the stories are about, a woman and a man in turn; and what they are called when folded.
_STORY_TEXT = "Noemi Tobias Paloma Idris Sunniva Casper Bettina Okke"
_STORY_PEOPLE = _STORY_TEXT.split()
_FOLDED = ("Noemi", "Tobias")
_CHOICE = re.compile(r"\[(\w+)=([^\]]+)\]")
_SLOT = re.compile(r"\{(\w+)\}")


class Fact(NamedTuple):
    """One record: `at` is its whole-second UTC instant, `supersedes` the id of the one replaced."""

    id: str
    title: str
    claim: str
    entities: tuple[str, ...]
    at: str
    supersedes: str | None = None


class Question(NamedTuple):
    """`answers` are ids of which any one will do; `half` is 0 (to tune on) or 1 (to report)."""

    text: str
    answers: tuple[str, ...]
    kind: str
    half: int


class Frame(NamedTuple):
    """One kind of event and its two questions; `number` tells frames apart."""

    number: int
    topic: str
    project: bool
    fact: str
    near: str
    far: str


def frames() -> list[Frame]:
    """The hand-written frames, in file order."""
    found: list[Frame] = []
    topic, project, fact, near = "", False, "", ""
    with open(FRAMES, encoding="utf-8") as lines:
        for line in lines:
            mark, _, text = line.rstrip("\n").partition(" ")
            if mark == "==":
                topic, project = text.removeprefix("@"), text.startswith("@")
            elif mark == "-":
                fact = text
            elif mark == "?":
                near = text
            elif mark == "~":
                found.append(Frame(len(found), topic, project, fact, near, text))
    return found


def generated(seed: int = 20260802) -> tuple[list[Fact], list[Question]]:
    """About 2,700 facts and 1,400 questions over them."""
    maker = _Maker(seed)
    for number, (who, friend, project) in enumerate(_cast()):
        maker.life(who, friend, project, number)
    maker.stories()
    maker.contradictions()
    maker.replacements()
    return maker.facts, maker.chosen()


def crowded(seed: int = 20260802) -> tuple[list[Fact], list[Question]]:
    """The same facts with the eight lives of the stories folded into two people, and the questions
    about these: a name then leaves some two hundred facts, and many of one subject."""
    facts, questions = generated(seed)
    names = {who: _FOLDED[at % 2] for at, who in enumerate((*_STORY_PEOPLE, *PEOPLE[:2]))}
    known = re.compile(rf"\b({'|'.join(names)})\b")

    def folded(text: str) -> str:
        return known.sub(lambda match: names[match[1]], text)

    return [
        fact._replace(
            title=folded(fact.title),
            claim=folded(fact.claim),
            entities=tuple(map(folded, fact.entities)),
        )
        for fact in facts
    ], [
        question._replace(text=folded(question.text))
        for question in questions
        if question.kind in ("story", "open")
    ]


def distractors(seed: int = 7) -> Iterator[Fact]:
    """Ever more facts about other people and projects, from the same frames; no end."""
    chance = random.Random(seed)
    all_frames = frames()
    number = 0
    while True:
        frame = chance.choice(all_frames)
        who, friend = _full_name(chance), _full_name(chance)
        if frame.project:
            who = f"{who.split()[1].lower()}-{chance.choice(OTHER_FIRST).lower()}"
        claim = _filled(frame.fact, _slots(who, friend, chance), chance)
        if chance.random() < 0.4:
            claim = f"{claim.removesuffix('.')}, in {_date(chance)}."
        yield _fact(f"d{number:06}", claim, (who, friend), chance)
        number += 1


class _Maker:
    """Facts and questions under construction."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.frames = frames()
        self.topics = list(dict.fromkeys(frame.topic for frame in self.frames))
        self.facts: list[Fact] = []
        self.questions: list[Question] = []

    def life(self, who: str, friend: str, project: bool, number: int) -> None:
        """What one person did, or how one project works: half of the topics, some events twice."""
        for frame in self.frames:
            if frame.project != project:
                continue
            if not project and (self.topics.index(frame.topic) * 7 + number) % 17 >= 8:
                continue
            draw = self.chance.random()
            if draw < 0.06:
                self._two_dates(frame, who, friend)
            elif draw < 0.09:
                self._twice(frame, who, friend)
            else:
                self._once(frame, who, friend)

    def _once(self, frame: Frame, who: str, friend: str) -> None:
        slots = _slots(who, friend, self.chance)
        fact = self._add(_filled(frame.fact, slots, self.chance), who, friend)
        half = frame.number % 2
        for kind, text in (("near", frame.near), ("far", frame.far)):
            self.questions.append(Question(_filled(text, slots), (fact.id,), kind, half))

    def _two_dates(self, frame: Frame, who: str, friend: str) -> None:
        """One event at two dates; the question names one of them."""
        for year in self.chance.sample(range(2019, 2025), 2):
            slots = _slots(who, friend, self.chance)
            when = f"in {self.chance.choice(MONTHS)} {year}"
            claim = _filled(frame.fact, slots, self.chance).removesuffix(".")
            fact = self._add(f"{claim}, {when}.", who, friend)
            text = _filled(frame.near, slots).removesuffix("?")
            self.questions.append(Question(f"{text} {when}?", (fact.id,), "date", frame.number % 2))

    def _twice(self, frame: Frame, who: str, friend: str) -> None:
        """One event noted twice in slightly other words; either answers."""
        slots = _slots(who, friend, self.chance)
        claim = _filled(frame.fact, slots, self.chance)
        first = self._add(claim, who, friend)
        again = self._add(f"As noted before, {claim.removesuffix('.')}, as it seems.", who, friend)
        text = _filled(self.chance.choice((frame.near, frame.far)), slots)
        self.questions.append(Question(text, (first.id, again.id), "twice", frame.number % 2))

    def stories(self) -> None:
        """Lives in many facts: one subject dense in facts, questions half in other words."""
        cast: list[str] = []
        number = -1
        with open(STORIES, encoding="utf-8") as lines:
            for line in lines:
                mark, _, text = line.rstrip("\n").partition(" ")
                if mark == "==":
                    cast = text.split()
                elif mark == "-":
                    number += 1
                    fact = self._add(text, *sorted(cast, key=lambda who: who not in text[:30]))
                elif mark == "?":
                    self._ask(text, fact, "story", number // 12)
                elif mark == "*":
                    self._open(text)

    def _open(self, text: str) -> None:
        """A question that several facts answer, each named by words that only it has."""
        question, *parts = [part.strip() for part in text.split("|")]
        found = [[fact.id for fact in self.facts if part in fact.claim] for part in parts]
        assert all(len(ids) == 1 for ids in found), (question, found)
        answers = tuple(ids[0] for ids in found)
        self.questions.append(Question(question, answers, "open", int(answers[0][1:]) // 12 % 2))

    def contradictions(self) -> None:
        """Claims with a wrong twin beside them: negated, or with another number."""
        for number, project in enumerate(PROJECTS):
            for step, rule in enumerate(_RULES):
                right, wrong = rule.format(p=project, no=""), rule.format(p=project, no="not ")
                answers = self._add(right, project, ""), self._add(wrong, project, "")
                for claim, fact in zip((right, wrong), answers, strict=True):
                    self._ask(claim.removesuffix("."), fact, "negation", step + number)
            for step, rule in enumerate(_NUMBERS):
                amount = self.chance.randrange(2, 60)
                claims = [rule.format(p=project, n=amount), rule.format(p=project, n=amount * 2)]
                answers = self._add(claims[0], project, ""), self._add(claims[1], project, "")
                for claim, fact in zip(claims, answers, strict=True):
                    self._ask(claim.removesuffix("."), fact, "number", step + number)

    def replacements(self) -> None:
        """Facts that a later record supersedes; the question is after the later one."""
        for number, who in enumerate(PEOPLE):
            for step, (old, new, question) in enumerate(_CHANGES):
                slots = _slots(who, "", self.chance)
                before = self._add(_filled(old, slots, self.chance), who, "")
                after = self._add(_filled(new, slots, self.chance), who, "", before.id)
                self._ask(_filled(question, slots), after, "replaced", step + number)

    def chosen(self) -> list[Question]:
        """A fixed share of the questions of each class, in a fixed order."""
        wanted = {"story": 1_000, "near": 400, "far": 500}
        found: list[Question] = []
        for kind in CLASSES:
            asked = [question for question in self.questions if question.kind == kind]
            found += self.chance.sample(asked, min(wanted.get(kind, 140), len(asked)))
        return found

    def _add(self, claim: str, who: str, friend: str, supersedes: str | None = None) -> Fact:
        names = tuple(name for name in (who, friend) if name and name in claim)
        fact = _fact(f"f{len(self.facts):05}", claim, names, self.chance, supersedes)
        self.facts.append(fact)
        return fact

    def _ask(self, text: str, fact: Fact, kind: str, number: int) -> None:
        self.questions.append(Question(text, (fact.id,), kind, number % 2))


_RULES = (
    "{p} must {no}be restarted by hand after an upgrade of the kernel.",
    "The public endpoint of {p} should {no}be called from batch jobs.",
    "Tokens of {p} are {no}valid across regions.",
)
_NUMBERS = (
    "{p} allows {n} open connections per client.",
    "The cache of {p} keeps an entry for {n} minutes.",
)
_CHANGES = (
    ("{p} lives in [a=Lisbon|Ghent|Turin] near the station.",
     "{p} lives in [b=Bergen|Porto|Graz] near the harbour.",
     "Which town does {p} call home at the moment?"),
    ("{p} works as a [a=nurse|baker|surveyor] in the old town.",
     "{p} works as a [b=tutor|tram driver|translator] in the old town.",
     "What does {p} work as?"),
    ("The favourite drink of {p} is [a=black tea|cider|cocoa].",
     "The favourite drink of {p} is [b=mint tea|espresso|ginger beer].",
     "What is the favourite drink of {p}?"),
)  # fmt: skip


def _cast() -> list[tuple[str, str, bool]]:
    """Who there is, with the friend they talk with; people come in pairs."""
    pairs = [(who, PEOPLE[at ^ 1], False) for at, who in enumerate(PEOPLE)]
    return pairs + [(name, PEOPLE[at * 2], True) for at, name in enumerate(PROJECTS)]


def _slots(who: str, friend: str, chance: random.Random) -> dict[str, str]:
    return {
        "p": who,
        "q": friend,
        "city": chance.choice(CITIES),
        "month": chance.choice(MONTHS),
        "day": chance.choice(DAYS),
        "n": str(chance.randrange(2, 60)),
    }


def _filled(text: str, slots: dict[str, str], chance: random.Random | None = None) -> str:
    """The text with its slots; choices are drawn and kept in `slots`."""

    def choose(match: re.Match[str]) -> str:
        assert chance is not None, text
        picked = chance.choice(match[2].split("|"))
        slots[match[1]] = _SLOT.sub(lambda slot: slots[slot[1]], picked)
        return slots[match[1]]

    return _SLOT.sub(lambda slot: slots[slot[1]], _CHOICE.sub(choose, text))


def _fact(
    name: str,
    claim: str,
    names: tuple[str, ...],
    chance: random.Random,
    supersedes: str | None = None,
) -> Fact:
    title = " ".join(claim.split()[:8]).rstrip(".,")
    at = (
        f"{chance.randrange(2023, 2026)}-{chance.randrange(1, 13):02}"
        f"-{chance.randrange(1, 29):02}T{chance.randrange(24):02}:00:00Z"
    )
    # Every third record carries entities, as stores in use have them on some and not on others.
    kinds = ("project" if "-" in value or value.islower() else "person" for value in names)
    entities = tuple(f"{kind}:{value}" for kind, value in zip(kinds, names, strict=True))
    return Fact(name, title, claim, entities if chance.random() < 0.33 else (), at, supersedes)


def _full_name(chance: random.Random) -> str:
    return f"{chance.choice(OTHER_FIRST)} {chance.choice(OTHER_LAST)}"


def _date(chance: random.Random) -> str:
    return f"{chance.choice(MONTHS)} {chance.randrange(2019, 2025)}"
