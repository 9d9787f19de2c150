# expect: exit:0; stdout-has:refused
# why: No command writes, makes, moves, removes or marks anything below a read-only mount.
# then: test -e /mnt/memhtml/new -o -n "$(find /mnt/memhtml -perm -111 -type f)" && echo ESCAPED
# run_as: both

cd /mnt/memhtml || exit 1
A=areas/inbox/a.html
try() { "$@" 2>/dev/null && echo "ESCAPED $*"; }
try cp /etc/passwd new
try cp /etc/passwd $A
try mv $A areas/inbox/z.html
try mv $A /tmp/a
try rm $A
try rm -rf areas
try rmdir resources/runbook
try mkdir new
try touch $A
try touch new
try chmod 777 $A
try chmod 777 .
try ln $A areas/inbox/hard.html
try ln -s $A areas/inbox/soft.html
try truncate -s 0 $A
try dd if=/dev/zero of=$A count=1 conv=notrunc
try sed -i s/a/b/ $A
try mkfifo pipe
try mknod device c 1 3
try install -D /etc/passwd new/passwd
try tee new < /dev/null
(echo x > new) 2>/dev/null && echo ESCAPED redirect
(echo x >> $A) 2>/dev/null && echo ESCAPED append
(exec 7<> $A) 2>/dev/null && echo ESCAPED both ways
touch new 2>&1 | grep -q 'Read-only file system' && echo refused
exit 0
