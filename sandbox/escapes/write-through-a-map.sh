# expect: exit:0; next-run-clean; appended:0; max-ms:8000
# why: A shared memory map of a seeded file writes into the run's own copy.
# needs: python3

python3 - <<'P'
import mmap, os
for name in ("areas/inbox/a.html", "projects/checkout/c.html"):
    fd = os.open("/mnt/memhtml/" + name, os.O_RDWR)
    early = os.open("/mnt/memhtml/" + name, os.O_RDONLY)
    view = mmap.mmap(fd, 0)
    view[0:9] = b"scribbled"
    view.flush()
    try:
        os.write(early, b"x")
    except OSError:
        pass
P
exit 0
