"""The table as Markdown: help on a terminal, and the whole document that `docs/reference.md` is.

The same bytes every time; no colour codes (spec `cli` §3.7).
"""

from __future__ import annotations

from memhtml.cli import guide, manifest, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def document() -> str:
    """Guide, envelope, exit statuses, every command, type, code and variable."""
    blocks = [
        f"# {registry.NAME}",
        registry.SUMMARY,
        "## Guide",
        *(block for topic, body in guide.TOPICS for block in (f"### {topic}", body)),
        "## Output",
        guide.OUTPUT,
        "## Exit statuses",
        _table(("status", "meaning"), ((f"`{code}`", text) for code, text in guide.EXITS)),
        "## Global flags",
        _flags(registry.GLOBAL_FLAGS),
        "## Commands",
        *(page(command, level=3) for command in registry.COMMANDS),
        "## Response types",
        _table(
            ("type", "says"), ((f"`{name}`", guide.TYPES[name]) for name in registry.RESPONSE_TYPES)
        ),
        "## Error codes",
        guide.CODES_NOTE,
        _table(
            ("code", "exit", "raised when"),
            ((f"`{code}`", *guide.CODES[code]) for code in registry.ERROR_CODES),
        ),
        "## Variables",
        _table(
            ("variable", "without it", "meaning"),
            (
                (f"`{name}`", f"`{fallback}`" if fallback else "–", description)
                for name, description, fallback in guide.VARIABLES
            ),
        ),
    ]
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def page(command: registry.Command, level: int = 1) -> str:
    """One command; a section with no content is left out."""
    sections = (
        ("Usage", _code([manifest.usage(command)], "text")),
        ("Arguments", _arguments(command.args)),
        ("Flags", _flags(command.flags)),
        ("Global flags", _flags(registry.GLOBAL_FLAGS) if level == 1 else ""),
        ("Response", ", ".join(f"`{name}`" for name in command.types)),
        ("Errors", _codes(registry.USAGE_ERROR_CODES) if level == 1 else ""),
        ("Examples", _code(command.examples)),
        ("See also", _codes(manifest.see_also(command))),
    )
    mark = "#" * level
    title = f"{mark} {registry.NAME} {command.name}"
    blocks = [title, command.summary]
    for heading, body in sections:
        if body:
            blocks += [f"{mark}# {heading}", body]
    return "\n\n".join(blocks) + "\n"


def _codes(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _code(lines: Sequence[str], language: str = "bash") -> str:
    if not lines:
        return ""
    return "\n".join([f"```{language}", *lines, "```"])


def _arguments(args: Sequence[registry.Arg]) -> str:
    return _table(
        ("argument", "required", "meaning"),
        (
            (
                f"`{arg.name}`",
                ("yes" if arg.required else "no") + (", repeatable" if arg.repeatable else ""),
                arg.description,
            )
            for arg in args
        ),
    )


def _flags(flags: Sequence[registry.Flag]) -> str:
    return _table(
        ("flag", "type", "meaning"),
        ((f"`--{flag.name}`", _kind(flag), f"{flag.description}{_extra(flag)}") for flag in flags),
    )


def _kind(flag: registry.Flag) -> str:
    words = [flag.type]
    if flag.required:
        words.append("required")
    if flag.repeatable:
        words.append("repeatable")
    return ", ".join(words)


def _extra(flag: registry.Flag) -> str:
    """The allowed values and the default, as further sentences."""
    said = ""
    if flag.values:
        said += f" One of {_codes(flag.values)}."
    if flag.default not in (None, "", False):
        shown = str(flag.default).lower() if isinstance(flag.default, bool) else flag.default
        said += f" Default `{shown}`."
    return said


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing without rows; a bar inside a cell is escaped."""
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    if not lines:
        return ""
    rule = " | ".join("---" for _ in head)
    return "\n".join([f"| {' | '.join(head)} |", f"| {rule} |", *lines])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
