# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: File capabilities, trusted attributes and foreign owners cannot be set.
# needs: python3
# run_as: both

python3 - <<'P'
import os, struct
path = "/mnt/memhtml/areas/inbox/a.html"
capability = struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0)
for name, value in (("security.capability", capability), ("trusted.overlay.opaque", b"y"),
                    ("trusted.x", b"x")):
    for target in (path, "/tmp"):
        try:
            os.setxattr(target, name, value)
            print("ESCAPED", name, target)
        except OSError:
            pass
for uid in (0, 1, 65534):
    try:
        os.chown(path, uid, uid)
        print("ESCAPED chown", uid)
    except OSError:
        pass
    try:
        os.setuid(uid)
        print("ESCAPED setuid", uid)
    except OSError:
        pass
P
echo done
