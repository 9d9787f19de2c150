"""Rules about the sources that no linter knows: who reads the environment, who prints, who exits.

And that no file of the repository names a path of the machine it was written on.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
ROOTS = ("src", "sandbox", "harvest")
READS_ENVIRONMENT = {
    "src/memhtml/config.py",
}
PRINTS = {
    # The edge, and on standard error a progress bar and the log lines.
    "src/memhtml/cli/main.py",
    "src/memhtml/cli/progress.py",
    "src/memhtml/log.py",
    # Development entry points of their own: `python -m …`.
    "harvest/memhtml_harvest/replay.py",
    "sandbox/memhtml_sandbox/probe.py",
}
EXITS = {
    "src/memhtml/__main__.py",
    "harvest/memhtml_harvest/replay.py",
    "sandbox/memhtml_sandbox/probe.py",
}
EVERYWHERE = {"/", "/home", "/opt", "/srv", "/tmp", "/usr/src", "/var/tmp"}
ENVIRONMENT_CALLS = {"getenv", "getenvb", "putenv", "unsetenv", "expanduser", "expandvars"}


def sources() -> list[Path]:
    return sorted(path for root in ROOTS for path in (REPOSITORY / root).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def attributes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every `name.attribute` in a module, and `("", name)` for a bare name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            value = node.value
            yield (value.id if isinstance(value, ast.Name) else "?", node.attr)
        elif isinstance(node, ast.Name):
            yield ("", node.id)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield (node.module or "", alias.name)


def test_only_the_configuration_reads_the_environment() -> None:
    readers = {
        name_of(path)
        for path in sources()
        for owner, name in attributes(tree_of(path))
        if (owner == "os" and name in {"environ", "environb"})
        or (owner in {"os", "os.path", "path", "?"} and name in ENVIRONMENT_CALLS)
        or (owner == "Path" and name == "home")
    }
    assert readers == READS_ENVIRONMENT


def test_only_the_edge_prints() -> None:
    printers = {
        name_of(path)
        for path in sources()
        for owner, name in attributes(tree_of(path))
        if (owner, name) == ("", "print")
        or (owner == "sys" and name in {"stdout", "stderr", "__stdout__", "__stderr__"})
    }
    assert printers - PRINTS == set()


def test_only_entry_points_exit() -> None:
    leavers = {
        name_of(path)
        for path in sources()
        for owner, name in attributes(tree_of(path))
        if (owner, name) in {("sys", "exit"), ("", "exit"), ("", "quit"), ("", "SystemExit")}
    }
    assert leavers - EXITS == set()


def test_every_module_says_what_it_owns() -> None:
    silent = [name_of(path) for path in sources() if not ast.get_docstring(tree_of(path))]
    assert silent == []


def test_modules_and_functions_stay_short() -> None:
    long: list[str] = []
    for path in sources():
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > 500:
            long.append(f"{name_of(path)}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > 60:
                    long.append(f"{name_of(path)}: {node.name} has {lines} lines")
    assert long == []


def test_package_openers_import_nothing() -> None:
    for path in sources():
        if path.name == "__init__.py":
            imports = [
                node
                for node in ast.walk(tree_of(path))
                if isinstance(node, (ast.Import, ast.ImportFrom))
                and getattr(node, "module", "") != "__future__"
            ]
            assert imports == [], name_of(path)


def tracked_files() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "-C", str(REPOSITORY), "ls-files", "-z"], capture_output=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout")
    files = [REPOSITORY / os.fsdecode(name) for name in listed.split(b"\0") if name]
    return [path for path in files if path.is_file() and not path.is_symlink()]


def test_no_file_names_a_path_of_this_machine() -> None:
    # A folder that every machine has says nothing, so a checkout right in it stands for itself.
    around = REPOSITORY if str(REPOSITORY.parent) in EVERYWHERE else REPOSITORY.parent
    own = re.compile(
        rf"{re.escape(str(around))}/|/root/\.|{re.escape('/home/')}(?!user\b|you\b)\w".encode(),
    )
    named = [
        f"{path.relative_to(REPOSITORY)}: {found.group().decode()}"
        for path in tracked_files()
        if (found := own.search(path.read_bytes()))
    ]
    assert named == []
