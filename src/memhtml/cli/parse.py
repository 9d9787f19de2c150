"""From argument words to a `Call`, in the order of checks of spec `cli` §3.3, steps 1 to 7.

Nothing here opens a store. The one file it may read is the policy, for a door that may be closed.
"""

from __future__ import annotations

from memhtml import config
from memhtml.cli import checks, nearest, registry, show, suggest
from memhtml.cli.call import Call
from memhtml.errors import MemhtmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

STRAY_WORDS = ("true", "false", "yes", "no", "0", "1")
EMPTY_CALL = "manifest"
VERSION = "version"
JSON = "json"


class Given:
    """One flag as written. `value` is None when a value was due and absent, a bool when bare.

    `stray` is a word after a bare boolean that looks as if it was meant as its value.
    """

    __slots__ = ("name", "stray", "value", "written")

    def __init__(
        self, name: str, value: str | bool | None, written: str, stray: str | None = None
    ) -> None:
        self.name = name
        self.value = value
        self.written = written
        self.stray = stray


class Scan:
    """The words of a call told apart, before any is judged."""

    __slots__ = ("flags", "words")

    def __init__(self, words: list[str], flags: list[Given]) -> None:
        self.words = words
        self.flags = flags

    def switch(self, name: str) -> bool:
        """The last usable value of a boolean flag; a bad one is left to the checks."""
        state = False
        for given in self.flags:
            if given.name == name:
                value = checks.truth(given.value)
                state = state if value is None else value
        return state

    def text(self, name: str) -> str:
        """The last value of a string flag, `""` when there is none."""
        values = [each.value for each in self.flags if each.name == name]
        last = values[-1] if values else None
        return last if isinstance(last, str) else ""


def scan(argv: Sequence[str]) -> Scan:
    """Tell flags from positionals (spec `cli` §3.2). Never fails."""
    types = registry.flag_types()
    words: list[str] = []
    flags: list[Given] = []
    index = 0
    while index < len(argv):
        token = argv[index]
        following = argv[index + 1] if index + 1 < len(argv) else None
        index += 1
        if token == "--":
            words.extend(argv[index:])
            break
        if token == "-h":
            flags.append(Given("help", True, token))
        elif token == "-" or not token.startswith("-"):
            words.append(token)
        elif not token.startswith("--") or "=" in token:
            name, equals, value = token.partition("=")
            known = name.startswith("--") and equals
            flags.append(Given(name[2:] if known else name, value if known else True, token))
        else:
            given = _bare(token, following, types)
            flags.append(given)
            index += given.stray is not None or isinstance(given.value, str)
    return Scan(words, flags)


def _bare(token: str, following: str | None, types: dict[str, str]) -> Given:
    """A `--name` without `=`: a switch, or a flag whose value is the next token."""
    name = token[2:]
    kind = types.get(name)
    negated = kind is None and name.startswith("no-") and types.get(name[3:]) == "boolean"
    if kind == "boolean" or negated:
        stray = following if following and following.lower() in STRAY_WORDS else None
        return Given(name[3:] if negated else name, not negated, token, stray)
    if kind is None:
        return Given(name, True, token)
    if following is None or following.startswith("--"):
        return Given(name, None, token)
    return Given(name, following, token)


def command_of(scanned: Scan) -> tuple[registry.Command, list[str]]:
    """The command called and its positionals; steps 1 to 3 of the order of checks.

    Raises `MemhtmlError`: `ERR_SESSION_BOUND` for a closed door, `ERR_UNKNOWN_COMMAND`.
    """
    words = scanned.words
    if scanned.switch("help"):
        rest = words[1:] if words[:1] == ["help"] else words
        return registry.BY_NAME["help"], rest
    if not words:
        return registry.BY_NAME[EMPTY_CALL], []
    door = _door(words)
    if door is not None:
        # Costs a policy read, which only these four names pay.
        from memhtml.cli import doors

        doors.refuse_if_closed(door, scanned.text("repo"))
    command, count = registry.find(words)
    if command is not None:
        return command, words[count:]
    raise unknown_command(words, "")


def _door(words: list[str]) -> str | None:
    pair = " ".join(words[:2])
    if pair in registry.DOORS:
        return pair
    return words[0] if words[0] in registry.DOORS else None


def unknown_command(words: list[str], before: str) -> MemhtmlError:
    """`ERR_UNKNOWN_COMMAND` with near names; `before` goes between `memhtml` and the name."""
    typed = " ".join(words)
    if before:
        group = [each.name for each in registry.COMMANDS if each.name.startswith(f"{typed} ")]
        suggestions = [f"memhtml {before} {name}" for name in group or _near(words)]
    else:
        # What follows a slip in a name is mostly arguments, which are near nothing.
        suggestions = (
            (_same_word(typed) or _near_calls(words))
            or (_near_calls(words[:2]) or _same_word(words[0]))
            or _near_calls(words[:1])
        )
    return MemhtmlError(
        "ERR_UNKNOWN_COMMAND",
        f"there is no command {show.word(typed)}",
        suggestions=tuple(suggestions) or ("memhtml help",),
    )


def _near(words: list[str]) -> list[str]:
    """Names near all that was typed (spec `cli` §3.4)."""
    return nearest.matches(" ".join(words), [command.name for command in registry.COMMANDS])


def _near_calls(words: list[str]) -> list[str]:
    return [suggest.call(registry.BY_NAME[name]) for name in _near(words)]


