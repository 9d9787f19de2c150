"""The table as the data of `cli.manifest` and `cli.help` (spec `cli` §10)."""

from __future__ import annotations

from memhtml import __version__
from memhtml.cli import guide, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def manifest() -> dict[str, object]:
    """The payload of `cli.manifest`."""
    return {
        "name": registry.NAME,
        "version": __version__,
        "summary": registry.SUMMARY,
        "apiVersion": registry.API_VERSION,
        "guide": [{"topic": topic, "body": body} for topic, body in guide.TOPICS],
        "globalFlags": _flags(registry.GLOBAL_FLAGS),
        "errorCodes": list(registry.ERROR_CODES),
        "config": [
            {"name": name, "description": description, "fallback": fallback}
            for name, description, fallback in guide.VARIABLES
        ],
        "responseTypes": list(registry.RESPONSE_TYPES),
        "commands": [entry(command) for command in registry.COMMANDS],
    }


def entry(command: registry.Command) -> dict[str, object]:
    """One command as the manifest lists it."""
    return {
        "name": command.name,
        "summary": command.summary,
        "args": [_arg(arg) for arg in command.args],
        "flags": _flags(command.flags),
        "responseTypes": list(command.types),
        "examples": list(command.examples),
        "supportsJson": True,
        "supportsDense": True,
    }


def entry_help(command: registry.Command) -> dict[str, object]:
    """The payload of `cli.help`: the entry, and what stands around it."""
    return {
        **entry(command),
        "usage": usage(command),
        "globalFlags": _flags(registry.GLOBAL_FLAGS),
        "usageErrorCodes": list(registry.USAGE_ERROR_CODES),
        "seeAlso": see_also(command),
    }


def usage(command: registry.Command) -> str:
    """The usage line: `<x>` is required, `[x]` is not, `...` repeats."""
    parts = [registry.NAME, command.name]
    for arg in command.args:
        shown = f"<{arg.name}>" if arg.required else f"[{arg.name}]"
        parts.append(f"{shown}..." if arg.repeatable else shown)
    return " ".join([*parts, "[flags]"])


def see_also(command: registry.Command) -> list[str]:
    """Its group's other commands and those that answer with a type it has, in table order."""
    first, _, second = command.name.partition(" ")
    return [
        other.name
        for other in registry.COMMANDS
        if other is not command
        and (
            (second and other.name.startswith(f"{first} ")) or set(other.types) & set(command.types)
        )
    ]


def _arg(arg: registry.Arg) -> dict[str, object]:
    shown: dict[str, object] = {
        "name": arg.name,
        "description": arg.description,
        "required": arg.required,
    }
    if arg.repeatable:
        shown["repeatable"] = True
    return shown


def _flags(flags: Sequence[registry.Flag]) -> list[dict[str, object]]:
    return [_flag(flag) for flag in flags]


def _flag(flag: registry.Flag) -> dict[str, object]:
    """A flag; the keys after `description` stand only where they apply."""
    shown: dict[str, object] = {
        "name": flag.name,
        "type": flag.type,
        "description": flag.description,
    }
    if flag.values:
        shown["values"] = list(flag.values)
    if flag.required:
        shown["required"] = True
    if flag.repeatable:
        shown["repeatable"] = True
    if flag.default is not None:
        shown["default"] = flag.default
    return shown
