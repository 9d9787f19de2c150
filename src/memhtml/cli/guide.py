"""The prose behind the table: the guide, and what each type, code and variable means.

Loaded by `manifest` and `help` alone. Every sentence is about this build.
"""

from __future__ import annotations

TOPICS: tuple[tuple[str, str], ...] = (
    (
        "first-call",
        "Every call prints one JSON envelope. A success has `type` and `data`, a failure has "
        "`error`, `code` and `suggestions`; branch on `type` and `code`, never on `error`, and "
        "try a suggestion before anything else. `memhtml init` makes a store, "
        '`memhtml search "<words>"` looks in it, and `write` adds one memory. '
        "`memhtml help <command>` describes one command.",
    ),
    (
        "write-surfaces",
        "Two doors. Directly: `write`, `apply`, `correct`, `link`, `archive` and `task` each make "
        "one commit at once and judge the format alone. Through a session: `session put` takes "
        "JSON lines, `session exec` runs a bash or node script over a writable copy of the records "
        "at /mnt/memhtml and turns what changed into operations; the store's write bar judges "
        "them, and `session commit` lands them as one commit. While MEMHTML_SESSION is set, "
        "`write`, `apply`, `correct` and `task add` are closed: use the session.",
    ),
    (
        "when-to-batch",
        "One `apply` or `session put` of many lines is one call and one commit; a call for each "
        "line is as many commits. `apply` is atomic: one refused line and nothing is written, "
        "unless `--continue-on-error` is given. A session commit holds at most 200 operations, and "
        "a script with its request at most 1048576 bytes. `--dense` keeps answers short.",
    ),
    (
        "conflicts",
        "`write` and `apply` answer `deduped` when a memory already says it. `session commit` "
        "exits 0 for every outcome; read `kind`. `rebase-needed`: the ref moved, so run `session "
        "rebase` and commit again. `refused`: `violations` names each operation and rule; mend it, "
        "or drop it with `--drop-refused`. `worktree-dirty`: commit or stash the paths it lists. A "
        "new claim that rivals a live one lands all the same; both stay, the new one links the "
        "old, and `contradictions` lists the pair. `apply --detect-conflicts` tells beforehand.",
    ),
    (
        "authoring",
        "A record is one HTML file with one claim in a `<mark>`. Give it a title that states the "
        "fact, a type, and an entity such as service:checkout-api. Do not edit the article of a "
        "record that is there: `correct` puts the new fact in place and archives the old one in "
        "one commit; in a session write the new fact under its own title, archive the old record, "
        "and link the two with supersedes. Read `neighbors` after a put; one of them may already "
        "say it.",
    ),
    (
        "code-mode",
        "Pipe a quoted heredoc (<<'SH') into `session exec`, so that your shell expands nothing. "
        "Paths in the script are absolute. There is no network and no git inside. A new file is a "
        "put; adding or cutting a memhtml link or entity line in a head is a link or a label; "
        "moving a file to archive/<year>/<its path> archives it; moving it elsewhere, bytes "
        "unchanged, is a move. Anything else is listed under `rejected`. `--lang js` may import "
        "/workspace/lib/corpus.mjs for walking records and links. `exec` runs a script "
        "over any commit, read-only, without a session.",
    ),
    (
        "recall-discipline",
        "Look before you write, and before you answer. `search` lists hits with what a "
        "full read costs (`estTokens`); `recall` quotes the best of them within a budget; "
        "`read` opens one. A hit with `supersededBy` is outdated, and records under "
        "archive/ are history: `memhtml resolve <path>` says where a fact lives now, `--as-of` "
        "what held at an instant. `memhtml reinforce <path> --signal positive` says that a memory "
        "helped. Search sees the index: `memhtml index update` after a session commit or an edit "
        "by hand.",
    ),
)

OUTPUT = (
    "Each call writes one JSON object and a newline to standard output, and log lines to "
    "standard error. Help on a terminal is Markdown instead.\n\n"
    '```json\n{ "apiVersion": "1", "type": "session.status", "data": {} }\n```\n\n'
    '```json\n{ "apiVersion": "1", "error": "prose", "code": "ERR_GIT", "suggestions": [] }\n```'
)

