# expect: exit:137; stdout-lacks:ESCAPED; peak-mib:3300; host-alive; max-ms:20000
# why: A process whose first thread has ended shows no memory under its own name, and is counted all the same.
# arch: x86_64
# needs: python3

cat > /tmp/hoard.py <<'P'
import ctypes, threading, time

def hoard():
    time.sleep(0.2)
    kept = []
    for _ in range(9):
        block = bytearray(100 << 20)
        block[::4096] = bytes(len(block[::4096]))
        for place in range(0, len(block), 4096):
            block[place] = 1
        kept.append(block)
        time.sleep(0.1)
    time.sleep(60)

threading.Thread(target=hoard).start()
ctypes.CDLL(None).syscall(60, 0)
P
for i in 1 2 3; do python3 /tmp/hoard.py & done
sleep 9
echo "ESCAPED the memory cap"
