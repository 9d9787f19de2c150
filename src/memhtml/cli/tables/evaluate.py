"""`eval discriminate` (spec `cli` §13)."""

from __future__ import annotations

from memhtml.cli.entry import Command, Flag

COMMANDS: tuple[Command, ...] = (
    Command(
        "eval discriminate",
        "evaluate:discriminate",
        "Check that search ranks a fact above twins of it that state something else. Builds its "
        "own store in a temporary folder and opens none of yours.",
        flags=(
            Flag(
                "mode",
                "string",
                "The embedder: `fake` knows words alone and is the same everywhere, `live` is the "
                "one MEMHTML_EMBED binds.",
                values=("fake", "live"),
                default="fake",
            ),
            Flag(
                "seed",
                "int",
                "What the memories are drawn from; the same seed gives the same memories.",
                default=20260802,
                example="20260802",
            ),
            Flag(
                "now",
                "int",
                "The instant the memories are dated before, in Unix milliseconds, cut to its UTC "
                "day; without it the clock.",
                example="1796040000000",
            ),
            Flag("size", "int", "How many memories, 1 or more.", default=200, example="200"),
            Flag("probes", "int", "How many searches, 1 or more.", default=36, example="36"),
            Flag(
                "mrr-floor",
                "string",
                "The mean reciprocal rank a pass needs, a decimal from 0 to 1.",
                default="0.85",
                example="0.85",
            ),
        ),
        types=("eval.discrimination",),
        examples=(
            "memhtml eval discriminate",
            "memhtml eval discriminate --seed 7 --size 2000 --probes 200",
            "memhtml eval discriminate --mode live",
        ),
    ),
)
