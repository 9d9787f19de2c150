# expect: exit:0; next-run-clean; appended:0
# why: A descriptor opened for reading before the copy leads to no file of the cache.

exec 3< /mnt/memhtml/areas/inbox/b.html
(echo scribble > /proc/self/fd/3) 2>/dev/null
(truncate -s 0 /proc/self/fd/3) 2>/dev/null
echo more >> /mnt/memhtml/areas/inbox/b.html
(echo scribble >> /proc/self/fd/3) 2>/dev/null
exit 0
