"""The commands that read one record or list many, and the access state (spec `cli` §10, §11)."""

from __future__ import annotations

from memhtml.cli.entry import Arg, Command, Flag
from memhtml.cli.tables.shared import TASK_STATUSES, TYPES

MEMORY_RELS = (
    "supersedes",
    "contradicts",
    "caused_by",
    "leads_to",
    "part_of",
    "relates_to",
    "example_of",
    "supports",
    "laterally_related",
)
BUCKETS = ("projects", "areas", "resources", "archive")

_PATH = Arg("path", "The record, from the store's root; a leading `/` is dropped.", required=True)
_WORKSPACE = Flag("workspace", "string", "Only what lies under projects/<workspace>/.")
_CURSOR = Flag("cursor", "string", "Go on behind this path: the `nextCursor` of the page before.")
_ARCHIVED = Flag("include-archived", "boolean", "Also what is archived.", default=False)


def _page(what: str) -> Flag:
    return Flag(
        "limit",
        "int",
        f"{what} a page, 1 to 500; brought into that range.",
        default=50,
        example="50",
    )


COMMANDS: tuple[Command, ...] = (
    Command(
        "read",
        "reads:read",
        "Show one record in full, as it is in the working tree.",
        args=(_PATH,),
        flags=(
            Flag("session-id", "string", "The agent conversation that reads; links it."),
            Flag("prompt-id", "string", "The prompt in that conversation."),
            Flag("turn-uuid", "string", "The turn in that conversation."),
        ),
        types=("memory.detail",),
        examples=("memhtml read areas/inbox/relay-limit.html",),
    ),
    Command(
        "status",
        "state:status",
        "Show what the store holds and whether its index is up to date.",
        types=("status.health",),
        examples=("memhtml status",),
    ),
    Command(
        "neighbors",
        "reads:neighbors",
        "List the records that a record's edges lead to, in both directions.",
        args=(_PATH,),
        flags=(
            Flag("depth", "int", "How many hops to go, 1 or 2.", default=1, example="1"),
            Flag("limit", "int", "Records at most, 1 to 200.", default=200, example="200"),
            Flag("rel", "string", "Only edges of this kind.", values=MEMORY_RELS, repeatable=True),
        ),
        types=("memory.neighbors",),
        examples=(
            "memhtml neighbors areas/inbox/relay-limit.html",
            "memhtml neighbors areas/inbox/relay-limit.html --depth 2 --rel supports",
        ),
    ),
    Command(
        "resolve",
        "reads:resolve",
        "Follow an old path to where its fact lives now.",
        args=(_PATH,),
        types=("memory.resolved",),
        examples=("memhtml resolve areas/inbox/relay-limit.html",),
    ),
    Command(
        "reinforce",
        "reads:reinforce",
        "Note that records were of use, or that they misled; nothing is committed.",
        args=(Arg("path", "The records.", required=True, repeatable=True),),
        flags=(
            Flag(
                "signal",
                "string",
                "What came of using them.",
                values=("positive", "negative", "neutral"),
                default="neutral",
            ),
        ),
        types=("memory.reinforced",),
        examples=("memhtml reinforce areas/inbox/relay-limit.html --signal positive",),
    ),
    Command(
        "list",
        "reads:list_",
        "List records by path, a page at a time.",
        flags=(
            Flag("type", "string", "Only records of this type.", values=TYPES),
            _WORKSPACE,
            Flag("tag", "string", "Only records with this tag."),
            Flag("entity", "string", "Only records about this `type:name`."),
            Flag(
                "facet",
                "string",
                "Only records that state this. Values of one name widen, other names narrow.",
                repeatable=True,
                check="facet",
                example="<name>=<value>",
            ),
            Flag(
                "para",
                "string",
                "Only this bucket; `archive` shows what is archived.",
                values=BUCKETS,
            ),
            _page("Records"),
            _CURSOR,
            _ARCHIVED,
        ),
        types=("memory.list",),
        examples=(
            "memhtml list",
            "memhtml list --type procedural --entity service:relay --limit 20",
        ),
    ),
    Command(
        "entity activity",
        "reads:activity",
        "List the entities that records are about, the latest activity first.",
        flags=(
            Flag("type", "string", "Only entities of this type: what stands before the colon."),
            Flag(
                "limit",
                "int",
                "Entities at most, 1 to 500; brought into that range.",
                default=50,
                example="50",
            ),
            _ARCHIVED,
        ),
        types=("entity.activity",),
        examples=("memhtml entity activity --type service",),
    ),
    Command(
        "task list",
        "reads:task_list",
        "List tasks by path, a page at a time, with what blocks each.",
        flags=(
            Flag("status", "string", "Only tasks of this status.", values=TASK_STATUSES),
            _WORKSPACE,
            Flag(
                "due-before",
                "string",
                "Only tasks due on an earlier day: YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ.",
                example="2026-12-31",
            ),
            _page("Tasks"),
            _CURSOR,
            _ARCHIVED,
            Flag("detected", "boolean", "Only tasks found in transcripts (det-…).", default=False),
        ),
        types=("task.list",),
        examples=("memhtml task list --status todo --due-before 2026-12-31",),
    ),
    Command(
        "state export",
        "state:export",
        "Write how records were used to .memhtml/state/access.jsonl and commit it.",
        types=("state.export",),
        examples=("memhtml state export",),
    ),
    Command(
        "state import",
        "state:import_",
        "Merge .memhtml/state/access.jsonl into the local access state.",
        types=("state.import",),
        examples=("memhtml state import",),
    ),
)
