"""Calls to suggest. Each parses against the table and has every required part, as a placeholder."""

from __future__ import annotations

from memhtml import config
from memhtml.cli import registry

SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_")
STORELESS = ("manifest", "help", "agents-doc", "replay", "eval discriminate")
"""Commands that open no store, so that `--repo` means nothing to them (spec `cli` §4)."""


def call(command: registry.Command, extra: str = "") -> str:
    """A whole call of a command: what it requires, unless `extra` has it, then `extra`."""
    parts = [registry.NAME, command.name]
    parts += [f"<{arg.name}>" for arg in command.args if arg.required]
    named = extra.partition(" ")[0].partition("=")[0].removeprefix("--")
    for each in command.flags:
        unfilled = bool(each.variable) and not names_a_session()
        wanted = each.name in command.one_of[:1] and named not in command.one_of
        if (each.required or unfilled or wanted) and each.name != named:
            value = "" if each.type == "boolean" else f" {each.example}"
            parts.append(f"--{each.name}{value}")
    return " ".join([*parts, extra] if extra else parts)


def names_a_session() -> bool:
    """Whether `MEMHTML_SESSION` gives an id, so that a suggested call needs no `--id`."""
    return config.valid_session_id(config.session_variable() or "")


def flag(command: registry.Command, name: str) -> str:
    """A flag as it is written on a command, with a placeholder for its value."""
    for each in (*registry.GLOBAL_FLAGS, *command.flags):
        if each.name != name:
            continue
        if each.type == "boolean":
            return f"--no-{name}" if each.default is True else f"--{name}"
        return f"--{name} {each.values[0] if each.values else each.example}"
    raise KeyError(name)


def on_store(line: str, repo: str) -> str:
    """The same line with `--repo`, when it is a `memhtml` call on a store that names none."""
    before, pipe, own = f"| {line}".rpartition("| ")
    words, heredoc, rest = own.partition(" <<")
    tokens = words.split()
    if tokens[:1] != [registry.NAME] or " --repo" in words:
        return line
    command, _ = registry.find(tokens[1:3])
    if command is None or command.name in STORELESS:
        return line
    # A value that begins with dashes would be taken for the next flag.
    name = f"--repo={quoted(repo)}" if repo.startswith("--") else f"--repo {quoted(repo)}"
    return f"{before}{pipe}{words} {name}{heredoc}{rest}".removeprefix("| ")


def quoted(text: str) -> str:
    """A word as a shell reads it back."""
    if text and SAFE.issuperset(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"
