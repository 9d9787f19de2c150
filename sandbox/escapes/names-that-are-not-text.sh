# expect: exit:0; ops:0; rejected:not-a-memory-path; max-ms:4000
# why: Line feeds, terminal codes, bad UTF-8 and very long names are data.

cd /mnt/memhtml/areas/inbox
: > $'\xff\xfe.html'
: > $'two\nlines.html'
: > $'\e]0;title\a.html'
: > "$(printf 'n%.0s' {1..250}).html"
: > '-rf.html'
: > ' .html'
exit 0
