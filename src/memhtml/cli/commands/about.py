"""`manifest` and `help`: the table as data or as Markdown. Neither opens anything."""

from __future__ import annotations

from memhtml.cli import manifest as table
from memhtml.cli import parse, registry
from memhtml.cli.call import Answer, Call


def manifest(call: Call) -> Answer:
    """`manifest`, the empty call and `--version`."""
    return Answer("cli.manifest", table.manifest())


def help(call: Call) -> Answer:
    """`help` and `--help` (spec `cli` §3.7): Markdown on a terminal, data otherwise."""
    as_data = not call.terminal or call.switch("json")
    if not call.args:
        if as_data:
            return Answer("cli.manifest", table.manifest())
        from memhtml.cli import markdown

        return Answer("cli.manifest", {}, markdown=markdown.document())
    command = _named(call)
    if as_data:
        return Answer("cli.help", table.entry_help(command))
    from memhtml.cli import markdown

    return Answer("cli.help", {}, markdown=markdown.page(command))


def _named(call: Call) -> registry.Command:
    """The command the words begin with; words after its name are ignored."""
    command, _ = registry.find(call.args)
    if command is None:
        raise parse.unknown_command(call.args, "help")
    return command
