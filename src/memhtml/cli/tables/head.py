"""The head commands (spec `cli` §11)."""

from __future__ import annotations

from memhtml.cli.entry import Arg, Command, Flag
from memhtml.cli.tables.shared import SERVER

COMMANDS: tuple[Command, ...] = (
    Command(
        "head status",
        "head:status",
        "Show which commit HEAD stands at, how many records it holds and how they were loaded.",
        flags=(SERVER,),
        types=("head.status",),
        examples=("memhtml head status",),
    ),
    Command(
        "head search",
        "head:search",
        "Search the records of HEAD's commit, without the index.",
        args=(Arg("query", "What to find, in plain words.", required=True),),
        flags=(
            Flag(
                "limit",
                "int",
                "The most hits to list.",
                default=10,
                check="not-negative",
                example="10",
            ),
            SERVER,
        ),
        types=("head.search",),
        examples=(
            'memhtml head search "how many messages does the relay batch"',
            "memhtml head search relay --limit 3",
        ),
    ),
    Command(
        "head snapshot",
        "head:snapshot",
        "Build the head database of the branch HEAD has open anew, or check the one that is there.",
        flags=(
            Flag("write", "boolean", "Read all of git, write the database, prune.", default=False),
            Flag("read", "boolean", "Open the database; it must stand at HEAD.", default=False),
        ),
        one_of=("write", "read"),
        types=("head.snapshot",),
        examples=("memhtml head snapshot --write", "memhtml head snapshot --read"),
    ),
    Command(
        "head embed",
        "head:embed",
        "Give every record of HEAD's commit a vector that it does not have yet.",
        types=("head.embedded",),
        examples=("memhtml head embed",),
    ),
)
