# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: What a host's administrator keeps below /usr, with tokens perhaps, is covered.

for folder in /usr/local/etc /usr/etc /usr/src; do
  [ -d "$folder" ] || continue
  found=$(find "$folder" -mindepth 1 2>/dev/null | head -n 3)
  [ -z "$found" ] || echo "ESCAPED $found"
  (: > "$folder/planted") 2>/dev/null && echo "ESCAPED wrote below $folder"
done
echo done
