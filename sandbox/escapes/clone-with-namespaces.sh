# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: A process cannot be started in namespaces of its own, by the old call or the new.
# arch: x86_64
# needs: perl
# run_as: both

perl -e '
  for my $flag (0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x04000000, 0x08000000, 0x02000000) {
    my $flags = $flag + 17;
    my $pid = syscall(56, $flags, 0, 0, 0, 0);
    if ($pid == 0) { print "ESCAPED clone\n"; exit 0 }
    print "ESCAPED clone $flag\n" if $pid > 0;
  }
  my $arguments = pack("Q11", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0);
  my $pid = syscall(435, $arguments, 88);
  exit 0 if $pid == 0;
  print "ESCAPED clone3\n" if $pid > 0;
'
echo done
