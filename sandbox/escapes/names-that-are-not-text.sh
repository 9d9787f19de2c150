# expect: exit:0; ops:0; rejected:not-a-memory-path areas/inbox/��.html; max-ms:4000
# why: Line feeds, terminal codes and bytes that are no UTF-8 are data, in a name too.

cd /mnt/memhtml/areas/inbox
: > $'\xff\xfe.html'
: > $'two\nlines.html'
: > $'\e]0;title\a.html'
: > $'delete\x7f.html'
mkdir $'\xc3\x28'
: > $'\xc3\x28/below.html'
exit 0
