"""Flags and words that commands of several groups have."""

from __future__ import annotations

from memhtml.cli.entry import Flag

SERVER = Flag(
    "server",
    "boolean",
    "Ask a running head server first. This build has none, so every call does its own work; "
    "with --no-server the payload says so as `disabled`.",
    default=True,
)

# The vocabulary of the format once more, because loading it would cost every call.
TYPES = (
    "episodic",
    "semantic",
    "procedural",
    "agent_insight",
    "user_preference",
    "error_pattern",
    "verdict",
    "precedent",
    "arc",
    "task",
)
TASK_STATUSES = ("todo", "doing", "blocked", "done")
