# expect: exit:0; ops:0; rejected:too-large areas/inbox/large.html; peak-mib:200; next-run-clean
# why: A file over the harvest's cap is named by its size; its bytes are not taken.

head -c 1048577 /dev/zero | tr '\0' 'a' > /mnt/memhtml/areas/inbox/large.html
exit 0
