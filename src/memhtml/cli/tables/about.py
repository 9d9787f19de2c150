"""Commands about the program itself, and `init`."""

from __future__ import annotations

from memhtml.cli.entry import Arg, Command, Flag

COMMANDS: tuple[Command, ...] = (
    Command(
        "manifest",
        "about:manifest",
        "Describe every command, flag, code and response type of this build as data.",
        types=("cli.manifest",),
        examples=("memhtml manifest", "memhtml manifest --dense"),
    ),
    Command(
        "help",
        "about:help",
        "Describe one command, or all of them.",
        args=(Arg("command", "The one or two words of a command.", repeatable=True),),
        flags=(
            Flag(
                "json",
                "boolean",
                "Print the envelope on a terminal too, where Markdown is the default.",
                default=False,
            ),
        ),
        types=("cli.help", "cli.manifest"),
        examples=("memhtml help session exec", "memhtml help --json"),
    ),
    Command(
        "init",
        "store:init",
        "Make a store, or add what is missing to one.",
        types=("repo.init",),
        examples=("memhtml init", "memhtml init --repo ./notes"),
    ),
)
