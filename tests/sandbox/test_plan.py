"""The bwrap argument list, without a sandbox."""

from __future__ import annotations

import pytest

from memhtml_sandbox import plan
from memhtml_sandbox.plan import Host, View

MERGED = Host(("bin", "sbin", "lib", "lib64"), (), ())
OVERLAY = View("overlay", ("l0", "l1", "s"))


def words(host: Host = MERGED, view: View = OVERLAY, foreign: tuple[str, ...] = ()) -> list[str]:
    return plan.arguments(host, view, "/workspace/script.sh", foreign, stage="/S")


def text(*args: object) -> str:
    fds = dict.fromkeys(("passwd", "group", "script", "helper"), 9)
    return plan.render(words(*args), fds).decode().replace("\0", " ")  # type: ignore[arg-type]


EXPECTED = """
--unshare-user --unshare-ipc --unshare-pid --unshare-net --unshare-uts
--unshare-cgroup-try --disable-userns --uid 1000 --gid 1000 --hostname memhtml
--cap-drop ALL --die-with-parent --new-session
--clearenv --setenv PATH /usr/bin:/bin --setenv HOME /home/user --setenv TMPDIR /tmp
--setenv LANG C.UTF-8 --setenv MEMHTML_MOUNT /mnt/memhtml
--ro-bind /usr /usr --ro-bind /usr/bin /.bin --ro-bind /S/t /usr/bin
--symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib
--symlink usr/lib64 /lib64
--dir /etc --ro-bind-data 11 /etc/passwd --ro-bind-data 12 /etc/group
--ro-bind-try /etc/ld.so.cache /etc/ld.so.cache
--proc /proc --ro-bind /proc/sys /proc/sys --ro-bind /empty /proc/1 --dev /dev
--bind /S/x/shm /dev/shm --bind /S/x/tmp /tmp --bind /S/x/home /home/user
--bind /S/x/ws /workspace
--file 13 /workspace/script.sh --dir /workspace/lib --file 14 /workspace/lib/corpus.mjs
--overlay-src /S/l0 --overlay-src /S/l1 --overlay-src /S/s
--overlay /S/u /S/w /mnt/memhtml
--remount-ro /dev --remount-ro / --chdir /home/user
"""


def test_the_list_is_in_the_order_of_the_specification() -> None:
    fds = {"passwd": 11, "group": 12, "script": 13, "helper": 14}
    assert plan.render(words(), fds).decode().split("\0")[:-1] == EXPECTED.split()


def test_a_host_with_real_system_folders_binds_them() -> None:
    found = text(Host(("lib64",), ("bin", "sbin", "lib"), ()))
    assert "--ro-bind /bin /.bin2 --ro-bind /S/t /bin" in found
    assert "--ro-bind /sbin /sbin" in found
    assert "--ro-bind /lib /lib" in found
    assert "--symlink usr/lib64 /lib64" in found


def test_a_package_store_and_foreign_commands_are_bound_when_there_are_any() -> None:
    found = text(Host((), (), ("/nix/store",)), OVERLAY, ("node",))
    assert "--ro-bind /nix/store /nix/store --ro-bind /S/f/node /.bin.d/node --dir /etc" in found


def test_what_an_administrator_keeps_below_usr_is_covered() -> None:
    found = text(Host(("bin",), (), (), ("/usr/local/etc",)))
    assert "--symlink usr/bin /bin --ro-bind /empty /usr/local/etc --dir /etc" in found


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (View("read-only", ("l0",)), "--ro-bind /S/l0 /mnt/memhtml"),
        (
            View("read-only", ("l0", "l1")),
            "--overlay-src /S/l0 --overlay-src /S/l1 --ro-overlay /mnt/memhtml",
        ),
        (View("copy", ()), "--bind /S/u /mnt/memhtml"),
        (View("copy-read-only", ()), "--ro-bind /S/u /mnt/memhtml"),
    ],
)
def test_each_kind_of_view_has_its_own_mount(view: View, expected: str) -> None:
    assert f" {expected} --remount-ro /dev --remount-ro / " in text(MERGED, view)


def test_the_root_is_closed_after_every_mount_point_is_made() -> None:
    found = words()
    last_mount = max(place for place, word in enumerate(found) if word.endswith("/mnt/memhtml"))
    assert last_mount < found.index("--remount-ro")


def test_a_descriptor_without_a_number_is_an_error() -> None:
    with pytest.raises(KeyError, match="helper"):
        plan.render(words(), {"passwd": 1, "group": 2, "script": 3})


COMMAND = "/b/bwrap --args 3 --json-status-fd 4 --block-fd 5 --add-seccomp-fd 6 -- bash x"


def test_the_command_line_proper_names_no_host_path_but_bwrap() -> None:
    fds = {"args": 3, "status": 4, "block": 5, "seccomp": 6}
    assert plan.command_line("/b/bwrap", ["bash", "x"], fds) == COMMAND.split()


def test_without_a_filter_there_is_no_filter_option() -> None:
    fds = {"args": 3, "status": 4, "block": 5}
    assert "--add-seccomp-fd" not in plan.command_line("/b/bwrap", ["bash"], fds)
