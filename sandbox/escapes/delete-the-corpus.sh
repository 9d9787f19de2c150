# expect: exit:0; ops:0; next-run-clean; rejected:deleted areas/inbox/a.html; rejected:deleted areas/inbox/b.html; rejected:deleted projects/checkout/c.html; rejected:deleted resources/runbook/d.html
# why: Removing everything removes it from this run's view alone.

rm -rf --no-preserve-root /mnt/memhtml 2>/dev/null
find /mnt/memhtml -mindepth 1 -delete 2>/dev/null
rm -rf /mnt/memhtml/* /mnt/memhtml/.[!.]* 2>/dev/null
ls -A /mnt/memhtml
exit 0
