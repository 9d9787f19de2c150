# expect: exit:0; stdout-has:capped; host-alive; max-ms:30000
# why: Threads count as processes.
# needs: python3
# run_as: both

python3 - <<'P'
import threading, time
threading.stack_size(65536)
started = 0
try:
    for _ in range(2_000):
        threading.Thread(target=time.sleep, args=(3,), daemon=True).start()
        started += 1
except (RuntimeError, MemoryError):
    print("capped" if started < 200 else f"ESCAPED {started}")
P
exit 0
