# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: Neither the old nor the new mount calls work, nor is what covers a folder taken off.
# arch: x86_64
# needs: perl
# run_as: both

perl -e '
  my %calls = (166 => "umount2", 155 => "pivot_root", 428 => "open_tree", 429 => "move_mount",
    430 => "fsopen", 432 => "fsmount", 433 => "fspick", 442 => "mount_setattr");
  for my $path ("/usr/bin", "/proc/sys", "/mnt/memhtml", "/") {
    for my $call (sort keys %calls) {
      my $r = syscall($call, $path, $path, 0, 0, 0);
      print "ESCAPED $calls{$call} $path\n" if $r >= 0;
    }
  }
'
[ -x /usr/bin/curl ] && echo "ESCAPED uncovered"
echo done
