"""Helpers for the harvester's tests: small records, real trees read as entries, scripts run on one.

A script runs with the host's own bash or node over a temporary folder in place of the mount. That
gives the tree such a script leaves, without a sandbox; only trusted scripts may be given here.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from memhtml_format.ops import Op, encode
from memhtml_harvest.diff import diff_trees, harvest
from memhtml_harvest.report import Harvest
from memhtml_harvest.seed import Entry, FileEntry, MapSeed

MOUNT = "/mnt/memhtml"
HELPER = "/workspace/lib/corpus.mjs"
GUEST_HELPER = Path(__file__).parents[2] / "sandbox/memhtml_sandbox/guest/corpus.mjs"
AT = "2026-06-01T08:00:00Z"

_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}


class Doc(NamedTuple):
    """One record, by what a test cares about."""

    words: str = "The relay drains in an hour."
    title: str = "Relay"
    links: tuple[tuple[str, str], ...] = ()
    entities: tuple[str, ...] = ()
    metas: tuple[tuple[str, str], ...] = ()
    head_extra: str = ""
    markup: str = "<p><mark>{}</mark></p>"
    memory_type: str = "semantic"

    @property
    def html(self) -> str:
        """The file's text; `head_extra` stands before the end of the head."""
        metas = (
            ("type", self.memory_type),
            ("status", "active"),
            ("created", AT),
            ("updated", AT),
        )
        changed = dict(self.metas)
        kept = [(name, changed.pop(name, value)) for name, value in metas]
        lines = [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f"<title>{self.title}</title>",
            *(f'<meta name="memhtml-{n}" content="{v}">' for n, v in [*kept, *changed.items()]),
            *(f'<meta name="memhtml-entity" content="{e}">' for e in self.entities),
            *(f'<link rel="memhtml-{rel}" href="{href}">' for rel, href in self.links),
            f"{self.head_extra}</head>",
            "<body>",
            "<article>",
            self.markup.format(self.words),
            "</article>",
            "</body>",
            "</html>",
        ]
        return "\n".join(lines) + "\n"

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return self.html.encode()


def tree(files: Mapping[str, Doc | bytes | Entry]) -> dict[bytes, Entry]:
    """A tree of entries from paths and documents, bytes or ready entries."""
    return {path.encode(): as_entry(value) for path, value in files.items()}


def as_entry(value: Doc | bytes | Entry) -> Entry:
    """The entry of a document, of bytes, or the entry itself."""
    if isinstance(value, Doc):
        return FileEntry(value.data)
    return FileEntry(value) if isinstance(value, bytes) else value


def judge(
    before: Mapping[str, Doc | bytes],
    after: Mapping[Any, Any],
    scope: str = "session",
) -> Harvest:
    """The harvest between two whole trees; `after` names by text or bytes what `as_entry` takes."""
    seed = {p: value.data if isinstance(value, Doc) else value for p, value in before.items()}
    entries: dict[bytes, Entry] = {}
    for name, value in after.items():
        entries[name.encode() if isinstance(name, str) else name] = as_entry(value)
    changes = diff_trees(seed, entries)
    return harvest(changes.changed, changes.vanished, MapSeed(seed), scope=scope)


def summary(result: Harvest) -> tuple[list[str], list[str]]:
    """Operations and rejections as short lines: `move a b`, `deleted a`."""
    ops = [" ".join(v for k, v in encode(op).items() if k != "html") for op in result.ops]
    return ops, [f"{item.code} {item.path}" for item in result.rejected]


def without_html(ops: Iterable[Op]) -> list[dict[str, str]]:
    """Operations as the shared cases state them."""
    return [{k: v for k, v in encode(op).items() if k != "html"} for op in ops]


def read_tree(root: Path) -> dict[bytes, Entry]:
    """Everything below `root` that is no folder; follows no link."""
    top = os.fsencode(root)
    found: dict[bytes, Entry] = {}
    for folder, folders, files in os.walk(top):
        for name in [*files, *folders]:
            place = os.path.join(folder, name)
            state = os.lstat(place)
            if stat.S_ISDIR(state.st_mode):
                continue
            kind = _KINDS.get(stat.S_IFMT(state.st_mode), "device")
            data = Path(os.fsdecode(place)).read_bytes() if kind == "file" else b""
            found[os.path.relpath(place, top)] = FileEntry(data, kind=kind)
    return found


def run_script(view: Mapping[str, bytes], case: Mapping[str, Any], scratch: Path) -> Path:
    """Lay out `view`, run the script of `case` over it, and return the folder it worked on."""
    mount = scratch / "mount"
    for path, data in view.items():
        place = mount / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    mount.mkdir(exist_ok=True)
    home = scratch / "home"
    home.mkdir()
    lang = case.get("lang", "bash")
    script = scratch / ("script.mjs" if lang == "js" else "script")
    text = str(case["script"]).replace("/tmp/", f"{home}/").replace(MOUNT, str(mount))
    if HELPER in text:
        helper = scratch / "corpus.mjs"
        helper.write_text(GUEST_HELPER.read_text().replace(MOUNT, str(mount)))
        text = text.replace(HELPER, str(helper))
    script.write_text(text)
    program = "node" if lang == "js" else "bash"
    _run([program, str(script)], home, int(case.get("timeout_ms", 30_000)) / 1000)
    return mount


def _run(command: list[str], home: Path, timeout_s: float) -> None:
    """Run to the end or to the bound; the whole process group is gone afterwards."""
    child = subprocess.Popen(
        command,
        cwd=home,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
