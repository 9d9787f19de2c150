"""`doctor` and `publish` (spec `cli` §11)."""

from __future__ import annotations

from memhtml.cli.entry import Command

COMMANDS: tuple[Command, ...] = ()
