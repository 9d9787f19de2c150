// expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED; max-ms:9000
// why: node opens no port: not its debugger, not a server.
// needs: node
// timeout_ms: 8000

import inspector from "node:inspector"
import net from "node:net"
try { inspector.open(0, "0.0.0.0"); if (inspector.url()) console.log("ESCAPED inspector") } catch {}
for (const host of ["127.0.0.1", "::1", "0.0.0.0"]) {
  await new Promise((resolve) => {
    try {
      const server = net.createServer()
      server.on("error", resolve)
      server.listen(0, host, () => { console.log(`ESCAPED ${host}`); resolve() })
    } catch { resolve() }
  })
}
console.log("done")
process.exit(0)
