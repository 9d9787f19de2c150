# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED; host-alive
# why: Memory and counters that no cap of the run covers cannot be had: System V objects, memory files, watches.
# needs: python3

python3 - <<'P'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
calls = {
    "shmget": lambda: libc.shmget(0, 1 << 20, 0o1600),
    "semget": lambda: libc.semget(0, 1_000, 0o1600),
    "msgget": lambda: libc.msgget(0, 0o1600),
    "inotify_init": lambda: libc.inotify_init(),
    "inotify_init1": lambda: libc.inotify_init1(0),
    "memfd_create": lambda: libc.memfd_create(b"x", 0),
}
libc.shmat.restype = ctypes.c_ssize_t
calls["shmat"] = lambda: libc.shmat(0, None, 0)
for name, call in calls.items():
    if call() != -1 or ctypes.get_errno() != 1:
        print("ESCAPED", name)
P
echo done
