# expect: exit:0; ops:0; next-run-clean; secret; rejected:not-a-regular-file areas/inbox; rejected:not-a-regular-file projects
# why: A seeded folder turned into a link is named and not walked, wherever it points.

cd /mnt/memhtml
rm -r areas/inbox projects
ln -s /proc/self/root/etc areas/inbox
ln -s / projects
exit 0
