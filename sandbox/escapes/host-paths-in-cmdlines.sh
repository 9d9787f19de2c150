# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: Nothing on the command lines inside names a folder of the host.

for p in /proc/[0-9]*; do
  tr '\0' ' ' < "$p/cmdline" 2>/dev/null
done | grep -E '/(root|home|var|work|srv)/|\.memhtml|--ro-bind|--overlay' && echo ESCAPED
echo done
