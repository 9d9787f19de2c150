"""The bwrap argument list of a run, as data.

Pure: it asks the host nothing and starts nothing, so it can be tested without a sandbox. A
descriptor is named here by what it carries; `render` puts in the numbers of the process that
forks, which are not those of a caller behind a spawner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from memhtml_sandbox.languages import HELPER, WORKSPACE
from memhtml_sandbox.protocol import STAGE

MOUNT = "/mnt/memhtml"
HOME = "/home/user"
HIDDEN_BIN = "/.bin"
HIDDEN_BIN_2 = "/.bin2"
FOREIGN_BIN = "/.bin.d"

PASSWD = b"root:x:0:0:root:/:/usr/bin/false\nuser:x:1000:1000:user:/home/user:/usr/bin/bash\n"
GROUP = b"root:x:0:\nuser:x:1000:\n"

ENVIRONMENT = (
    ("PATH", "/usr/bin:/bin"),
    ("HOME", HOME),
    ("TMPDIR", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("MEMHTML_MOUNT", MOUNT),
)

SYSTEM_FOLDERS = ("bin", "sbin", "lib", "lib64")
STORES = ("/nix/store", "/gnu/store")

# Below `/usr`, but an administrator's own: settings with tokens in them, sources of the house.
PRIVATE_FOLDERS = ("/usr/local/etc", "/usr/etc", "/usr/src")

# A folder of the small root with nothing in it, for covering others.
EMPTY = "/empty"


# Starts a word that stands for a descriptor's number; no argument can hold a NUL.
_FD_MARK = "\0"


def descriptor(name: str) -> str:
    """The word that stands in an argument list for the number of the descriptor of that name."""
    return _FD_MARK + name


class Host(NamedTuple):
    """What the argument list must know of the host's folders (spec `sandbox` §5).

    `links` are the system folders that are symbolic links into `/usr`, `folders` the real ones,
    `stores` the package stores that exist, `covered` the folders below `/usr` that stay empty.
    """

    links: tuple[str, ...]
    folders: tuple[str, ...]
    stores: tuple[str, ...]
    covered: tuple[str, ...] = ()


class View(NamedTuple):
    """The tree under the mount: names below the stage, from bottom to top.

    `kind` is `overlay` (writable), `read-only`, or `copy` for the folder `u` as it is.
    """

    kind: Literal["overlay", "read-only", "copy", "copy-read-only"]
    lowers: tuple[str, ...]


def _namespaces() -> list[str]:
    return [
        *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
        "--unshare-cgroup-try",
        # Or a script could make its own user namespace and reach far more of the kernel.
        "--disable-userns",
        *("--uid", "1000", "--gid", "1000", "--hostname", "memhtml"),
        *("--cap-drop", "ALL"),
        "--die-with-parent",
        # Or a script could push input into the caller's terminal.
        "--new-session",
    ]


def _environment() -> list[str]:
    words = ["--clearenv"]
    for name, value in ENVIRONMENT:
        words += ["--setenv", name, value]
    return words


def _system(stage: str, host: Host, foreign: Sequence[str]) -> list[str]:
    tools = f"{stage}/t"
    words = ["--ro-bind", "/usr", "/usr"]
    # The real commands stay reachable for the links of the command folder that covers them.
    words += ["--ro-bind", "/usr/bin", HIDDEN_BIN, "--ro-bind", tools, "/usr/bin"]
    for name in SYSTEM_FOLDERS:
        if name in host.links:
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        elif name == "bin" and name in host.folders:
            words += ["--ro-bind", "/bin", HIDDEN_BIN_2, "--ro-bind", tools, "/bin"]
        elif name in host.folders:
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    for path in host.covered:
        words += ["--ro-bind", EMPTY, path]
    for store in host.stores:
        words += ["--ro-bind", store, store]
    for name in foreign:
        words += ["--ro-bind", f"{stage}/f/{name}", f"{FOREIGN_BIN}/{name}"]
    words += ["--dir", "/etc"]
    words += ["--ro-bind-data", descriptor("passwd"), "/etc/passwd"]
    words += ["--ro-bind-data", descriptor("group"), "/etc/group"]
    words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    return words


def _kernel_views() -> list[str]:
    return [
        *("--proc", "/proc"),
        # Under host uid 0 the sysctls would be writable, and bwrap skips its own cover there.
        *("--ro-bind", "/proc/sys", "/proc/sys"),
        # The reaper has the script's uid, so its memory could be written: it would report a false
        # exit code, or outlive its parent.
        *("--ro-bind", EMPTY, "/proc/1"),
        *("--dev", "/dev"),
    ]


def _scratch(stage: str) -> list[str]:
    # bwrap's own tmpfs has no cap on entries, and several of its mounts no size.
    return [
        *("--bind", f"{stage}/x/shm", "/dev/shm"),
        *("--bind", f"{stage}/x/tmp", "/tmp"),
        *("--bind", f"{stage}/x/home", HOME),
        *("--bind", f"{stage}/x/ws", WORKSPACE),
    ]


def _guest(script_path: str) -> list[str]:
    folder = HELPER.rpartition("/")[0]
    return [
        *("--file", descriptor("script"), script_path),
        *("--dir", folder),
        *("--file", descriptor("helper"), HELPER),
    ]


def _corpus(stage: str, view: View) -> list[str]:
    if view.kind == "copy":
        return ["--bind", f"{stage}/u", MOUNT]
    if view.kind == "copy-read-only":
        return ["--ro-bind", f"{stage}/u", MOUNT]
    # bwrap refuses a read-only overlay of one layer.
    if view.kind == "read-only" and len(view.lowers) == 1:
        return ["--ro-bind", f"{stage}/{view.lowers[0]}", MOUNT]
    words: list[str] = []
    for name in view.lowers:
        words += ["--overlay-src", f"{stage}/{name}"]
    if view.kind == "read-only":
        return [*words, "--ro-overlay", MOUNT]
    return [*words, "--overlay", f"{stage}/u", f"{stage}/w", MOUNT]


def arguments(
    host: Host, view: View, script_path: str, foreign: Sequence[str] = (), stage: str = STAGE
) -> list[str]:
    """bwrap's options in the order of spec `sandbox` §5, descriptors by their names.

    `stage` is where the mounts of the run are; `foreign` are the commands that lie outside
    `/usr/bin` on the host (§5.2).
    """
    return [
        *_namespaces(),
        *_environment(),
        *_system(stage, host, foreign),
        *_kernel_views(),
        *_scratch(stage),
        *_guest(script_path),
        *_corpus(stage, view),
        # After every mount point is made: writes here would fill memory that nothing caps.
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--chdir", HOME),
    ]


def render(words: Sequence[str], fds: Mapping[str, int]) -> bytes:
    """The list as `--args` reads it, NUL after each word; `KeyError` for a missing number."""
    texts = [str(fds[word[1:]]) if word[:1] == _FD_MARK else word for word in words]
    return b"".join(text.encode("utf-8", "surrogateescape") + b"\0" for text in texts)


def command_line(bwrap: str, command: Sequence[str], fds: Mapping[str, int]) -> list[str]:
    """bwrap's command line proper: everything that would name a host path is behind `--args`."""
    words = [bwrap, "--args", str(fds["args"]), "--json-status-fd", str(fds["status"])]
    words += ["--block-fd", str(fds["block"])]
    if "seccomp" in fds:
        words += ["--add-seccomp-fd", str(fds["seccomp"])]
    return [*words, "--", *command]