EXITS: tuple[tuple[str, str], ...] = (
    ("0", "Success. A failing script and an unlanded commit are success too: read the payload."),
    ("1", "The call was right and the work failed. `replay` also uses it for a changed fixture."),
    ("2", "The call itself is wrong."),
    ("130", "Interrupted; nothing is printed."),
    ("143", "Terminated; nothing is printed."),
)

TYPES: dict[str, str] = {
    "cli.manifest": "the whole table: guide, flags, codes, variables, types, commands",
    "cli.help": "one command with its usage line and related commands",
    "repo.init": "the store's root, whether it was made now, HEAD and the files written",
    "memory.written": "where the memory lies, or the one that already said it, and the commit",
    "batch.applied": "what became of each operation, and the one commit of all of them",
    "memory.detail": "one memory: its fields, links, facets, citations and text",
    "memory.corrected": "the new memory, where the old one was archived, and the commit",
    "memory.linked": "the edge, whether it was new, and the commit",
    "memory.archived": "where the memory lies now, and the commit",
    "task.written": "where the task lies, and the commit",
    "task.updated": "the task's path and status, and the commit",
    "status.health": "HEAD, uncommitted paths, counts, and how far the index has followed",
    "exec.report": "the commit a script ran over, how it ended and what it printed",
    "agents.doc": "the file, its size, whether it had these bytes and whether it was written",
    "replay.report": "how many fixtures passed, failed or were skipped, and each difference",
    "session.started": "the session's id, base, ref and how the records were loaded",
    "session.appended": "what a put added, where, its neighbours and all violations",
    "session.exec.report": "how the script ended, what was harvested, rejected and added",
    "session.committed": "the outcome in `kind`, and the fields of that outcome",
    "session.rebased": "the base before and after",
    "session.status": "the base, the ref, counts of operations, paths and a pending commit",
    "session.pruned": "what was removed, and which sessions still hold operations",
    "memory.hits": "the memories a query found, best first, and which searches ran",
    "recall.pack": "quoted bodies within a budget, and one line for each memory beyond it",
    "memory.neighbors": "the memories around one, by the number of links between",
    "memory.resolved": "where a path leads by corrections and archive moves, step by step",
    "memory.reinforced": "which paths were counted, and which were counted too recently",
    "memory.list": "memories in path order, and the cursor of the next page",
    "entity.activity": "entities by their latest activity, with how many memories name each",
    "task.list": "tasks in path order with what blocks them, and the next page's cursor",
    "index.report": "what an index command did or found; `mode` says which command",
    "doctor.report": "every finding about the store, whether it is healthy, what was repaired",
    "publish.report": "how many pages there are, which were rewritten, and the commit",
    "state.export": "the exported file, its rows and size, and the commit",
    "state.import": "how many rows were read, restored and skipped",
    "head.status": "how the records at HEAD are loaded",
    "head.search": "the records at HEAD that a query found, best first",
    "head.snapshot": "the head database that was written or read",
    "head.embedded": "how many records at HEAD have a vector now",
    "eval.discrimination": "how often a fact outranked its wrong twin, and whether that passed",
}

CODES_NOTE = (
    "The list is the same in every build and only grows. Codes that no command of this build "
    "raises are marked with a dash."
)

