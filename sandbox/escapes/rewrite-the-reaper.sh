# expect: exit:3; not-timed-out; stdout-lacks:ESCAPED; max-ms:15000
# why: The reaper's code cannot be replaced, so it neither reports a false exit code nor lets go of its parent.
# arch: x86_64
# needs: python3

cat > /tmp/rewrite.py <<'P'
import os, struct

def move(register, value):
    return b"\x48\xc7" + bytes([0xC0 + register]) + struct.pack("<i", value)

RAX, RDX, RSI, RDI = 0, 2, 6, 7
CALL = b"\x0f\x05"
# No signal any more when the parent dies, then the exit code 78 to every likely descriptor.
code = move(RDI, 1) + move(RSI, 0) + move(RAX, 157) + CALL
for fd in range(3, 10):
    code += b"\x6a" + bytes([79]) + b"\x48\x89\xe6" + move(RDI, fd) + move(RDX, 8)
    code += move(RAX, 1) + CALL + b"\x58"
start = len(code)
code += move(RAX, 34) + CALL
code += b"\xeb" + struct.pack("b", start - len(code) - 2)
where = int(open("/proc/1/syscall").read().split()[-1], 16)
memory = os.open("/proc/1/mem", os.O_RDWR)
os.lseek(memory, where, os.SEEK_SET)
print("ESCAPED wrote", os.write(memory, code), flush=True)
P
python3 /tmp/rewrite.py 2>/dev/null
# Wakes the reaper up.
(sh -c 'sleep 0.05 &')
sleep 0.3
(setsid sleep 40 >/dev/null 2>&1 &)
exit 3
