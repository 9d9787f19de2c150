# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: Only unix sockets can be made: no packet, netlink, vsock, bluetooth or crypto sockets.
# arch: x86_64
# needs: perl
# run_as: both

perl -e '
  for my $family (2, 4, 5, 10, 16, 17, 30, 31, 38, 40, 44) {
    for my $type (1, 2, 3, 5) {
      my $fd = syscall(41, $family, $type, 0);
      print "ESCAPED family $family\n" if $fd >= 0;
    }
  }
'
echo done
