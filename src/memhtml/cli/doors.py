"""The four commands that create a record outside a session, and when they are closed.

Spec `cli` §6.2 and `sessions` §11. A closed door points an agent at the session commands.
"""

from __future__ import annotations

from memhtml import config, policy
from memhtml.errors import MemhtmlError

ALWAYS = "closed"

_FACT = (
    '{"op":"write","title":"<title>","type":"semantic",'
    '"body":"<one sentence that states the fact>","entity":"<type>:<name>"}'
)
_NEW_FACT = (
    '{"op":"write","title":"<title of the new fact>","type":"semantic",'
    '"body":"<one sentence that states the new fact>","entity":"<type>:<name>"}'
)
_TASK = (
    '{"op":"write","title":"<title>","type":"task",'
    '"body":"<one sentence that says what is to be done>","entity":"<type>:<name>"}'
)


def refuse_if_closed(door: str, repo: str) -> None:
    """Raise `ERR_SESSION_BOUND` when the store's `v1Doors` closes this door now.

    Also raises `ERR_INVALID_FLAG` for a bad `MEMHTML_SESSION` at a door it would close, and
    `StorageError` `policy.invalid`: a policy that cannot be read keeps the door shut.
    """
    rules = _policy(repo)
    if not rules.closes_doors(in_session=config.session_variable() is not None):
        return
    bound = _bound(door)
    reason = (
        f"the store's policy closes {door} (v1Doors is {rules.v1_doors!r})"
        if rules.v1_doors == ALWAYS
        else f"{door} is closed in this run, because MEMHTML_SESSION is set"
    )
    raise MemhtmlError(
        "ERR_SESSION_BOUND",
        f"{reason}; add records through the session",
        suggestions=_suggestions(door, "" if bound else " --id <id>"),
    )


def _bound(door: str) -> str | None:
    """The session of the run; a variable that names none leads to the door's own help."""
    try:
        return config.bound_session()
    except MemhtmlError as error:
        way = f"memhtml help {door}"
        raise MemhtmlError(error.code, str(error), suggestions=(way,)) from None


def _policy(repo: str) -> policy.Policy:
    """The policy of the store the call names; the defaults when no root can be named."""
    try:
        root = config.root(repo)
    except MemhtmlError:
        return policy.DEFAULT
    return policy.load(root)


def _suggestions(door: str, option: str) -> tuple[str, ...]:
    """Ways on; `option` is `--id <id>` where no variable names the session."""
    line = {"correct": _NEW_FACT, "task add": _TASK}.get(door, _FACT)
    start = f"memhtml session start{option}"
    put = f"printf '%s\\n' '{line}' | memhtml session put{option} --file -"
    script = f"memhtml session exec{option} <<'SH'"
    status = f"memhtml session status{option}"
    then = {"correct": (script,), "task add": (status,)}.get(door, (script, status))
    return (*((start,) if option else ()), put, *then)
