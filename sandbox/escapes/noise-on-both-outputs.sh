# expect: exit:0; stdout-max:1200000; peak-mib:300; max-ms:20000; appended:0
# why: Two floods at once neither block each other nor fill the parent.

(yes a | head -c 60000000) &
(yes b | head -c 60000000 >&2) &
wait
exit 0
