"""The command folder: links to the host's commands that a script may call by name.

It is mounted over `/usr/bin` inside, so `curl` or `git` are not found and `awk`, a link through
`/etc` on the host, is (spec `sandbox` §5.2). Hiding is convenience; the fence is elsewhere.
"""

from __future__ import annotations

import json
import os
import stat
from typing import NamedTuple

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
    key = _freshness(node)
    found = _recall(root, key)
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


def _recall(root: str, key: str) -> Tools | None:
    try:
        fd = os.open(f"{root}/tools/current", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        value = json.loads(os.read(fd, 1 << 16))
        folder, foreign = f"{root}/tools/{value['hash']}", value["foreign"]
        if value["key"] != key or not stat.S_ISDIR(os.lstat(folder).st_mode):
            return None
        return Tools(folder, tuple((str(name), str(path)) for name, path in foreign))
    except (ValueError, KeyError, TypeError, OSError):
        return None
    finally:
        os.close(fd)


def _resolve(node: str | None) -> dict[str, tuple[str, str]]:
    """Each name the host has, with the link's target inside and the command's path on the host."""
    hidden = {folder: inside for folder, inside in _HIDDEN.items() if not os.path.islink(folder)}
    found: dict[str, tuple[str, str]] = {}
    for name in ALLOWED:
        path = _node(node) if name == "node" else _find(name)
        if path is None:
            continue
        folder, _, resolved = path.rpartition("/")
        inside = f"{hidden[folder]}/{resolved}" if folder in hidden else f"{_FOREIGN}/{name}"
        found[name] = (inside, path)
    return found


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
    if not os.path.isdir(folder):
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


def _write_folder(root: str, folder: str, lines: list[str]) -> None:
    aside = _aside(root)
    os.mkdir(aside, 0o755)
    # Whatever the umask is: the script reads it as another user.
    os.chmod(aside, 0o755)
    for line in lines:
        name, inside = line.split("\t")
        os.symlink(inside, f"{aside}/{name}")
    try:
        os.rename(aside, folder)
    except OSError:
        import shutil  # 8 ms, and only for the loser of a race.

        shutil.rmtree(aside, ignore_errors=True)
        if not os.path.isdir(folder):
            raise


def _aside(root: str) -> str:
    return f"{root}/tmp-{os.getpid()}-{os.urandom(6).hex()}"
