# expect: exit:0; ops:0; no-rejected
# why: What a run leaves in scratch, home, shared memory or the helper's place is gone.
# then: find /tmp /home/user /dev/shm /workspace -name planted | grep . && echo ESCAPED; grep -l planted /workspace/lib/corpus.mjs && echo ESCAPED; [ $(grep -c . /proc/sysvipc/shm) -le 1 ] || echo ESCAPED

for d in /tmp /home/user /dev/shm /workspace; do echo planted > "$d/planted"; done
echo 'export const ROOT = "/planted"' > /workspace/lib/corpus.mjs 2>/dev/null
echo 'echo ESCAPED' > /home/user/.bashrc
echo 'echo ESCAPED' > /home/user/.bash_profile
python3 -c '
import ctypes
libc = ctypes.CDLL(None)
segment = libc.shmget(0x4d454d, 4096, 0o1666)
' 2>/dev/null
exit 0
