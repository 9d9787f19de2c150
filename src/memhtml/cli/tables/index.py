"""The index commands (spec `cli` §11)."""

from __future__ import annotations

from memhtml.cli.entry import Command, Flag

_EMBED = Flag(
    "embed",
    "boolean",
    "Also write the vectors that are missing, when an embedder is bound.",
    default=True,
)
_TYPES = ("index.report",)

COMMANDS: tuple[Command, ...] = (
    Command(
        "index rebuild",
        "index:rebuild",
        "Build the search index from the last commit; vectors of unchanged texts are kept.",
        flags=(
            _EMBED,
            Flag(
                "force",
                "boolean",
                "Rebuild an index that holds vectors though this call can write none.",
                default=False,
            ),
        ),
        types=_TYPES,
        examples=(
            "memhtml index rebuild",
            "memhtml index rebuild --no-embed --force",
        ),
    ),
    Command(
        "index update",
        "index:update",
        "Take into the search index what changed since, edits that are not committed included.",
        flags=(_EMBED,),
        types=_TYPES,
        examples=("memhtml index update", "memhtml index update --no-embed"),
    ),
    Command(
        "index embed",
        "index:embed",
        "Write the vectors that are missing; a run that was cut short goes on where it was.",
        flags=(Flag("dry-run", "boolean", "Count, and write nothing.", default=False),),
        types=_TYPES,
        examples=("memhtml index embed", "memhtml index embed --dry-run"),
    ),
    Command(
        "index status",
        "index:status",
        "Show what the search index holds and where it stands.",
        types=_TYPES,
        examples=("memhtml index status",),
    ),
)
