# expect: exit:0; ops:0; appended:0; rejected:reserved-path areas/arcs/mine.html; rejected:reserved-path resources/people/mine.html
# why: Only curation writes arcs and people, whatever the script copies there.

cd /mnt/memhtml
mkdir -p areas/arcs resources/people
cp areas/inbox/a.html areas/arcs/mine.html
cp areas/inbox/a.html resources/people/mine.html
exit 0
