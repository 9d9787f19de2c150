# expect: exit:124; timed-out; max-ms:5000; appended:0
# why: A run whose processes are all stopped still ends at its bound.
# timeout_ms: 1000

(kill -STOP $BASHPID) &
(sleep 0.2; kill -STOP $$) &
kill -STOP $$
sleep 60
