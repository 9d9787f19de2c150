// expect: exit:134; not-timed-out; appended:0; host-alive; max-ms:40000
// why: The heap limit ends node itself; nothing is harvested.
// needs: node
// timeout_ms: 30000

import fs from "node:fs"
fs.writeFileSync("/mnt/memhtml/areas/inbox/half.html", "half written")
const kept = []
for (;;) kept.push({ text: `${kept.length}`.repeat(50), more: new Array(64).fill(kept.length) })
