"""`replay`: recorded runs."""

from __future__ import annotations

from memhtml.cli.entry import Arg, Command

COMMANDS: tuple[Command, ...] = (
    Command(
        "replay",
        "replay:replay",
        "Run recorded scripts again in the sandbox and compare what comes out.",
        args=(Arg("dir", "A recorded fixture.", required=True, repeatable=True),),
        types=("replay.report",),
        examples=("memhtml replay harvest/sessions/move-with-holder",),
    ),
)
