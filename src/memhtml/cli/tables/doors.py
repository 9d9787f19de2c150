"""The commands that write outside a session (spec `cli` §10)."""

from __future__ import annotations

from memhtml.cli.entry import Arg, Command, Flag
from memhtml.cli.tables.shared import TASK_STATUSES, TYPES

_TITLE = Flag(
    "title", "string", "The title; the file is named after it.", required=True, example="<title>"
)
_CLAIM = Flag(
    "claim", "string", "The one sentence the record exists to state.", example="<sentence>"
)
_BODY = Flag(
    "body",
    "string",
    "A further paragraph; one that is wholly a code fence becomes a code figure.",
    repeatable=True,
    example="<paragraph>",
)
_MARKUP = Flag(
    "article-html",
    "string",
    "The article's inner markup in place of claim and body, used as given.",
    example="<markup>",
)
_TAG = Flag("tag", "string", "A tag.", repeatable=True)
_ENTITY = Flag(
    "entity",
    "string",
    "What the record is about, as `type:name`.",
    repeatable=True,
    example="<type>:<name>",
)
_PROVENANCE = (
    Flag("session-id", "string", "The agent conversation this comes from."),
    Flag("prompt-id", "string", "The prompt in that conversation."),
    Flag("turn-uuid", "string", "The turn in that conversation."),
)
_ARTICLE = ("claim", "article-html")
_REASON = "Why; it is written into the commit."

COMMANDS: tuple[Command, ...] = (
    Command(
        "write",
        "doors:write",
        "Write one record in a commit of its own.",
        flags=(
            _TITLE,
            _CLAIM,
            _BODY,
            _MARKUP,
            Flag(
                "type",
                "string",
                "What kind of record it is.",
                required=True,
                values=TYPES,
                example="semantic",
            ),
            Flag("path", "string", "Where it goes, from the store's root.", example="<path>"),
            Flag(
                "strict-path",
                "boolean",
                "Refuse a --path that cannot be used, where it is otherwise placed by rule.",
                default=False,
            ),
            Flag("workspace", "string", "Place it under projects/<workspace>/."),
            Flag(
                "tag",
                "string",
                "A tag; the first one may place the record under resources/<tag>/.",
                repeatable=True,
            ),
            _ENTITY,
            Flag(
                "importance",
                "int",
                "How much it matters, 1 to 10.",
                example="5",
            ),
            Flag(
                "confidence",
                "string",
                "How sure it is, a decimal from 0 to 1.",
                example="0.9",
            ),
            *_PROVENANCE,
        ),
        one_of=_ARTICLE,
        types=("memory.written",),
        examples=(
            'memhtml write --type semantic --title "Relay limit" '
            '--claim "The relay batch limit is 12."',
            'memhtml write --type procedural --title "Drain a node" --tag runbook '
            '--claim "Drain first, then restart." --body "Wait for zero connections."',
        ),
    ),
    Command(
        "apply",
        "doors:apply",
        "Write many records from JSON lines in one commit.",
        args=(Arg("-", "Standard input, which is the default.", values=("-",)),),
        flags=(
            Flag(
                "file",
                "string",
                "The file of JSON lines, 256 MiB at most; absent or `-` is standard input.",
                check="path",
            ),
            Flag(
                "continue-on-error",
                "boolean",
                "Write what can be written, where one refused line otherwise stops all.",
                default=False,
            ),
            Flag(
                "detect-conflicts",
                "boolean",
                "Name what claims another value for the same thing.",
                default=False,
            ),
            Flag(
                "detect-near-duplicates",
                "boolean",
                "Name what says nearly the same; needs an embedder.",
                default=False,
            ),
            Flag("session-id", "string", "The agent conversation of lines that name none."),
            Flag("prompt-id", "string", "The prompt of lines that name none."),
            Flag("turn-uuid", "string", "The turn of lines that name none."),
        ),
        types=("batch.applied",),
        examples=(
            "memhtml apply --file facts.jsonl",
            "memhtml apply --file facts.jsonl --continue-on-error --detect-conflicts",
        ),
    ),
    Command(
        "correct",
        "doors:correct",
        "Put a replacement in place and retire the record it replaces, in one commit.",
        args=(Arg("target", "The record that is wrong or out of date.", required=True),),
        flags=(
            _TITLE,
            _CLAIM,
            _BODY,
            _MARKUP,
            Flag("type", "string", "Its kind; without it the target's.", values=TYPES),
            Flag("reason", "string", _REASON, example="<text>"),
            *_PROVENANCE,
        ),
        one_of=_ARTICLE,
        types=("memory.corrected",),
        examples=(
            'memhtml correct areas/inbox/relay-limit.html --title "Relay limit" '
            '--claim "The relay batch limit is 16."',
        ),
    ),
    Command(
        "link",
        "doors:link",
        "Add one typed link from a record to another.",
        args=(
            Arg("src", "The record that states the link.", required=True),
            Arg("rel", "The kind of link, such as relates_to, supports or blocks.", required=True),
            Arg("dst", "The record that is pointed at.", required=True),
        ),
        types=("memory.linked",),
        examples=("memhtml link areas/inbox/a.html relates_to resources/queue/b.html",),
    ),
    Command(
        "archive",
        "doors:archive",
        "Move a record to the archive; nothing is ever deleted.",
        args=(Arg("path", "The record to retire.", required=True),),
        flags=(Flag("reason", "string", _REASON, required=True, example="<text>"),),
        types=("memory.archived",),
        examples=('memhtml archive areas/inbox/old.html --reason "no longer true"',),
    ),
    Command(
        "task add",
        "doors:task_add",
        "Write a task.",
        flags=(
            _TITLE,
            Flag(
                "claim",
                "string",
                "The one sentence that says what is to be done; without it the title.",
                example="<sentence>",
            ),
            _BODY,
            Flag("status", "string", "How far it is.", values=TASK_STATUSES, default="todo"),
            Flag(
                "due",
                "string",
                "When it is due: YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ.",
                example="2026-12-31",
            ),
            Flag("workspace", "string", "Place it under projects/<workspace>/tasks/."),
            _TAG,
            _ENTITY,
            *_PROVENANCE,
        ),
        types=("task.written",),
        examples=('memhtml task add --title "Rotate the relay key" --due 2026-12-24',),
    ),
    Command(
        "task status",
        "doors:task_status",
        "Say how far a task is; `done` archives it as well.",
        args=(
            Arg("path", "The task.", required=True),
            Arg("status", "todo, doing, blocked or done.", required=True),
        ),
        flags=(Flag("reason", "string", "Why it is done; used with `done` only."),),
        types=("task.updated",),
        examples=(
            "memhtml task status areas/inbox/tasks/rotate-the-relay-key.html doing",
            "memhtml task status areas/inbox/tasks/rotate-the-relay-key.html done",
        ),
    ),
)
