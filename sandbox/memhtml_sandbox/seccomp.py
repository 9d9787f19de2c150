"""The system call filter of the sandbox, assembled to classic BPF in plain Python.

Pure: a machine name in, a program's bytes out (spec `sandbox` §6.3). bwrap loads it after its own
set-up, so nothing that bwrap needs has to be allowed.
"""

from __future__ import annotations

from typing import NamedTuple

EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
AF_UNIX = 1
TIOCSTI, TIOCLINUX = 0x5412, 0x541C

# Every CLONE_NEW* flag that `clone` takes.
NAMESPACE_FLAGS = 0x7E020000
X32_BIT = 0x40000000

RET_ALLOW = 0x7FFF0000
RET_KILL_PROCESS = 0x80000000
RET_ERRNO = 0x00050000

# Opcodes: load a word of the call, test the accumulator, return.
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_OFFSET, ARCH_OFFSET, FIRST_OFFSET, SECOND_OFFSET = 0, 4, 16, 24


# So many numbers are compared one by one.
_FEW = 3


class Machine(NamedTuple):
    """What differs between architectures: the audit number and the numbers of calls."""

    arch: int
    has_x32: bool
    clone: int
    clone3: int
    ioctl: int
    sockets: tuple[int, int]
    refused: tuple[int, ...]


# Numbers that are the same everywhere, being younger than the common table.
_COMMON = {
    "pidfd_getfd": 438, "process_madvise": 440,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "mount_setattr": 442, "statmount": 457, "listmount": 458,
    "open_tree_attr": 467,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "quotactl_fd": 443, "memfd_secret": 447,
}  # fmt: skip

_X86_64 = {
    # Namespaces and mounts.
    "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
    # Other processes.
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    # The kernel's keyrings, which have no namespace.
    "keyctl": 250, "add_key": 248, "request_key": 249,
    # Large attack surface without use for a script.
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    # The host's modules, clock, names, swap and quota.
    "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246,
    "kexec_file_load": 320, "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163,
    "quotactl": 179, "syslog": 103, "iopl": 172, "ioperm": 173, "modify_ldt": 154,
    "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305,
    "sethostname": 170, "setdomainname": 171, "personality": 135, "uselib": 134, "vhangup": 153,
    # Files by handle, and memory policy.
    "lookup_dcookie": 212, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "fanotify_init": 300, "migrate_pages": 256, "move_pages": 279, "mbind": 237,
    "set_mempolicy": 238,
    # Memory that no process need hold, so that no cap counts it: objects of System V, memory files.
    "shmget": 29, "shmat": 30, "semget": 64, "msgget": 68, "memfd_create": 319,
    # Counted against the host's user, whose own programs would be left without.
    "inotify_init": 253, "inotify_init1": 294,
}  # fmt: skip

_AARCH64 = {
    "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
    "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
    "keyctl": 219, "add_key": 217, "request_key": 218,
    "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
    "init_module": 105, "finit_module": 273, "delete_module": 106, "kexec_load": 104,
    "kexec_file_load": 294, "reboot": 142, "swapon": 224, "swapoff": 225, "acct": 89,
    "quotactl": 60, "syslog": 116, "settimeofday": 170, "clock_settime": 112, "adjtimex": 171,
    "clock_adjtime": 266, "sethostname": 161, "setdomainname": 162, "personality": 92,
    "vhangup": 58,
    "lookup_dcookie": 18, "name_to_handle_at": 264, "open_by_handle_at": 265,
    "fanotify_init": 262, "migrate_pages": 238, "move_pages": 239, "mbind": 235,
    "set_mempolicy": 237,
    "shmget": 194, "shmat": 196, "semget": 190, "msgget": 186, "memfd_create": 279,
    "inotify_init1": 26,
}  # fmt: skip


def _refused(own: dict[str, int]) -> tuple[int, ...]:
    return tuple(sorted([*_COMMON.values(), *own.values()]))


MACHINES = {
    "x86_64": Machine(0xC000003E, True, 56, 435, 16, (41, 53), _refused(_X86_64)),
    "aarch64": Machine(0xC00000B7, False, 220, 435, 29, (198, 199), _refused(_AARCH64)),
}


class _Step(NamedTuple):
    """One instruction; a jump names the labels to go to, "" being the next instruction."""

    code: int
    value: int
    then: str = ""
    otherwise: str = ""
    label: str = ""


def _steps(machine: Machine) -> list[_Step]:
    answers = dict.fromkeys(machine.refused, "refuse")
    answers |= dict.fromkeys(machine.sockets, "socket")
    answers |= {machine.clone3: "no-call", machine.clone: "clone", machine.ioctl: "ioctl"}
    steps = [
        _Step(LOAD, ARCH_OFFSET),
        _Step(JUMP_EQUAL, machine.arch, otherwise="kill"),
        _Step(LOAD, NUMBER_OFFSET),
    ]
    if machine.has_x32:
        steps.append(_Step(JUMP_AT_LEAST, X32_BIT, then="no-call"))
    return [
        *steps,
        *_search(sorted(answers.items()), "search"),
        _Step(LOAD, FIRST_OFFSET, label="clone"),
        _Step(JUMP_BITS, NAMESPACE_FLAGS, then="refuse", otherwise="allow"),
        _Step(LOAD, SECOND_OFFSET, label="ioctl"),
        _Step(JUMP_EQUAL, TIOCSTI, then="refuse"),
        _Step(JUMP_EQUAL, TIOCLINUX, then="refuse", otherwise="allow"),
        _Step(LOAD, FIRST_OFFSET, label="socket"),
        _Step(JUMP_EQUAL, AF_UNIX, then="allow"),
        _Step(RETURN, RET_ERRNO | EAFNOSUPPORT),
        _Step(RETURN, RET_ALLOW, label="allow"),
        _Step(RETURN, RET_ERRNO | EPERM, label="refuse"),
        _Step(RETURN, RET_ERRNO | ENOSYS, label="no-call"),
        _Step(RETURN, RET_KILL_PROCESS, label="kill"),
    ]


def _search(answers: list[tuple[int, str]], label: str) -> list[_Step]:
    """Find a number by halving: the kernel tries every number once when the filter is loaded."""
    if len(answers) > _FEW:
        middle = len(answers) // 2
        above = f"{label}+"
        return [
            _Step(JUMP_AT_LEAST, answers[middle][0], then=above, label=label),
            *_search(answers[:middle], f"{label}-"),
            *_search(answers[middle:], above),
        ]
    last = len(answers) - 1
    return [
        _Step(
            JUMP_EQUAL,
            number,
            then=answer,
            otherwise="allow" if place == last else "",
            label=label if place == 0 else "",
        )
        for place, (number, answer) in enumerate(answers)
    ]


def _encode(steps: list[_Step]) -> bytes:
    places = {step.label: index for index, step in enumerate(steps) if step.label}
    program = bytearray()
    for index, step in enumerate(steps):
        then = places[step.then] - index - 1 if step.then else 0
        otherwise = places[step.otherwise] - index - 1 if step.otherwise else 0
        program += step.code.to_bytes(2, "little") + bytes((then, otherwise))
        program += step.value.to_bytes(4, "little")
    return bytes(program)


def program(machine: str) -> bytes | None:
    """The filter for a machine as `uname` names it, or None where there is no table for it."""
    known = MACHINES.get(machine)
    return _encode(_steps(known)) if known else None
