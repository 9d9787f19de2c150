# expect: exit:0
# why: No memory map, attribute, time, owner or lease of a seeded file can be written.
# then: grep -rq scribble /mnt/memhtml && echo ESCAPED
# run_as: both
# needs: python3

python3 - <<'P'
import fcntl, mmap, os
path = "/mnt/memhtml/areas/inbox/a.html"
fd = os.open(path, os.O_RDONLY)
folder = os.open("/mnt/memhtml", os.O_RDONLY)


def attempt(name, act):
    try:
        act()
    except (OSError, ValueError):
        return
    print("ESCAPED", name)


def scribble():
    view = mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    view[0:8] = b"scribble"
    view.flush()


attempt("shared map", scribble)
attempt("pwrite", lambda: os.pwrite(fd, b"scribble", 0))
attempt("ftruncate", lambda: os.ftruncate(fd, 0))
attempt("fallocate", lambda: os.posix_fallocate(fd, 0, 1 << 16))
attempt("unnamed file", lambda: os.open("/mnt/memhtml", os.O_TMPFILE | os.O_RDWR))
attempt("openat", lambda: os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
attempt("reopen", lambda: os.open(f"/proc/self/fd/{fd}", os.O_RDWR))
attempt("attribute", lambda: os.setxattr(path, "user.x", b"1"))
attempt("opaque", lambda: os.setxattr("/mnt/memhtml/areas", "user.overlay.opaque", b"y"))
attempt("times", lambda: os.utime(path, (0, 0)))
attempt("times by descriptor", lambda: os.utime(fd, (0, 0)))
attempt("mode by descriptor", lambda: os.fchmod(fd, 0o777))
attempt("owner", lambda: os.chown(path, os.getuid(), os.getgid()))
attempt("flags", lambda: fcntl.ioctl(fd, 0x40086602, b"\x10\0\0\0\0\0\0\0"))
attempt("clone", lambda: fcntl.ioctl(os.open("/tmp/clone", os.O_CREAT | os.O_RDWR), 0x40049409, fd)
        or os.rename("/tmp/clone", path))
attempt("exchange", lambda: os.rename("/mnt/memhtml/areas", "/mnt/memhtml/projects"))
P
exit 0
