"""What one flag's value may be, and the rules between the flags of one command.

Steps 4 and 7 of spec `cli` §3.3. Pure but for the rules of variables, which `config` owns.
"""

from __future__ import annotations

from memhtml import config
from memhtml.cli import registry, show, suggest
from memhtml.errors import MemhtmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memhtml.cli.call import Call

LONGEST_INT = 18
LONGEST_TIMEOUT_MS = 600_000
# The last instant whose year has four digits.
LATEST_NOW_MS = 253_402_300_799_999
SANDBOXED = ("exec", "session exec", "session prune", "replay")
# What reads or writes vectors, or brings the index forward after its own commit.
EMBEDDING = (
    "write",
    "apply",
    "correct",
    "link",
    "archive",
    "task add",
    "task status",
    "session put",
    "search",
    "recall",
    "index rebuild",
    "index update",
    "index embed",
    "index status",
    "doctor",
    "publish",
    "state export",
    "head search",
    "head embed",
)
FLOORED = ("search", "recall", "index status", "doctor")
TRUE_WORDS = ("true", "1", "yes")
FALSE_WORDS = ("false", "0", "no")


def truth(value: str | bool | None) -> bool | None:
    """What a boolean flag's value says, None when it says nothing."""
    if value is None or isinstance(value, bool):
        return value
    word = value.lower()
    if word in TRUE_WORDS:
        return True
    return False if word in FALSE_WORDS else None


def value_of(
    flag: registry.Flag, raw: str | bool | None, command: registry.Command
) -> str | int | bool:
    """The checked value of a flag as written. Raises `MemhtmlError` `ERR_INVALID_FLAG`."""
    if flag.type == "boolean":
        return _boolean(flag, raw, command)
    if not isinstance(raw, str):
        raise _refused(f"--{flag.name} needs a value", command, flag)
    if flag.type == "int":
        return _integer(flag, raw, command)
    if flag.values and raw not in flag.values:
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"--{flag.name} is {show.word(raw)}; allowed are {', '.join(flag.values)}",
            suggestions=tuple(
                suggest.call(command, f"--{flag.name} {value}") for value in flag.values
            ),
        )
    if flag.check != "path" and not _is_unicode(raw):
        raise _refused(f"--{flag.name} is not UTF-8", command, flag)
    if flag.check == "session-id" and not config.valid_session_id(raw.strip()):
        raise _refused(
            f"--{flag.name} is no session id: {show.word(raw)}; an id is 1 to 128 of "
            "A-Z a-z 0-9 . _ - and starts with a letter or digit",
            command,
            flag,
        )
    if flag.check == "facet" and not _is_facet(raw):
        raise _refused(f"--{flag.name} is {show.word(raw)}; it must be name=value", command, flag)
    if flag.check == "as-of" and raw.strip() and not _is_instant(raw.strip()):
        raise _refused(
            f"--{flag.name} is {show.word(raw)}; it must be YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ",
            command,
            flag,
        )
    return raw


def _boolean(flag: registry.Flag, raw: str | bool | None, command: registry.Command) -> bool:
    value = truth(raw)
    if value is not None:
        return value
    raise MemhtmlError(
        "ERR_INVALID_FLAG",
        f"--{flag.name} is {show.word(str(raw))}; allowed are true, false, yes, no, 1, 0",
        suggestions=(
            suggest.call(command, f"--{flag.name}"),
            suggest.call(command, f"--no-{flag.name}"),
        ),
    )


def _integer(flag: registry.Flag, raw: str, command: registry.Command) -> int:
    digits = raw.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= LONGEST_INT):
        raise _refused(
            f"--{flag.name} is {show.word(raw)}; it must be a whole number", command, flag
        )
    number = int(raw)
    if flag.check == "not-negative" and number < 0:
        raise _refused(f"--{flag.name} is {number}; it must be 0 or more", command, flag)
    if flag.check == "timeout" and not 1 <= number <= LONGEST_TIMEOUT_MS:
        raise _refused(
            f"--{flag.name} is {number}; it must be from 1 to {LONGEST_TIMEOUT_MS} milliseconds",
            command,
            flag,
        )
    return number


