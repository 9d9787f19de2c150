"""The command folder: links to the host's commands that a script may call by name.

It is mounted over `/usr/bin` inside, so `curl` or `git` are not found and `awk`, a link through
`/etc` on the host, is (spec `sandbox` §5.2). Hiding is convenience; the fence is elsewhere.
"""

from __future__ import annotations

import json
import os
import stat
from typing import NamedTuple

from memhtml_sandbox import folders
from memhtml_sandbox.errors import SandboxFailed

# The core utilities first, then the rest of spec `sandbox` §5.2; `setsid` stands beside `nohup`.
_NAMES = """
[ arch b2sum base32 base64 basename basenc cat chcon chgrp chmod chown cksum comm cp csplit cut
date dd df dir dircolors dirname du echo env expand expr factor false fmt fold groups head
hostid id install join link ln logname ls md5sum mkdir mkfifo mknod mktemp mv nice nl nohup
nproc numfmt od paste pathchk pinky pr printenv printf ptx pwd readlink realpath rm rmdir
runcon seq sha1sum sha224sum sha256sum sha384sum sha512sum shred shuf sleep sort split stat
stdbuf stty sum sync tac tail tee test timeout touch tr true truncate tsort tty uname unexpand
uniq unlink users vdir wc who whoami yes
bash sh grep egrep fgrep sed awk gawk mawk find xargs diff diff3 cmp tar gzip gunzip zcat file
iconv jq perl python3 node xxd hexdump strings setsid
"""
ALLOWED = tuple(_NAMES.split())

SEARCHED = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
_WATCHED = (*SEARCHED, "/etc/alternatives")
_HIDDEN = {"/usr/bin": "/.bin", "/bin": "/.bin2"}
_FOREIGN = "/.bin.d"


class Tools(NamedTuple):
    """The folder on the host, and the commands outside `/usr/bin` as (name, host path): each is
    bound read-only to `/.bin.d/<name>`, where the folder's link leads.
    """

    folder: str
    foreign: tuple[tuple[str, str], ...]


def command_folder(root: str, *, node: str | None) -> Tools:
    """The command folder under the cache's root, built when the host has changed.

    `node` is the path of the node that `probe` chose, None to leave it out. Raises
    `SandboxFailed("exec.seed", …)` when the folder cannot be written.

    The names are resolved again only when a searched folder or `/etc/alternatives` has another
    modification time, or node another path, size or time. A link elsewhere that leads to another
    command is noticed when one of those changes; until then the old link simply stays.
    """
    folders.require_plain(root, "tools")
    key = _freshness(node)
    found = _recall(root, key, node)
    if found is not None:
        return found
    try:
        return _build(root, key, _resolve(node))
    except OSError as error:
        raise SandboxFailed(
            "exec.seed", f"the command folder in {root} cannot be written: {error}"
        ) from error


def _freshness(node: str | None) -> str:
    parts = [" ".join(ALLOWED)]
    for folder in _WATCHED:
        try:
            parts.append(f"{folder} {os.stat(folder).st_mtime_ns}")
        except OSError:
            parts.append(folder)
    if node is not None:
        try:
            found = os.stat(node)
            parts.append(f"{node} {found.st_mtime_ns} {found.st_size}")
        except OSError:
            parts.append(node)
    return "\n".join(parts)


def _recall(root: str, key: str, node: str | None) -> Tools | None:
    note = folders.read_note(f"{root}/tools/current")
    try:
        digest, foreign = note["hash"], note["foreign"]
        if note["key"] != key or not _is_digest(digest):
            return None
        folder = f"{root}/tools/{digest}"
        if not _is_own_folder(folder):
            return None
        # Each is bound into the sandbox, so a path must be where its name leads today.
        pairs = tuple((str(name), str(path)) for name, path in foreign)
        if any(_locate(name, node) != path for name, path in pairs):
            return None
        return Tools(folder, pairs)
    except (ValueError, KeyError, TypeError, OSError):
        return None


def _is_digest(text: object) -> bool:
    return isinstance(text, str) and len(text) == 16 and not set(text) - set("0123456789abcdef")


def _resolve(node: str | None) -> dict[str, tuple[str, str]]:
    """Each name the host has, with the link's target inside and the command's path on the host."""
    found: dict[str, tuple[str, str]] = {}
    for name in ALLOWED:
        path = _locate(name, node)
        if path is not None:
            found[name] = (_inside(name, path), path)
    return found


def _locate(name: str, node: str | None) -> str | None:
    """The host path of a command; None for a name that is not allowed."""
    if name not in ALLOWED:
        return None
    return _node(node) if name == "node" else _find(name)


def _inside(name: str, path: str) -> str:
    folder, _, resolved = path.rpartition("/")
    if folder in _HIDDEN and not os.path.islink(folder):
        return f"{_HIDDEN[folder]}/{resolved}"
    return f"{_FOREIGN}/{name}"


def _node(node: str | None) -> str | None:
    if node is None:
        return None
    path = os.path.realpath(node)
    return path if _is_command(path) else None


def _find(name: str) -> str | None:
    for folder in SEARCHED:
        path = os.path.realpath(f"{folder}/{name}")
        if _is_command(path):
            return path
    return None


def _is_command(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def _build(root: str, key: str, commands: dict[str, tuple[str, str]]) -> Tools:
    # 1 ms to import, and only when the host has changed.
    import hashlib

    lines = sorted(f"{name}\t{inside}" for name, (inside, _) in commands.items())
    digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()[:16]
    folder = f"{root}/tools/{digest}"
    os.makedirs(f"{root}/tools", 0o755, exist_ok=True)
    if not _holds(folder, lines):
        _write_folder(root, folder, lines)
    foreign = [
        (name, path)
        for name, (inside, path) in sorted(commands.items())
        if inside.startswith(f"{_FOREIGN}/")
    ]
    aside = _aside(root)
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, json.dumps({"key": key, "hash": digest, "foreign": foreign}).encode())
    finally:
        os.close(fd)
    os.rename(aside, f"{root}/tools/current")
    return Tools(folder, tuple(foreign))


def _holds(folder: str, lines: list[str]) -> bool:
    """Whether the folder is ours and as it is named; asked only when the host has changed."""
    try:
        if not _is_own_folder(folder):
            return False
        found = [f"{name}\t{os.readlink(f'{folder}/{name}')}" for name in os.listdir(folder)]
    except OSError:
        return False
    return sorted(found) == lines


def _is_own_folder(path: str) -> bool:
    found = os.lstat(path)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _write_folder(root: str, folder: str, lines: list[str]) -> None:
    aside = _aside(root)
    os.mkdir(aside, 0o755)
    # Whatever the umask is: the script reads it as another user.
    os.chmod(aside, 0o755)
    for line in lines:
        name, inside = line.split("\t")
        os.symlink(inside, f"{aside}/{name}")
    with folders.opened(root) as top, folders.opened(root, "tools") as tools:
        try:
            if os.path.lexists(folder) and not _holds(folder, lines):
                # Something else took its name, and of no run that has to go on.
                folders.remove(tools, os.path.basename(folder))
            os.rename(aside, folder)
        except OSError:
            folders.remove(top, os.path.basename(aside))
            if not _holds(folder, lines):
                raise


def _aside(root: str) -> str:
    return f"{root}/tmp-{os.getpid()}-{os.urandom(6).hex()}"
