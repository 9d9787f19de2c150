"""The commands that read one record or list many, and the access state (spec `cli` §10, §11)."""

from __future__ import annotations

from memhtml.cli.entry import Command

COMMANDS: tuple[Command, ...] = ()
