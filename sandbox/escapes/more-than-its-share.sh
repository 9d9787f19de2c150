# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: Limits, priorities and the out-of-memory score cannot be changed in its favour.
# arch: x86_64
# run_as: both

ulimit -Hn 100000 2>/dev/null && echo "ESCAPED files"
ulimit -Hf unlimited 2>/dev/null && echo "ESCAPED size"
ulimit -Hd unlimited 2>/dev/null && echo "ESCAPED data"
ulimit -Hu 100000 2>/dev/null && echo "ESCAPED processes"
[ "$(nice -n -5 nice 2>/dev/null)" -lt 0 ] && echo "ESCAPED nice"
echo -1000 > /proc/self/oom_score_adj 2>/dev/null
[ "$(cat /proc/self/oom_score_adj)" -lt 0 ] && echo "ESCAPED oom"
perl -e '
  my $priority = pack("i", 50);
  print "ESCAPED realtime\n" if syscall(144, 0, 1, $priority) == 0;
' 2>/dev/null
echo done
