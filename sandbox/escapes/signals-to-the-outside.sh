# expect: exit:0; stdout-has:alive; stdout-lacks:ESCAPED; not-timed-out; max-ms:5000
# why: No signal leaves the process namespace, and its first process ignores ours.

kill -9 1 2>/dev/null
kill -STOP 1 2>/dev/null
kill -9 "$PPID" 2>/dev/null
for p in {2..400}; do
  [ -d "/proc/$p" ] || { kill -0 "$p" 2>/dev/null && echo "ESCAPED $p"; }
done
echo alive
