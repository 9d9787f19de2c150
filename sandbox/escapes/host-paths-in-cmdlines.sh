# expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED
# why: Nothing on the command lines inside names a folder of the host.

for p in /proc/[0-9]*; do
  line=$(tr '\0' ' ' < "$p/cmdline" 2>/dev/null)
  [[ $line =~ /(root|home|var|work|srv)/|\.memhtml|--ro-bind|--overlay ]] && echo "ESCAPED $line"
done
echo done
