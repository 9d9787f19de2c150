# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: Neither .. nor the stage's short names lead to the layers, the work folder or the store.

cd /mnt/memhtml/areas/inbox && cd ../../../../../../../../.. && [ "$(pwd -P)" = / ] || echo ESCAPED
for d in /u /w /l0 /l1 /s /t /x /stage /newroot /oldroot /tmp/u /tmp/w /tmp/l0 /mnt/u /mnt/w /mnt/l0; do
  [ -e "$d" ] && echo "ESCAPED $d"
done
find / -xdev -maxdepth 2 \( -name '.memhtml' -o -name 'index.db' -o -name '*.ok' \) 2>/dev/null | grep . && echo ESCAPED
echo done
