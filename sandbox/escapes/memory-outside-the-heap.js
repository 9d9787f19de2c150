// expect: appended:0; peak-mib:2500; host-alive; max-ms:40000; stdout-lacks:ESCAPED
// why: Buffers and WebAssembly memory, which no heap limit counts, end at the data limit.
// needs: node
// timeout_ms: 20000

const kept = []
let mib = 0
try {
  for (;;) {
    kept.push(Buffer.alloc(64 << 20, 1))
    mib += 64
    if (mib > 3000) { console.log("ESCAPED"); break }
  }
} catch { console.log(`refused at ${mib}`) }
try {
  const memory = new WebAssembly.Memory({ initial: 16384, maximum: 65536 })
  new Uint8Array(memory.buffer).fill(1)
} catch { console.log("refused") }
