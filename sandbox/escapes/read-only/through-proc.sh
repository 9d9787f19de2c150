# expect: exit:0
# why: No path through /proc leads to a writable copy of the mount or of the tree below it.
# then: grep -rq scribble /mnt/memhtml && echo ESCAPED
# run_as: both

A=areas/inbox/a.html
cd /mnt/memhtml || exit 1
exec 3< $A
exec 4< .
for way in /proc/self/fd/3 /proc/thread-self/fd/3 /dev/fd/3 /proc/$$/fd/3 \
    /proc/self/fd/4/$A /proc/self/cwd/$A /proc/self/root/mnt/memhtml/$A \
    /proc/1/root/mnt/memhtml/$A /proc/1/cwd/mnt/memhtml/$A /proc/self/fd/4/../../mnt/memhtml/$A; do
    (echo scribble >> "$way") 2>/dev/null && echo "ESCAPED $way"
    (truncate -s 0 "$way") 2>/dev/null && echo "ESCAPED $way"
done
for pid in /proc/[0-9]*; do
    (echo scribble > "$pid/root/mnt/memhtml/new") 2>/dev/null && echo "ESCAPED $pid"
    (echo scribble > "$pid/cwd/new") 2>/dev/null && echo "ESCAPED $pid cwd"
done
exit 0
