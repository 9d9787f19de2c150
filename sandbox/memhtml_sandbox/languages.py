"""The languages a script can be in: its file's name and the command that runs it."""

from __future__ import annotations

from typing import NamedTuple

from memhtml_sandbox.limits import Limits

WORKSPACE = "/workspace"
HELPER = "/workspace/lib/corpus.mjs"


class Language(NamedTuple):
    """How one language is run inside; `needs_node` is what the host must offer for it."""

    name: str
    script: str
    needs_node: bool


BASH = Language("bash", "/workspace/script.sh", needs_node=False)
JS = Language("js", "/workspace/script.mjs", needs_node=True)

LANGUAGES = {language.name: language for language in (BASH, JS)}


def find(name: str) -> Language:
    """The language of that name; raises `ValueError` for another one."""
    language = LANGUAGES.get(name)
    if language is None:
        raise ValueError(f"lang must be one of {', '.join(LANGUAGES)}, not {name!r}")
    return language


def command(language: Language, limits: Limits) -> list[str]:
    """The command line inside the sandbox (spec `sandbox` §5).

    The script is a file: on stdin a `cat` in it would eat the rest of it, and as an argument it
    could not exceed 128 KiB.
    """
    if language.needs_node:
        return ["node", f"--max-old-space-size={limits.heap_mib}", language.script]
    return ["bash", "--noprofile", "--norc", language.script]
