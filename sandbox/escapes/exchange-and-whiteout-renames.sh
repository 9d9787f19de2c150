# expect: exit:0; next-run-clean; stdout-lacks:ESCAPED
# why: The odd flags of renameat2 reach no file of the cache either.
# arch: x86_64
# needs: perl

cd /mnt/memhtml
echo mine > mine.txt
perl -e '
  my ($mine, $theirs) = ("mine.txt", "areas/inbox/a.html");
  for my $flags (1, 2, 4, 6) { syscall(316, -100, $mine, -100, $theirs, $flags) }
  my ($one, $two) = ("areas", "projects");
  syscall(316, -100, $one, -100, $two, 2);
'
exit 0
