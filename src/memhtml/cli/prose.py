"""The rules of flags that state a record, and the draft they make (spec `cli` §10 `write`).

A blank text counts as absent. What the record's own file breaks is found when it is rendered.
"""

from __future__ import annotations

from memhtml.cli import registry, show, suggest
from memhtml.errors import MemhtmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memhtml.cli.call import Call
    from memhtml_format.render import Draft

LARGEST_IMPORTANCE = 10


def check(call: Call) -> None:
    """Refuse a call whose flags state no record, or two.

    Raises `MemhtmlError` `ERR_MISSING_ARGUMENT` and `ERR_INVALID_FLAG`.
    """
    command = registry.BY_NAME[call.name]
    claim, markup = (stated(call, name) for name in ("claim", "article-html"))
    if claim is None and markup is None:
        raise MemhtmlError(
            "ERR_MISSING_ARGUMENT",
            f"{call.name} needs --claim or --article-html",
            suggestions=tuple(
                suggest.call(command, suggest.flag(command, name)) for name in command.one_of
            ),
        )
    beside = [f"--{name}" for name in ("claim", "body") if stated(call, name) is not None]
    if markup is not None and beside:
        raise MemhtmlError("ERR_INVALID_FLAG", f"--article-html excludes {' and '.join(beside)}")
    if call.name == "write":
        _check_numbers(call)


def _check_numbers(call: Call) -> None:
    importance, confidence = call.flags["importance"], call.text("confidence")
    if isinstance(importance, int) and not 1 <= importance <= LARGEST_IMPORTANCE:
        raise MemhtmlError(
            "ERR_INVALID_FLAG", f"--importance is {importance}; it must be from 1 to 10"
        )
    if confidence is not None and not show.is_share(confidence):
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"--confidence is {show.word(confidence)}; it must be a decimal from 0 to 1",
        )


def stated(call: Call, flag: str) -> str | None:
    """The text of a flag, of a repeatable one all of it; None when it is blank or was not given."""
    from memhtml_format.text import is_blank

    value = call.flags[flag]
    text = "".join(call.texts(flag)) if isinstance(value, list) else call.text(flag)
    return None if text is None or is_blank(text) else text


def draft_of(call: Call, memory_type: str) -> Draft:
    """The record that the flags of `write`, `correct` and `task add` state."""
    from memhtml_format.render import Draft

    flags = call.flags
    importance = flags.get("importance")
    confidence = flags.get("confidence")
    task = call.name == "task add"
    title = call.text("title") or ""
    return Draft(
        title=title,
        memory_type=memory_type,
        claim=stated(call, "claim") or (title if task else None),
        paragraphs=tuple(call.texts("body")),
        article_html=None if task else stated(call, "article-html"),
        path=call.text("path") if "path" in flags else None,
        strict_path=bool(flags.get("strict-path")),
        workspace=stated(call, "workspace") if "workspace" in flags else None,
        status=call.text("status") if task else None,
        due=stated(call, "due") if task else None,
        tags=tuple(call.texts("tag")) if "tag" in flags else (),
        entities=tuple(call.texts("entity")) if "entity" in flags else (),
        importance=importance if isinstance(importance, int) else None,
        confidence=float(confidence) if isinstance(confidence, str) else None,
        session_id=stated(call, "session-id"),
        prompt_id=stated(call, "prompt-id"),
        turn_uuid=stated(call, "turn-uuid"),
    )
