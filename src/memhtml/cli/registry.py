"""The one table: commands, arguments, flags, response types, codes, variables.

The parser, the checks, `manifest`, `help`, the reference page and the suggestions all read it
(spec `cli` §3.1). It holds data and short look-ups only, because every command imports it.
"""

from __future__ import annotations

from memhtml.cli.entry import Arg, Command, Flag
from memhtml.cli.tables import (
    about,
    doors,
    evaluate,
    head,
    health,
    index,
    reads,
    replay,
    run,
    search,
    session,
)

__all__ = ["Arg", "Command", "Flag"]

NAME = "memhtml"
API_VERSION = "1"
SUMMARY = (
    "Keeps an agent's memories as small HTML files in git, written directly or through "
    "sandboxed sessions, and finds them again."
)

DENSE = Flag(
    "dense",
    "boolean",
    "Print without white space and leave out keys whose value is null.",
    default=False,
)
REPO = Flag(
    "repo",
    "string",
    "The store's root. Without it MEMHTML_ROOT is used, then ~/memhtml.",
    default="",
    check="path",
    example="<root>",
)
HELP = Flag("help", "boolean", "Describe the command instead of running it.", default=False)
GLOBAL_FLAGS = (DENSE, REPO, HELP)

COMMANDS: tuple[Command, ...] = (
    *about.COMMANDS,
    *doors.COMMANDS,
    *reads.COMMANDS,
    *run.COMMANDS,
    *replay.COMMANDS,
    *session.COMMANDS,
    *search.COMMANDS,
    *index.COMMANDS,
    *health.COMMANDS,
    *head.COMMANDS,
    *evaluate.COMMANDS,
)

BY_NAME = {command.name: command for command in COMMANDS}

# Spec `cli` §7, in its order.
RESPONSE_TYPES = (
    "cli.manifest",
    "cli.help",
    "repo.init",
    "memory.written",
    "batch.applied",
    "memory.detail",
    "memory.corrected",
    "memory.linked",
    "memory.archived",
    "task.written",
    "task.updated",
    "status.health",
    "exec.report",
    "agents.doc",
    "replay.report",
    "session.started",
    "session.appended",
    "session.exec.report",
    "session.committed",
    "session.rebased",
    "session.status",
    "session.pruned",
    "memory.hits",
    "recall.pack",
    "memory.neighbors",
    "memory.resolved",
    "memory.reinforced",
    "memory.list",
    "entity.activity",
    "task.list",
    "index.report",
    "doctor.report",
    "publish.report",
    "state.export",
    "state.import",
    "head.status",
    "head.search",
    "head.snapshot",
    "head.embedded",
    "eval.discrimination",
)

# The whole list of spec `cli` §6.1, also codes only a later tier raises: it never shrinks.
ERROR_CODES = (
    "ERR_UNKNOWN_COMMAND",
    "ERR_MISSING_ARGUMENT",
    "ERR_INVALID_FLAG",
    "ERR_UNEXPECTED_ARGUMENT",
    "ERR_REPO_REQUIRED",
    "ERR_PATH_NOT_FOUND",
    "ERR_INVALID_MEMORY",
    "ERR_DUPLICATE_CONTENT",
    "ERR_WRITE_CONFLICT",
    "ERR_DIRTY_TREE",
    "ERR_INDEX_STALE",
    "ERR_EMBED_MODEL_MISMATCH",
    "ERR_MODEL_UNAVAILABLE",
    "ERR_STORAGE",
    "ERR_GIT",
    "ERR_DISCRIMINATION_FAILED",
    "ERR_UNKNOWN",
    "ERR_REBUILD_NO_EMBED_REFUSED",
    "ERR_UNKNOWN_HOST",
    "ERR_UNKNOWN_HOOK_EVENT",
    "ERR_INTEGRATION_MODIFIED",
    "ERR_SESSION_BOUND",
    "ERR_HEAD_SERVER_RUNNING",
)

# What any command can answer before it runs.
USAGE_ERROR_CODES = (
    "ERR_UNKNOWN_COMMAND",
    "ERR_MISSING_ARGUMENT",
    "ERR_INVALID_FLAG",
    "ERR_UNEXPECTED_ARGUMENT",
    "ERR_REPO_REQUIRED",
    "ERR_SESSION_BOUND",
)

# The commands that create a record outside a session, which a policy may close (spec `cli` §6.2).
DOORS = ("write", "apply", "correct", "task add")


def flag_types() -> dict[str, str]:
    """Every flag's type. One name has one type across the table, which a test holds."""
    types = {flag.name: flag.type for flag in GLOBAL_FLAGS}
    for command in COMMANDS:
        for flag in command.flags:
            types[flag.name] = flag.type
    return types


def find(words: list[str]) -> tuple[Command | None, int]:
    """The command that positionals begin with and how many words name it; two words win."""
    for count in (2, 1):
        if len(words) >= count and (command := BY_NAME.get(" ".join(words[:count]))):
            return command, count
    return None, 0


def takers(flag: str) -> list[Command]:
    """The commands that have a flag of this name, in table order."""
    return [command for command in COMMANDS if any(each.name == flag for each in command.flags)]