def between_flags(call: Call) -> None:
    """The rules between flags of one command, and those of the variables it will read.

    Raises `MemhtmlError` `ERR_INVALID_FLAG`.
    """
    if call.name in ("exec", "session exec"):
        _one_source(call)
    if call.name == "session exec":
        _recording(call)
    if call.name in SANDBOXED:
        config.sandbox()
    if call.name in EMBEDDING:
        config.embedding()
    if call.name in FLOORED:
        config.coverage_floor()
    if call.name == "head search":
        config.embed_deadline_ms()
    if call.name == "head snapshot":
        _snapshot(call)
    _writer(call)
    if call.name == "eval discriminate":
        _gate(call)
    if call.name == "agents-doc" and not (call.text("out") or "").strip():
        raise MemhtmlError("ERR_INVALID_FLAG", "--out is blank; it names the file to write")


def _writer(call: Call) -> None:
    """The rules of the commands that write outside a session (spec `cli` §10)."""
    if call.name in ("write", "correct"):
        from memhtml.cli import prose  # Which two commands use.

        prose.check(call)
    if call.name == "apply" and call.args and call.text("file") not in (None, "-"):
        raise MemhtmlError(
            "ERR_INVALID_FLAG", "the lines come from one place, not from --file and standard input"
        )
    if call.name == "archive" and not (call.text("reason") or "").strip():
        raise MemhtmlError("ERR_INVALID_FLAG", "--reason is blank; it says why")


def _one_source(call: Call) -> None:
    """One source for the script (spec `harvest` §1)."""
    sources = [f"--{name}" for name in ("script", "file") if name in call.given]
    if call.args:
        sources.append("the positional -")
    if len(sources) > 1:
        raise MemhtmlError(
            "ERR_INVALID_FLAG", f"a script comes from one place, not from {' and '.join(sources)}"
        )


def _recording(call: Call) -> None:
    """A folder for what is recorded (spec `cli` §10 `replay`)."""
    folder = call.text("record")
    if folder is not None and not folder.strip():
        raise MemhtmlError("ERR_INVALID_FLAG", "--record is blank; it names a folder, new or empty")
    if call.texts("record-path") and folder is None:
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            "--record-path says what --record <dir> keeps, and there is no --record",
        )


def _snapshot(call: Call) -> None:
    """Write or read, one of the two."""
    if call.switch("write") and call.switch("read"):
        raise MemhtmlError("ERR_INVALID_FLAG", "--write and --read exclude each other")
    if not (call.switch("write") or call.switch("read")):
        ways = tuple(f"memhtml {call.name} --{name}" for name in ("write", "read"))
        raise MemhtmlError(
            "ERR_MISSING_ARGUMENT", f"{call.name} needs --write or --read", suggestions=ways
        )


def _gate(call: Call) -> None:
    """The ranges of the gate's numbers (spec `cli` §13)."""
    for name in ("size", "probes"):
        if call.number(name) < 1:
            raise MemhtmlError(
                "ERR_INVALID_FLAG", f"--{name} is {call.number(name)}; it must be 1 or more"
            )
    if "now" in call.given and not 0 <= call.number("now") <= LATEST_NOW_MS:
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"--now is {call.number('now')}; it must be from 0 to {LATEST_NOW_MS} milliseconds",
        )
    floor = call.text("mrr-floor") or ""
    if not show.is_share(floor):
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"--mrr-floor is {show.word(floor)}; it must be a decimal from 0 to 1",
        )


def _is_facet(text: str) -> bool:
    name, equals, _value = text.partition("=")
    return bool(equals) and bool(name.strip())


def _is_instant(text: str) -> bool:
    from memhtml_format.instants import is_instant

    return is_instant(text)


def _is_unicode(text: str) -> bool:
    """False for an argument whose bytes were not UTF-8; those arrive as lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _refused(message: str, command: registry.Command, flag: registry.Flag) -> MemhtmlError:
    return MemhtmlError(
        "ERR_INVALID_FLAG",
        message,
        suggestions=(suggest.call(command, f"--{flag.name} {flag.example}"),),
    )
