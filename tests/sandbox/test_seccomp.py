"""The system call filter: read by a small interpreter here, and once by the kernel."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys

import pytest

from memhtml_sandbox import kernel, seccomp
from memhtml_sandbox.protocol import FILTERED_MACHINES
from memhtml_sandbox.seccomp import MACHINES

ALLOW = seccomp.RET_ALLOW
KILL = seccomp.RET_KILL_PROCESS


def answer(machine: str, number: int, *args: int, arch: int | None = None) -> int:
    """What the program answers to a call."""
    program = seccomp.program(machine)
    assert program is not None
    call = struct.pack(
        "<iI7Q",
        number if number < 1 << 31 else number - (1 << 32),
        MACHINES[machine].arch if arch is None else arch,
        0,
        *(list(args) + [0] * 6)[:6],
    )
    place, value = 0, 0
    while True:
        code, then, otherwise, operand = struct.unpack_from("<HBBI", program, place * 8)
        place += 1
        if code == 0x06:
            return int(operand)
        if code == 0x20:
            value = struct.unpack_from("<I", call, operand)[0]
            continue
        holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
        place += then if holds else otherwise


def refusal(number: int) -> int:
    return seccomp.RET_ERRNO | number


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_gets_the_answer_of_its_table(machine: str) -> None:
    table = MACHINES[machine]
    special = {table.clone, table.clone3, table.ioctl, *table.sockets}
    for number in range(600):
        if number in special:
            continue
        expected = refusal(errno.EPERM) if number in table.refused else ALLOW
        assert answer(machine, number) == expected, number


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architecture_is_killed(machine: str) -> None:
    assert answer(machine, 0, arch=0x40000003) == KILL


def test_the_x32_numbers_do_not_exist() -> None:
    assert answer("x86_64", 0x40000000) == refusal(errno.ENOSYS)
    assert answer("x86_64", 0x40000000 + 272) == refusal(errno.ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
def test_clone_makes_processes_but_no_namespaces(machine: str) -> None:
    table = MACHINES[machine]
    assert answer(machine, table.clone3) == refusal(errno.ENOSYS)
    assert answer(machine, table.clone, 0x01200011) == ALLOW
    for bit in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(machine, table.clone, bit | 17) == refusal(errno.EPERM), hex(bit)


@pytest.mark.parametrize("machine", MACHINES)
def test_input_cannot_be_pushed_into_a_terminal(machine: str) -> None:
    table = MACHINES[machine]
    assert answer(machine, table.ioctl, 0, 0x5412) == refusal(errno.EPERM)
    assert answer(machine, table.ioctl, 0, 0x541C) == refusal(errno.EPERM)
    assert answer(machine, table.ioctl, 0, (1 << 32) | 0x5412) == refusal(errno.EPERM)
    assert answer(machine, table.ioctl, 0, 0x5401) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_only_unix_sockets_can_be_made(machine: str) -> None:
    for call in MACHINES[machine].sockets:
        assert answer(machine, call, socket.AF_UNIX) == ALLOW
        for family in (socket.AF_INET, socket.AF_INET6, 16, 17, 40):
            assert answer(machine, call, family) == refusal(errno.EAFNOSUPPORT)


NAMED = """
unshare setns mount umount2 pivot_root chroot ptrace process_vm_readv process_vm_writev
kcmp keyctl add_key request_key bpf perf_event_open userfaultfd init_module
finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct quotactl
syslog settimeofday clock_settime adjtimex clock_adjtime sethostname
setdomainname personality vhangup lookup_dcookie name_to_handle_at
open_by_handle_at fanotify_init migrate_pages move_pages mbind set_mempolicy
"""
UNCOUNTED = "shmget shmat semget msgget memfd_create inotify_init1"
SAME_EVERYWHERE = """
open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr statmount
listmount pidfd_getfd process_madvise io_uring_setup io_uring_enter io_uring_register
quotactl_fd memfd_secret
"""


def test_the_calls_that_the_specification_names_are_all_refused_and_those_no_cap_counts() -> None:
    only_x86 = {"iopl", "ioperm", "modify_ldt", "uselib", "inotify_init"}
    everywhere = set(f"{NAMED} {UNCOUNTED}".split())
    assert set(seccomp._COMMON) == set(SAME_EVERYWHERE.split())
    assert set(seccomp._AARCH64) == everywhere
    assert set(seccomp._X86_64) == everywhere | only_x86


def test_the_machines_are_those_that_are_announced() -> None:
    assert set(FILTERED_MACHINES) == set(MACHINES)


def test_there_is_no_program_for_a_machine_without_a_table() -> None:
    assert seccomp.program("riscv64") is None


@pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine not in MACHINES, reason="no table for this host"
)
def test_the_kernel_takes_the_program_and_acts_on_it() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            install_filter()
            os.write(writing, b" ".join(map(str.encode, _felt())))
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    told = os.read(reading, 1_000).split()
    os.close(reading)
    assert [int(number) for number in told] == [errno.EPERM, errno.EAFNOSUPPORT, 0]


def install_filter(refused: tuple[int, ...] | None = None) -> None:
    """Put this process under the filter, for good; or under one that refuses these calls."""
    machine = os.uname().machine
    if refused is not None:
        seccomp.MACHINES[machine] = MACHINES[machine]._replace(refused=refused)
    program = seccomp.program(machine)
    assert program is not None
    buffer = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    pointer = ctypes.create_string_buffer(header)
    kernel.prctl(kernel.PR_SET_SECCOMP, 2, ctypes.addressof(pointer))


def _felt() -> list[str]:
    numbers = []
    for act in (
        lambda: kernel.unshare(kernel.CLONE_NEWUSER),
        lambda: socket.socket(socket.AF_INET),
        lambda: socket.socket(socket.AF_UNIX),
    ):
        try:
            act()
            numbers.append("0")
        except OSError as error:
            numbers.append(str(error.errno))
    return numbers
