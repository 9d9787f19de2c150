# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED; sysctl-same
# why: The host's clock, its name and its kernel log are not the script's to touch.
# arch: x86_64
# run_as: both

date -s '2001-01-01' >/dev/null 2>&1 && echo "ESCAPED clock"
perl -e '
  my $name = "owned";
  print "ESCAPED hostname\n" if syscall(170, $name, 5) == 0;
  print "ESCAPED reboot\n" if syscall(169, 0xfee1dead, 672274793, 0, 0) == 0;
' 2>/dev/null
for f in /proc/kcore /dev/kmsg /proc/kmsg /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe; do
  (echo '|/tmp/x' > "$f") 2>/dev/null && echo "ESCAPED wrote $f"
done
head -c1 /proc/kcore 2>/dev/null | grep -q . && echo "ESCAPED kcore"
ls /sys/fs/cgroup /sys/firmware /sys/class 2>/dev/null | grep -q . && echo "ESCAPED sys"
echo done
