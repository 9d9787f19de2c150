# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: The reaper's memory, descriptors and trace are out of reach, so its exit code cannot be forged.
# arch: x86_64
# needs: perl

perl -e '
  print "ESCAPED attach\n" if syscall(101, 16, 1, 0, 0) == 0;
  my $pidfd = syscall(434, 1, 0);
  for my $fd (0 .. 20) {
    print "ESCAPED took $fd\n" if $pidfd >= 0 && syscall(438, $pidfd, $fd, 0) >= 0;
  }
  my $buffer = "x" x 64;
  my $vector = pack("QQ", unpack("Q", pack("P", $buffer)), 64);
  for my $call (310, 311) {
    my $n = syscall($call, 1, $vector, 1, $vector, 1, 0);
    print "ESCAPED copied $n\n" if $n > 0;
  }
  # Opened for real: writing at offset 0, where nothing is mapped, would prove nothing.
  for my $mode ("<", "+<") {
    for my $path ("/proc/1/mem", "/proc/1/task/1/mem") {
      print "ESCAPED opened $path\n" if open(my $memory, $mode, $path);
    }
  }
  print "ESCAPED maps\n" if open(my $maps, "<", "/proc/1/maps") && <$maps>;
'
echo done
