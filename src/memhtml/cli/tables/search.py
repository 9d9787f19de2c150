"""`search` and `recall` (spec `cli` §11)."""

from __future__ import annotations

from memhtml.cli.entry import Arg, Command, Flag
from memhtml.cli.tables.shared import TYPES

_QUERY = Arg(
    "query",
    "What to find, in plain words. A span in double quotes is looked for as one phrase.",
    required=True,
)
_SCOPE = (
    Flag(
        "type",
        "string",
        "Only memories of these types; without it every type but task.",
        # Arcs are ranked and disclosed on their own.
        values=tuple(name for name in TYPES if name != "arc"),
        repeatable=True,
    ),
    Flag("workspace", "string", "Only what lies under projects/<workspace>/."),
    Flag("tag", "string", "Only memories with one of these tags.", repeatable=True),
    Flag("entity", "string", "Only memories about this `type:name`."),
    Flag(
        "facet",
        "string",
        "Only memories that state this. Values of one name widen, other names narrow.",
        repeatable=True,
        check="facet",
        example="<name>=<value>",
    ),
    Flag("include-archived", "boolean", "Also what is archived.", default=False),
    Flag(
        "as-of",
        "string",
        "What was valid then, archived since or not: YYYY-MM-DD, which is its first second, "
        "or YYYY-MM-DDThh:mm:ssZ.",
        check="as-of",
        example="2026-01-31",
    ),
)

COMMANDS: tuple[Command, ...] = (
    Command(
        "search",
        "search:search",
        "Find memories by words, meaning, age and use; reads the index as it stands.",
        args=(_QUERY,),
        flags=(
            *_SCOPE,
            Flag(
                "limit",
                "int",
                "The most hits to list, up to 500.",
                default=10,
                check="not-negative",
                example="10",
            ),
        ),
        types=("memory.hits",),
        examples=(
            'memhtml search "how deep may the ingest queue get"',
            "memhtml search relay --type semantic --type procedural --limit 3",
            "memhtml search limits --entity service:ingest --as-of 2026-01-31",
        ),
    ),
    Command(
        "recall",
        "search:recall",
        "Hand out what the best matches say, in full while it fits a budget, the rest as a list.",
        args=(_QUERY,),
        flags=(
            *_SCOPE,
            Flag(
                "budget",
                "int",
                "Characters to quote; arcs have 9000 of their own on top.",
                default=16000,
                check="not-negative",
                example="16000",
            ),
        ),
        types=("recall.pack",),
        examples=(
            'memhtml recall "what is known about the relay"',
            "memhtml recall relay --workspace ingest --budget 4000",
        ),
    ),
)
