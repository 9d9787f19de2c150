"""The one table: commands, arguments, flags, response types, codes, variables.

The parser, the checks, `manifest`, `help`, the reference page and the suggestions all read it
(spec `cli` §3.1). It holds data and short look-ups only, because every command imports it.
"""

from __future__ import annotations

NAME = "memhtml"
API_VERSION = "1"
SUMMARY = (
    "Keeps an agent's memories as small HTML files in git, written through sandboxed sessions."
)


class Arg:
    """A positional. With `values` it takes nothing else; the last one of a command may repeat."""

    __slots__ = ("description", "name", "repeatable", "required", "values")

    def __init__(
        self,
        name: str,
        description: str,
        *,
        required: bool = False,
        repeatable: bool = False,
        values: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.description = description
        self.required = required
        self.repeatable = repeatable
        self.values = values


class Flag:
    """A flag: `type` is `string`, `int` or `boolean`.

    `check` names a value check of `memhtml.cli.checks`. `variable` fills an absent flag and makes
    it required when it is unset. `example` stands for a value in suggestions and usage lines.
    """

    __slots__ = (
        "check",
        "default",
        "description",
        "example",
        "name",
        "repeatable",
        "required",
        "type",
        "values",
        "variable",
    )

    def __init__(
        self,
        name: str,
        type: str,
        description: str,
        *,
        values: tuple[str, ...] = (),
        required: bool = False,
        repeatable: bool = False,
        default: str | int | bool | None = None,
        check: str = "text",
        variable: str = "",
        example: str = "",
    ) -> None:
        self.name = name
        self.type = type
        self.description = description
        self.values = values
        self.required = required
        self.repeatable = repeatable
        self.default = default
        self.check = check
        self.variable = variable
        self.example = example or f"<{name}>"


class Command:
    """A command; `handler` is `module:function` under `memhtml.cli.commands`."""

    __slots__ = ("args", "examples", "flags", "handler", "name", "summary", "types")

    def __init__(
        self,
        name: str,
        handler: str,
        summary: str,
        *,
        args: tuple[Arg, ...] = (),
        flags: tuple[Flag, ...] = (),
        types: tuple[str, ...],
        examples: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.handler = handler
        self.summary = summary
        self.args = args
        self.flags = flags
        self.types = types
        self.examples = examples


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

_ID = Flag(
    "id",
    "string",
    "The session: 1 to 128 letters, digits, `.`, `_` or `-`, starting with a letter or digit. "
    "Without it MEMHTML_SESSION names it.",
    check="session-id",
    variable="MEMHTML_SESSION",
)
_SERVER = Flag(
    "server",
    "boolean",
    "Ask a running head server first. This build has none, so every call does its own work; "
    "with --no-server the payload says so as `disabled`.",
    default=True,
)

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
    Command(
        "session start",
        "session:start",
        "Start a session on the version a ref stands at.",
        flags=(
            _ID,
            Flag(
                "ref",
                "string",
                "Where the commit will land; a name outside refs/ is a branch.",
                default="refs/heads/main",
            ),
            Flag(
                "force",
                "boolean",
                "Replace a log that exists; its operations are lost.",
                default=False,
            ),
        ),
        types=("session.started",),
        examples=(
            "memhtml session start --id s1",
            "memhtml session start --id s1 --ref master",
        ),
    ),
    Command(
        "session put",
        "session:put",
        "Add records and entity labels from JSON lines to a session.",
        flags=(
            _ID,
            Flag(
                "file",
                "string",
                "The file of JSON lines; absent or `-` is standard input.",
                check="path",
            ),
            _SERVER,
        ),
        types=("session.appended",),
        examples=(
            "memhtml session put --id s1 --file ops.jsonl",
            "memhtml session put --id s1 --file -",
        ),
    ),
    Command(
        "session exec",
        "session:exec_",
        "Run a script over a writable copy of the records and add what it changed to a session.",
        args=(Arg("-", "Standard input, which is the default.", values=("-",)),),
        flags=(
            _ID,
            Flag(
                "lang",
                "string",
                "What runs the script.",
                values=("bash", "js"),
                default="bash",
            ),
            Flag(
                "file",
                "string",
                "The script on the host; absent or `-` is standard input.",
                check="path",
            ),
            Flag("script", "string", "The script itself."),
            Flag(
                "timeout-ms",
                "int",
                "Milliseconds the script may run, 1 to 600000.",
                default=30000,
                check="timeout",
                example="30000",
            ),
            _SERVER,
            Flag(
                "record",
                "string",
                "Also write a fixture for `replay` into this folder, new or empty.",
                check="path",
                example="<dir>",
            ),
            Flag(
                "record-path",
                "string",
                "Also record the records under this path prefix; for a large store.",
                repeatable=True,
                example="<prefix>",
            ),
        ),
        types=("session.exec.report",),
        examples=(
            "memhtml session exec --id s1 --script 'ls /mnt/memhtml'",
            "memhtml session exec --id s1 --file edit.sh",
            "memhtml session exec --id s1 --lang js --file edit.mjs --timeout-ms 60000",
        ),
    ),
    Command(
        "session status",
        "session:status",
        "Show what a session holds and whether its ref has moved.",
        flags=(_ID,),
        types=("session.status",),
        examples=("memhtml session status --id s1",),
    ),
    Command(
        "session commit",
        "session:commit",
        "Land a session's operations as one commit.",
        flags=(
            _ID,
            Flag(
                "message",
                "string",
                "What the commit's subject says.",
                required=True,
                example="<text>",
            ),
            Flag(
                "drop-refused",
                "boolean",
                "Drop the operations a refusal names and commit the rest.",
                default=False,
            ),
            _SERVER,
        ),
        types=("session.committed",),
        examples=(
            'memhtml session commit --id s1 --message "two facts about the cache"',
            'memhtml session commit --id s1 --message "run 42" --drop-refused',
        ),
    ),
    Command(
        "session rebase",
        "session:rebase",
        "Move a session's base to where its ref stands now.",
        flags=(_ID, _SERVER),
        types=("session.rebased",),
        examples=("memhtml session rebase --id s1",),
    ),
    Command(
        "session prune",
        "session:prune",
        "Remove what old sessions left behind; operations that never landed are kept and listed.",
        flags=(
            Flag(
                "older-than",
                "string",
                "An age with a unit, such as 7d, 48h, 90m or '2 weeks'.",
                required=True,
                example="7d",
            ),
            Flag("dry-run", "boolean", "Count, and remove nothing.", default=False),
        ),
        types=("session.pruned",),
        examples=("memhtml session prune --older-than 7d --dry-run",),
    ),
    Command(
        "replay",
        "replay:replay",
        "Run recorded scripts again in the sandbox and compare what comes out.",
        args=(Arg("dir", "A recorded fixture.", required=True, repeatable=True),),
        types=("replay.report",),
        examples=("memhtml replay harvest/sessions/move-with-holder",),
    ),
)

BY_NAME = {command.name: command for command in COMMANDS}

RESPONSE_TYPES = (
    "cli.manifest",
    "cli.help",
    "repo.init",
    "replay.report",
    "session.started",
    "session.appended",
    "session.exec.report",
    "session.committed",
    "session.rebased",
    "session.status",
    "session.pruned",
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

# The commands that create a record outside a session. This build has none of them, and answers
# `ERR_SESSION_BOUND` to their names all the same (spec `cli` §3.3).
DOORS = ("write", "apply", "correct", "task add")
# Their flags that take a value, so that `write --title "task add"` is still read as `write`.
DOOR_VALUE_FLAGS = frozenset(
    {
        "article-html",
        "body",
        "claim",
        "confidence",
        "due",
        "entity",
        "importance",
        "path",
        "prompt-id",
        "reason",
        "session-id",
        "status",
        "tag",
        "title",
        "turn-uuid",
        "type",
        "workspace",
    }
)


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
