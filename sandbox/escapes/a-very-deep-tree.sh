# expect: exit:0; ops:0; rejected:not-a-memory-path; max-ms:15000; next-run-clean
# why: Depth is counted, so no recursion and no path of any length is followed.
# needs: perl

cd /mnt/memhtml
perl -e '
  for (1 .. 400) { mkdir "deep-folder"; chdir "deep-folder" or last }
  open(my $f, ">", "bottom.html");
'
exit 0
