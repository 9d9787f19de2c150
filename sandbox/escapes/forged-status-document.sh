# expect: exit:7; not-timed-out; appended:0
# why: An exit status written to every descriptor in sight is not believed.

for fd in /proc/self/fd/* /proc/1/fd/*; do
  (echo '{"exit-code": 0}' > "$fd") 2>/dev/null
done
for n in {3..30}; do
  (echo '{"exit-code": 0}' >&"$n") 2>/dev/null
done
exit 7
