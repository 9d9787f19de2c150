# expect: exit:0; ops:0; rejected:git-internal; rejected:reserved-path memhtml.config.json; rejected:reserved-path areas/inbox/index.html; next-run-clean
# why: A git folder with hooks, or the store's own files, are named and never written.

cd /mnt/memhtml
mkdir -p .git/hooks areas/.GIT
printf '#!/bin/sh\ntouch /tmp/owned\n' > .git/hooks/post-commit
chmod +x .git/hooks/post-commit
printf '[core]\n\tfsmonitor = /tmp/owned\n' > .git/config
echo x > areas/.GIT/config
echo '{"v1Doors": "off"}' > memhtml.config.json
echo '<title>x' > areas/inbox/index.html
mkdir -p .memhtml/sessions
echo '{}' > .memhtml/sessions/other.html
exit 0
