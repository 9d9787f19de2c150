# expect: exit:3; not-timed-out; max-ms:4000
# why: A script without output descriptors is waited for by its exit, not by end of file.

exec 0<&- 1>&- 2>&-
for n in {3..40}; do eval "exec $n>&-"; done
sleep 0.3
exit 3