def _same_word(typed: str) -> list[str]:
    """Help with the two-word commands that have exactly this as one of their words."""
    names = [each.name for each in registry.COMMANDS if " " in each.name]
    found = [name for name in names if typed.lower() in name.split(" ")]
    return [f"memhtml help {name}" for name in found]


def call_of(scanned: Scan, command: registry.Command, args: list[str], terminal: bool) -> Call:
    """Check flags and positionals against the table and build the call; steps 4 to 7.

    Raises `MemhtmlError` with a usage code. A help call is never refused.
    """
    repo = scanned.text("repo")
    if command.name == "help":
        flags: dict[str, object] = {JSON: scanned.switch(JSON)}
        return Call(command.name, args, flags, repo=repo, terminal=terminal)
    known = {flag.name: flag for flag in (*registry.GLOBAL_FLAGS, *command.flags)}
    _refuse_stray(scanned, command)
    _refuse_unknown(scanned, command, known)
    values: dict[str, object] = {
        flag.name: [] if flag.repeatable else flag.default for flag in command.flags
    }
    seen: set[str] = set()
    for given in _kept(scanned, known):
        flag = known[given.name]
        value = checks.value_of(flag, given.value, command)
        seen.add(flag.name)
        if flag.repeatable:
            values[flag.name] = [*_listed(values[flag.name]), value]
        elif flag.name in values:
            values[flag.name] = value
    _refuse_bad_variable(command, seen)
    _refuse_missing(command, args, seen)
    _refuse_surplus(command, args)
    call = Call(command.name, args, values, frozenset(seen), repo, terminal)
    checks.between_flags(call)
    return call


def _kept(scanned: Scan, known: dict[str, registry.Flag]) -> list[Given]:
    """What counts: every value of a repeatable flag but the empty ones, the last of any other."""
    last = {given.name: given for given in scanned.flags}
    return [
        given
        for given in scanned.flags
        if given.name in known
        and (given.value != "" if known[given.name].repeatable else last[given.name] is given)
    ]


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _refuse_stray(scanned: Scan, command: registry.Command) -> None:
    for given in scanned.flags:
        if given.stray is None:
            continue
        wanted = checks.truth(given.stray) is (given.value is True)
        spellings = (
            f"--{given.name}={'true' if wanted else 'false'}",
            f"--{'' if wanted else 'no-'}{given.name}",
        )
        owner = _owner(command, given.name)
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            f"{given.written} takes no separate value, so {given.stray!r} after it means nothing; "
            f"write {spellings[0]} or {spellings[1]}",
            suggestions=tuple(suggest.call(owner, spelling) for spelling in spellings),
        )


def _owner(command: registry.Command, name: str) -> registry.Command:
    """The command to show a flag on: this one when it has the flag, else the first that has."""
    if any(flag.name == name for flag in (*registry.GLOBAL_FLAGS, *command.flags)):
        return command
    return registry.takers(name)[0]


def _refuse_unknown(
    scanned: Scan, command: registry.Command, known: dict[str, registry.Flag]
) -> None:
    for given in scanned.flags:
        if given.name in known:
            continue
        if given.name == VERSION and given.value is True and not scanned.words:
            continue
        others = registry.takers(given.name)
        written = show.shortened(given.written)
        if others:
            reason = f"{command.name} has no flag {written}; other commands have it"
            flags = [(each, suggest.flag(each, given.name)) for each in others]
        else:
            reason = f"{command.name} has no flag {written}"
            near = nearest.matches(given.name.removeprefix("--"), list(known))
            flags = [(command, suggest.flag(command, name)) for name in near]
        raise MemhtmlError(
            "ERR_INVALID_FLAG",
            reason,
            suggestions=tuple(suggest.call(owner, flag) for owner, flag in flags),
        )


def _refuse_bad_variable(command: registry.Command, seen: set[str]) -> None:
    """A `MEMHTML_SESSION` that would be used must be a session id."""
    if any(flag.variable and flag.name not in seen for flag in command.flags):
        config.bound_session()


def _refuse_missing(command: registry.Command, args: list[str], seen: set[str]) -> None:
    missing = [f"<{arg.name}>" for arg in command.args[len(args) :] if arg.required]
    for flag in command.flags:
        if flag.name in seen:
            continue
        if flag.required:
            missing.append(f"--{flag.name}")
        elif flag.variable and config.session_variable() is None:
            missing.append(f"--{flag.name} (or the variable {flag.variable})")
    if missing:
        raise MemhtmlError(
            "ERR_MISSING_ARGUMENT",
            f"{command.name} needs {' and '.join(missing)}",
            suggestions=(suggest.call(command),),
        )


def _refuse_surplus(command: registry.Command, args: list[str]) -> None:
    repeats = bool(command.args) and command.args[-1].repeatable
    room = len(args) if repeats else len(command.args)
    for index, value in enumerate(args):
        allowed = command.args[min(index, len(command.args) - 1)].values if command.args else ()
        fits = value in allowed if allowed else value != "-"
        if index < room and fits:
            continue
        raise MemhtmlError(
            "ERR_UNEXPECTED_ARGUMENT",
            f"{command.name} does not take {show.word(value)}",
            suggestions=_for_surplus(command, args, value),
        )


def _for_surplus(command: registry.Command, args: list[str], value: str) -> tuple[str, ...]:
    """A stray word after a query belongs to it; with `--file` it was most likely a file."""
    if [arg.name for arg in command.args] == ["query"]:
        return (f"{registry.NAME} {command.name} {suggest.quoted(' '.join(args))}",)
    if value == "-" or not any(flag.name == "file" for flag in command.flags):
        return ()
    return (suggest.call(command, f"--file {suggest.quoted(value)}"),)
