"""`exec` and `agents-doc` (spec `cli` §10)."""

from __future__ import annotations

from memhtml.cli.entry import Arg, Command, Flag

COMMANDS: tuple[Command, ...] = (
    Command(
        "exec",
        "run:exec_",
        "Run a script over one commit of the records, which it can read and not change.",
        args=(Arg("-", "Standard input, which is the default.", values=("-",)),),
        flags=(
            Flag(
                "file",
                "string",
                "The script on the host; absent or `-` is standard input.",
                check="path",
            ),
            Flag("script", "string", "The script itself."),
            Flag(
                "lang",
                "string",
                "What runs the script.",
                values=("bash", "js"),
                default="js",
            ),
            Flag(
                "timeout-ms",
                "int",
                "Milliseconds the script may run, 1 to 600000.",
                default=30000,
                check="timeout",
                example="30000",
            ),
            Flag(
                "sha",
                "string",
                "The commit to mount, by any name git resolves to one. An uncommitted edit is "
                "never visible.",
                default="HEAD",
                example="HEAD",
            ),
        ),
        types=("exec.report",),
        examples=(
            "memhtml exec --lang bash --script 'grep -rl relay /mnt/memhtml'",
            "memhtml exec --file count.mjs",
            "memhtml exec --sha HEAD~1 --lang bash --script 'ls /mnt/memhtml'",
        ),
    ),
    Command(
        "agents-doc",
        "run:agents_doc",
        "Write what an agent must know about this program as one Markdown file.",
        flags=(
            Flag(
                "check",
                "boolean",
                "Only say whether the file has these bytes; write nothing.",
                default=False,
            ),
            Flag(
                "out",
                "string",
                "The file to write.",
                default="./AGENTS.md",
                check="path",
                example="<file>",
            ),
        ),
        types=("agents.doc",),
        examples=("memhtml agents-doc", "memhtml agents-doc --check --out docs/AGENTS.md"),
    ),
)
