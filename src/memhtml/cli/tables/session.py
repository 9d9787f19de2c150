"""The session commands."""

from __future__ import annotations

from memhtml.cli.entry import Arg, Command, Flag
from memhtml.cli.tables.shared import SERVER

ID = Flag(
    "id",
    "string",
    "The session: 1 to 128 letters, digits, `.`, `_` or `-`, starting with a letter or digit. "
    "Without it MEMHTML_SESSION names it.",
    check="session-id",
    variable="MEMHTML_SESSION",
)

COMMANDS: tuple[Command, ...] = (
    Command(
        "session start",
        "session:start",
        "Start a session on the version a ref stands at.",
        flags=(
            ID,
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
            ID,
            Flag(
                "file",
                "string",
                "The file of JSON lines; absent or `-` is standard input.",
                check="path",
            ),
            SERVER,
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
            ID,
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
            SERVER,
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
        flags=(ID,),
        types=("session.status",),
        examples=("memhtml session status --id s1",),
    ),
    Command(
        "session commit",
        "session:commit",
        "Land a session's operations as one commit.",
        flags=(
            ID,
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
            SERVER,
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
        flags=(ID, SERVER),
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
)
