# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: The x32 numbers of the same calls are not a way round the filter.
# arch: x86_64
# needs: perl
# run_as: both

perl -e '
  for my $call (39, 165, 272, 101, 310) {
    my $number = 0x40000000 + $call;
    my $r = syscall($number, 0x10000000, 0, 0, 0, 0);
    print "ESCAPED $call\n" if $r >= 0;
  }
'
echo done