CODES: dict[str, tuple[str, str]] = {
    "ERR_UNKNOWN_COMMAND": ("2", "The words name no command."),
    "ERR_MISSING_ARGUMENT": ("2", "A required argument or flag, or the script, is absent."),
    "ERR_INVALID_FLAG": (
        "2",
        "An unknown flag, a value that is not allowed, two flags that exclude each other, a bad "
        "input line, or a bad variable.",
    ),
    "ERR_UNEXPECTED_ARGUMENT": ("2", "A positional the command does not take."),
    "ERR_REPO_REQUIRED": ("2", "MEMHTML_REFUSE_ENV_ROOT is set and there is no --repo."),
    "ERR_PATH_NOT_FOUND": ("2", "An input file named on the line cannot be read."),
    "ERR_INVALID_MEMORY": (
        "1",
        "A record breaks the format or the write bar, an operation no longer applies, or the "
        "repository has no commit.",
    ),
    "ERR_DUPLICATE_CONTENT": ("1", "–"),
    "ERR_WRITE_CONFLICT": ("1", "–"),
    "ERR_DIRTY_TREE": ("1", "–"),
    "ERR_INDEX_STALE": ("1", "–"),
    "ERR_EMBED_MODEL_MISMATCH": ("1", "–"),
    "ERR_MODEL_UNAVAILABLE": (
        "1",
        "Vectors are to be made and no embedder is bound, or the one that is cannot answer.",
    ),
    "ERR_STORAGE": (
        "1",
        "Reading or writing the store's own files, the lock, the policy or the sandbox failed; "
        "`error` carries a dotted reason.",
    ),
    "ERR_GIT": ("1", "A git operation failed, or the root is no git work tree."),
    "ERR_DISCRIMINATION_FAILED": ("1", "–"),
    "ERR_UNKNOWN": ("1", "An unexpected failure, which is a bug; standard error has the trace."),
    "ERR_REBUILD_NO_EMBED_REFUSED": ("1", "–"),
    "ERR_UNKNOWN_HOST": ("2", "–"),
    "ERR_UNKNOWN_HOOK_EVENT": ("2", "–"),
    "ERR_INTEGRATION_MODIFIED": ("1", "–"),
    "ERR_SESSION_BOUND": (
        "2",
        "`write`, `apply`, `correct` or `task add` was called in a run that MEMHTML_SESSION "
        "binds, or the store's policy closes them.",
    ),
    "ERR_HEAD_SERVER_RUNNING": ("1", "–"),
}

VARIABLES: tuple[tuple[str, str, str | None], ...] = (
    ("MEMHTML_ROOT", "The store's root when --repo is not given.", "~/memhtml"),
    (
        "MEMHTML_REFUSE_ENV_ROOT",
        "When set to anything but 0, false, no or off, only --repo names a store.",
        "off",
    ),
    (
        "MEMHTML_SESSION",
        "Binds every call of a run to one session id: it is the default of --id, the first put or "
        "exec starts it, and the commands that write past a session are closed.",
        None,
    ),
    (
        "MEMHTML_EMBED",
        "Which embedder is bound: on (the local one when the extra `embed` is installed), off, "
        "local, hash, or remote.",
        "on",
    ),
    (
        "MEMHTML_EMBED_MODEL",
        "The model's name for MEMHTML_EMBED=remote, or a folder of weights for local.",
        None,
    ),
    (
        "MEMHTML_VECTOR_COVERAGE_FLOOR",
        "The share of the indexed text, 0 to 1, that needs vectors before search and recall use "
        "them.",
        "0.95",
    ),
    (
        "MEMHTML_EMBED_DEADLINE_MS",
        "Milliseconds a head search waits for its query's vector; 0 is no bound.",
        "450",
    ),
    (
        "MEMHTML_LLM_BASE_URL",
        "Where MEMHTML_EMBED=remote asks: the URL in front of /embeddings. A loopback address is "
        "asked past any proxy, and no redirect is followed.",
        None,
    ),
    ("MEMHTML_LLM_API_KEY", "The key that is sent there as a bearer token.", None),
    ("MEMHTML_BWRAP", "The bubblewrap to use, instead of the packaged one and the path's.", None),
    ("MEMHTML_SANDBOX", "Forces the sandbox's back end: overlay or copy.", "by probe"),
    (
        "MEMHTML_SANDBOX_UID",
        "The host uid and gid of a script when root runs the call.",
        "65534",
    ),
    (
        "MEMHTML_SANDBOX_CACHE",
        "Where the file trees that scripts see are kept.",
        ".memhtml/sandbox in the store",
    ),
)
