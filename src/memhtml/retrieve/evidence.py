"""What the words of a query say about the texts of a pool: shares between 0 and 1.

Reads the pool alone, so nothing here depends on the size of the store. No vectors, no scores of the
arms; `rerank` weighs these against those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from memhtml.retrieve.stems import Stems
from memhtml.retrieve.words import STOP_WORDS, words

if TYPE_CHECKING:
    from memhtml.retrieve.pool import Candidate

# What is said of a subject is said at the start, and the step has a few milliseconds for a pool.
TEXT_CHARS = 600
# A word is a name in this pool when so many of the texts that have it write it with a capital.
MOSTLY = 0.7


class Evidence(NamedTuple):
    """Of one candidate, shares of the query.

    `covered`: distinct words, stop words left out if others remain, compared by stem. `named`: the
    names among them; 1 when there are none. `runs`: pairs of neighbouring words, stop words
    included, that stand side by side in the text as well; 0 for a query of one word.
    """

    covered: float
    named: float
    runs: float


def weigh(query: str, pool: Sequence[Candidate]) -> list[Evidence]:
    """The evidence for each candidate of a pool."""
    stems = Stems()
    asked = words(query)
    telling = list(dict.fromkeys(word for word in asked if word not in STOP_WORDS))
    telling = telling or list(dict.fromkeys(asked))
    texts = [_text(each) for each in pool]
    cut = [words(text) for text in texts]
    names = _names(telling, pool, texts, cut)
    wanted = {stems[word] for word in telling}
    pairs = _pairs([stems[word] for word in asked])
    found = []
    for some in cut:
        stemmed = [stems[word] for word in some]
        there = set(some)
        found.append(
            Evidence(
                _share(wanted, set(stemmed)),
                _share(names, there) if names else 1.0,
                _share(pairs, _pairs(stemmed)),
            )
        )
    return found


def _text(each: Candidate) -> str:
    """Title, claim and the start of the body, which mostly begins with the claim."""
    body = each.body_text[:TEXT_CHARS]
    gist = "" if each.gist in body else each.gist
    return f"{each.title}\n{gist}\n{body}"


def _names(
    telling: Iterable[str],
    pool: Sequence[Candidate],
    texts: Sequence[str],
    cut: Sequence[Sequence[str]],
) -> set[str]:
    """The words of the query that are names: those of an entity, or capitalised in most texts.

    The texts decide and not the query, because many ask in lower case.
    """
    asked = set(telling)
    names = asked & {
        word for each in pool for name in each.entities for word in words(name.partition(":")[2])
    }
    seen: Counter[str] = Counter()
    capitalised: Counter[str] = Counter()
    for text, some in zip(texts, cut, strict=True):
        there = asked.intersection(some)
        seen.update(there)
        capitalised.update(word for word in there if word.capitalize() in text)
    return names | {word for word in asked if capitalised[word] > MOSTLY * seen[word]}


def _pairs(some: Sequence[str]) -> set[tuple[str, str]]:
    return set(pairwise(some))


def _share(wanted: Set[Any], there: Set[Any]) -> float:
    return len(wanted & there) / len(wanted) if wanted else 0.0
