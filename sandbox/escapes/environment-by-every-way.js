// expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED; secret; ops:0
// why: No way of node's shows the caller's environment.
// needs: node

import fs from "node:fs"
import { execSync } from "node:child_process"
import { Worker } from "node:worker_threads"
const seen = [JSON.stringify(process.env), JSON.stringify(process.report.getReport())]
for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
  try { seen.push(fs.readFileSync(`/proc/${pid}/environ`, "latin1")) } catch {}
}
try { seen.push(execSync("env").toString()) } catch {}
const worker = new Worker("require('node:worker_threads').parentPort.postMessage(process.env)", { eval: true })
seen.push(JSON.stringify(await new Promise((resolve) => worker.on("message", resolve))))
for (const text of seen) console.log(text)
const allowed = new Set(["PATH", "HOME", "TMPDIR", "LANG", "MEMHTML_MOUNT", "PWD"])
for (const name of Object.keys(process.env)) if (!allowed.has(name)) console.log(`ESCAPED ${name}`)
console.log("done")
process.exit(0)
