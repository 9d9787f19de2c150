# expect: exit:0
# why: No second name of a seeded file can be made anywhere, and one that points there writes nothing.
# then: grep -rq scribble /mnt/memhtml && echo ESCAPED
# run_as: both

A=/mnt/memhtml/areas/inbox/a.html
for place in /tmp /home/user /workspace /dev/shm /mnt/memhtml/areas; do
    ln "$A" "$place/hard" 2>/dev/null && echo "ESCAPED $place"
    cp -l "$A" "$place/linked" 2>/dev/null && echo "ESCAPED $place"
    ln -s "$A" "$place/soft" 2>/dev/null
    (echo scribble >> "$place/soft") 2>/dev/null && echo "ESCAPED through $place/soft"
done
ln -s /mnt/memhtml /tmp/mount
(echo scribble > /tmp/mount/new) 2>/dev/null && echo ESCAPED
exec 3< "$A"
ln -L /proc/self/fd/3 /tmp/by-descriptor 2>/dev/null && echo ESCAPED
cp -a "$A" /tmp/copy && echo scribble >> /tmp/copy
cmp -s /tmp/copy "$A" && echo ESCAPED
exit 0
