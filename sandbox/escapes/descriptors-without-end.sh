# expect: exit:0; stdout-has:capped; host-alive
# why: Open files are capped in number, and a file without a name is capped like any other.
# needs: python3

python3 - <<'P'
import os, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
kept = []
try:
    while len(kept) < 5_000:
        kept.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    print("capped" if len(kept) < 1_100 else "ESCAPED")
for fd in kept:
    os.close(fd)
try:
    fd = os.memfd_create("big")
    print("ESCAPED a memory file")
except OSError:
    fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
try:
    for _ in range(64):
        os.write(fd, bytes(1 << 20))
    print("ESCAPED an unnamed file of", os.fstat(fd).st_size)
except OSError:
    pass
P
exit 0
