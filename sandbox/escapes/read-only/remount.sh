# expect: exit:0
# why: The mount cannot be made writable, covered, moved or taken away, by command or system call.
# then: (echo x > /mnt/memhtml/new) 2>/dev/null && echo ESCAPED
# run_as: both
# needs: python3

for flags in remount,rw remount,bind,rw; do
    /.bin/mount -o $flags /mnt/memhtml 2>/dev/null && echo ESCAPED
    /.bin/unshare -Urm /.bin/mount -o $flags /mnt/memhtml 2>/dev/null && echo ESCAPED
done
/.bin/mount --bind /tmp /mnt/memhtml 2>/dev/null && echo ESCAPED
/.bin/umount /mnt/memhtml 2>/dev/null && echo ESCAPED
python3 - <<'P'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
REMOUNT, BIND, MOVE = 32, 4096, 8192
target = b"/mnt/memhtml"
for flags in (REMOUNT, REMOUNT | BIND):
    if libc.mount(None, target, None, flags, None) == 0:
        print("ESCAPED remount")
os.makedirs("/tmp/over/areas", exist_ok=True)
if libc.mount(b"/tmp/over", target, None, BIND, None) == 0:
    print("ESCAPED bind")
if libc.mount(target, b"/tmp/over", None, MOVE, None) == 0:
    print("ESCAPED move")
if libc.umount2(target, 2) == 0:
    print("ESCAPED umount")
P
(echo x > /mnt/memhtml/new) 2>/dev/null && echo ESCAPED
exit 0
