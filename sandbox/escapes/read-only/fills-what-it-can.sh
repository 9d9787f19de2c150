# expect: exit:0; max-ms:15000; peak-mib:700; host-alive
# why: A run without an upper tree still cannot fill the host's memory through its scratch folders.
# run_as: both

for place in /tmp /home/user /workspace /dev/shm /mnt/memhtml /mnt /run /; do
    head -c 512M /dev/zero > "$place/filler" 2>/dev/null && echo "ESCAPED $place"
done
exit 0
