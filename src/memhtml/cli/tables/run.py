"""`exec` and `agents-doc` (spec `cli` §10)."""

from __future__ import annotations

from memhtml.cli.entry import Command

COMMANDS: tuple[Command, ...] = ()
