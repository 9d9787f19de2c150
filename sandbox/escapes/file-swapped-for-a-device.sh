# expect: exit:0; ops:0; next-run-clean; max-ms:4000
# why: Whatever stands at a record's path, only a regular file is opened.

cd /mnt/memhtml/areas/inbox
rm a.html; ln -s /dev/zero a.html
rm b.html; mkfifo b.html
mknod zero.html c 1 5 2>/dev/null
mknod gone.html c 0 0 2>/dev/null
exit 0
