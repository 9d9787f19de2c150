# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: Nothing in /proc leads to the reaper: not by number, by thread, or by another process's root.
# needs: python3

python3 - <<'P'
import glob, os
names = ("mem", "maps", "environ", "syscall", "fd", "task/1/mem", "root", "cwd", "exe", "oom_score_adj")
for top in ("/proc", "/proc/self/root/proc", f"/proc/{os.getppid()}/root/proc", "/proc/self/task/../.."):
    for name in names:
        path = f"{top}/1/{name}"
        if os.path.lexists(path):
            print("ESCAPED", path)
    try:
        open(f"{top}/1/planted", "x")
        print("ESCAPED wrote below", top)
    except OSError:
        pass
for path in glob.glob("/proc/[0-9]*/comm"):
    if open(path).read() == "bwrap\n":
        print("ESCAPED", path)
P
for call in umount "umount -l"; do $call /proc/1 2>/dev/null && echo "ESCAPED unmounted"; done
echo done
