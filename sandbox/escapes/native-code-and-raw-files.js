// expect: exit:0; stdout-has:done; stdout-lacks:ESCAPED; ops:0
// why: Loading native code gives no file of the host, and no way to the raw disk.
// needs: node

import fs from "node:fs"
for (const path of ["/etc/shadow", "/root", "/home", "/proc/1/root/root", "/dev/mem", "/dev/vda", "/dev/sda",
  "/proc/kcore", "/var/lib/docker", "/run/secrets", "/sys/kernel/debug"]) {
  try {
    const found = fs.statSync(path).isDirectory() ? fs.readdirSync(path).filter((n) => n !== "user").join() : fs.readFileSync(path)
    if (found.length > 0) console.log(`ESCAPED ${path}`)
  } catch {}
}
for (const path of ["/etc/ld.so.preload", "/usr/lib/x.node", "/lib/x", "/etc/passwd"]) {
  try { fs.writeFileSync(path, "x"); console.log(`ESCAPED wrote ${path}`) } catch {}
}
try { process.dlopen({ exports: {} }, "/workspace/script.mjs") } catch {}
console.log("done")
