# expect: exit:0; stdout-has:end; host-alive; max-ms:20000
# why: Dead children that nobody waits for end at the process cap and with the run.
# needs: perl
# run_as: both

perl -e '
  my $n = 0;
  for (1 .. 500) { my $pid = fork(); last unless defined $pid; exit 0 if $pid == 0; $n++ }
  print $n < 200 ? "capped\n" : "ESCAPED $n\n";
'
echo end
exit 0
