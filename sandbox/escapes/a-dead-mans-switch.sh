# expect: exit:0; stdout-has:armed; max-ms:5000; ops:0; next-run-clean
# why: Processes that left the session, the group and their parent die with the run.

for n in 1 2 3; do
  (setsid bash -c '
    trap "" HUP TERM INT QUIT PIPE
    (while :; do sleep 0.1; [ -d /proc/1 ] || break; echo boo > /mnt/memhtml/areas/inbox/late.txt; rm -f /mnt/memhtml/areas/inbox/late.txt; done) &
    disown
  ' >/dev/null 2>&1 &)
done
echo armed
exit 0
