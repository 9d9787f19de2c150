# expect: exit:0; next-run-clean; stdout-lacks:ESCAPED; ops:0
# why: No second name of a seeded file can be made outside the mount and written there.

ln /mnt/memhtml/areas/inbox/a.html /tmp/a 2>/dev/null && echo ESCAPED
ln /mnt/memhtml/areas/inbox/a.html /home/user/a 2>/dev/null && echo ESCAPED
cp -l /mnt/memhtml/areas/inbox/b.html /workspace/b 2>/dev/null && echo ESCAPED
exit 0
