# expect: exit:0; stdout-has:stopped; ops:0; peak-mib:250
# why: One file cannot pass the file cap, sparse or not, on the mount or in scratch.

for d in /mnt/memhtml /tmp /dev/shm; do
  (head -c 40000000 /dev/zero > "$d/big") 2>/dev/null && echo "ESCAPED $d"
  (truncate -s 1T "$d/big") 2>/dev/null && echo "ESCAPED sparse $d"
  rm -f "$d/big"
done
echo stopped
exit 0
