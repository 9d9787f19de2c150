# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: The reaper's namespaces cannot be entered, nor can an id map be written.
# arch: x86_64
# needs: perl
# run_as: both

perl -e '
  for my $kind ("mnt", "pid", "net", "user", "uts", "ipc", "cgroup") {
    open(my $ns, "<", "/proc/1/ns/$kind") or next;
    print "ESCAPED setns $kind\n" if syscall(308, fileno($ns), 0) == 0;
  }
'
for f in uid_map gid_map setgroups; do
  (echo "0 0 1" > /proc/self/$f) 2>/dev/null && echo "ESCAPED $f"
done
echo done
