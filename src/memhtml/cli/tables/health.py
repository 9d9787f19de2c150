"""`doctor` and `publish` (spec `cli` §11)."""

from __future__ import annotations

from memhtml.cli.entry import Command, Flag

COMMANDS: tuple[Command, ...] = (
    Command(
        "doctor",
        "health:doctor",
        "Look the whole store over, and with --fix mend dangling links and orphan access rows.",
        flags=(
            Flag(
                "fix",
                "boolean",
                "Point dangling links at the archived file or drop them, in one commit, and "
                "remove access rows of files that are gone.",
                default=False,
            ),
        ),
        types=("doctor.report",),
        examples=("memhtml doctor", "memhtml doctor --fix"),
    ),
    Command(
        "publish",
        "health:publish",
        "Write a page for every folder and sitemap.xml, and commit those that changed.",
        types=("publish.report",),
        examples=("memhtml publish",),
    ),
)
