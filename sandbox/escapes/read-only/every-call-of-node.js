// expect: exit:0; stdout-has:refused
// why: Node's own calls write nothing below a read-only mount, and its helper reads all of it.
// then: grep -rq scribble /mnt/memhtml && echo ESCAPED
// run_as: both

import fs from "node:fs";
import { ROOT, corpus } from "/workspace/lib/corpus.mjs";

const file = `${ROOT}/areas/inbox/a.html`;
const flags = fs.constants;
const fd = fs.openSync(file, "r");
const attempts = {
  writeFile: () => fs.writeFileSync(file, "scribble"),
  appendFile: () => fs.appendFileSync(file, "scribble"),
  both: () => fs.openSync(file, "r+"),
  create: () => fs.openSync(`${ROOT}/new`, "wx"),
  write: () => fs.writeSync(fd, "scribble"),
  truncate: () => fs.ftruncateSync(fd, 0),
  times: () => fs.futimesSync(fd, 0, 0),
  mode: () => fs.fchmodSync(fd, 0o777),
  link: () => fs.linkSync(file, "/tmp/linked"),
  rename: () => fs.renameSync(file, "/tmp/moved"),
  copy: () => fs.copyFileSync("/workspace/script.mjs", file),
  clone: () => fs.copyFileSync("/workspace/script.mjs", `${ROOT}/new`, flags.COPYFILE_FICLONE),
  cp: () => fs.cpSync("/workspace", `${ROOT}/new`, { recursive: true }),
  mkdtemp: () => fs.mkdtempSync(`${ROOT}/new-`),
  rm: () => fs.rmSync(`${ROOT}/areas`, { recursive: true, force: true }),
  symlink: () => fs.symlinkSync("/tmp", `${ROOT}/new`),
};
for (const [name, act] of Object.entries(attempts)) {
  try {
    act();
    console.log("ESCAPED", name);
  } catch (error) {
    if (name === "writeFile" && error.code === "EROFS") console.log("refused");
  }
}
if (corpus().size < 4) console.log("ESCAPED", "records are gone");
