// expect: exit:0; stdout-has:refused; stdout-has:polled; stdout-lacks:ESCAPED
// why: The host user's file watches cannot be used up; a script still reads, polls and starts children.

import fs from "node:fs"
import { execFileSync } from "node:child_process"
import { Worker } from "node:worker_threads"

const kept = []
try {
  for (let n = 0; n < 300; n++) kept.push(fs.watch("/tmp"))
  console.log("ESCAPED", kept.length)
} catch (error) { console.log("refused", error.code) }
fs.writeFileSync("/tmp/seen", "1")
fs.watchFile("/tmp/seen", { interval: 20 }, () => {
  console.log("polled", execFileSync("echo", ["child"]).toString())
  fs.unwatchFile("/tmp/seen")
})
setTimeout(() => fs.writeFileSync("/tmp/seen", "longer"), 60)
await new Promise((done) => new Worker("0", { eval: true }).on("exit", done))
