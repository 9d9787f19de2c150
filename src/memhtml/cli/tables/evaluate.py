"""`eval discriminate` (spec `cli` §13)."""

from __future__ import annotations

from memhtml.cli.entry import Command

COMMANDS: tuple[Command, ...] = ()
