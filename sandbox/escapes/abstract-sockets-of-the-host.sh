# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: Abstract unix sockets belong to the network namespace: the host's are not there.
# needs: perl

[ "$(grep -c . /proc/net/unix)" -le 1 ] || echo "ESCAPED sees sockets"
perl -MSocket -e '
  for my $name ("\0/tmp/.X11-unix/X0", "\0/tmp/dbus", "\0/containerd", "/run/docker.sock", "/run/systemd/private") {
    socket(my $s, AF_UNIX, SOCK_STREAM, 0) or next;
    print "ESCAPED $name\n" if connect($s, pack_sockaddr_un($name));
  }
'
echo done
