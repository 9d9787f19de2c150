# expect: exit:0; ops:0; next-run-clean; no-rejected
# why: A script's own overlay attributes and whiteouts are not taken for the kernel's.
# needs: python3

python3 - <<'P'
import os
for prefix in ("user.overlay.", "trusted.overlay."):
    for name, value in (("opaque", b"y"), ("whiteout", b"y"), ("redirect", b"/"), ("metacopy", b"")):
        for path in ("", "/areas", "/areas/inbox", "/areas/inbox/a.html"):
            try:
                os.setxattr("/mnt/memhtml" + path, prefix + name, value)
            except OSError:
                pass
P
exit 0
