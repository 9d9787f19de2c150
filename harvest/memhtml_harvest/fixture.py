"""Recorded runs on disk: reading, writing and comparing them (spec `cli` §10 `replay`).

`fixture.json` holds the fields of that section's table, `script` the program, `seed/` the view,
`base/` what only the bar asks for: the base's records that the earlier operations of `ops`
touched, and files of the base that are no records where they stand in a record's way, without
their content. `after/` is what the script left: a real tree with three conventions for what a tree
cannot say. A file without any read permission is one that could not be read, an empty folder is an
entry the walk did not descend into, and a file over the harvest's cap keeps its size alone.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from memhtml_format.ops import BadOperation, Op, decode, encode
from memhtml_harvest.report import Harvest, code_of
from memhtml_harvest.rows import FILE_BYTES_CAP
from memhtml_harvest.seed import Entry

FORMAT = 1
LANGS = ("bash", "js")
SCOPES = ("session", "curate")

_FIELDS: dict[str, type | tuple[type, ...]] = {
    "format": int,
    "name": str,
    "lang": str,
    "timeoutMs": int,
    "runBound": bool,
    "scope": str,
    "policy": (dict, type(None)),
    "ops": list,
    "limits": dict,
    "vanished": list,
    "expect": dict,
}
_EXPECT_FIELDS: dict[str, type | tuple[type, ...]] = {
    "exitCode": int,
    "timedOut": bool,
    "stdout": str,
    "stderr": str,
    "harvested": list,
    "rejected": list,
    "violations": list,
    "blocking": list,
    "appended": int,
}
_STAMP = re.compile(r'(memhtml-archived" content=")[0-9TZ:-]+(")')
_NO_TARGET = "the-target-is-not-recorded"
_SPECIALS = {"pipe": stat.S_IFIFO, "socket": stat.S_IFSOCK, "device": stat.S_IFCHR}


class FixtureError(Exception):
    """A folder that is no fixture, or one that could not be written; `path` says where."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class Expect(NamedTuple):
    """What the recorded call answered. `harvested` are whole operations without `html`."""

    exit_code: int
    timed_out: bool
    stdout: str
    stderr: str
    harvested: tuple[Mapping[str, str], ...]
    rejected: tuple[Mapping[str, str], ...]
    violations: tuple[Mapping[str, Any], ...]
    blocking: tuple[str, ...]
    appended: int


class Fixture(NamedTuple):
    """One recorded run. `ops` is the log before the call, `seed` the view with it folded in.

    `base` holds the base's bytes at the paths that `ops` touch, where the base has a record. A file
    that is no record has no bytes there, and None stands for a link or a submodule.
    """

    name: str
    lang: str
    timeout_ms: int
    run_bound: bool
    scope: str
    policy: Mapping[str, Any] | None
    ops: tuple[Op, ...]
    limits: Mapping[str, Any]
    vanished: tuple[str, ...]
    expect: Expect
    script: bytes
    seed: Mapping[str, bytes]
    base: Mapping[str, bytes | None]
    after: Mapping[bytes, Entry]


class Difference(NamedTuple):
    """One field in which a run differs from its record; the values are JSON values."""

    field: str
    expected: Any
    got: Any


class DiskEntry:
    """Something in an `after/` folder. It is opened only when it is read."""

    __slots__ = ("_path", "_readable", "kind", "size")

    def __init__(self, path: Path, kind: str, size_bytes: int, *, readable: bool = True) -> None:
        self._path = path
        self._readable = readable
        self.kind = kind
        self.size = size_bytes

    def read(self, limit: int) -> bytes:
        """At most `limit` bytes; `OSError` for what was recorded as unreadable."""
        if not self._readable:
            raise PermissionError("recorded as unreadable")
        with self._path.open("rb") as file:
            return file.read(limit)


def load(folder: str | os.PathLike[str]) -> Fixture:
    """The fixture in `folder`; raises `FixtureError`. Nothing in it is followed or run."""
    root = Path(folder)
    where = root / "fixture.json"
    try:
        value = json.loads(where.read_bytes())
        script = (root / "script").read_bytes()
    except OSError as error:
        name = Path(error.filename or where).name
        raise FixtureError(str(root), f"no fixture: {name}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FixtureError(str(root), f"no fixture: fixture.json is not JSON: {error}") from error
    fields = _checked(value, _FIELDS, where)
    expect = _checked(fields["expect"], _EXPECT_FIELDS, where)
    if fields["format"] != FORMAT:
        raise FixtureError(str(where), f"format {fields['format']} is not {FORMAT}")
    for key, allowed in (("lang", LANGS), ("scope", SCOPES)):
        if fields[key] not in allowed:
            raise FixtureError(str(where), f"{key} is not one of {', '.join(allowed)}")
    try:
        ops = tuple(decode(item) for item in fields["ops"])
    except BadOperation as error:
        raise FixtureError(str(where), f"ops: {error}") from error
    return Fixture(
        name=fields["name"],
        lang=fields["lang"],
        timeout_ms=fields["timeoutMs"],
        run_bound=fields["runBound"],
        scope=fields["scope"],
        policy=fields["policy"],
        ops=ops,
        limits=fields["limits"],
        vanished=tuple(_strings(fields["vanished"], "vanished", where)),
        expect=_expect(expect, where),
        script=script,
        seed=_load_seed(root / "seed"),
        base=dict(_load_base(root / "base")),
        after=dict(_load_after(root / "after")),
    )


def save(folder: str | os.PathLike[str], fixture: Fixture) -> None:
    """Write `fixture` into `folder`, which is made when missing; raises `FixtureError`.

    A link's target is not recorded, since a harvest never looks at one.
    """
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / "script").write_bytes(fixture.script)
        for path, data in fixture.seed.items():
            _file_below(root / "seed", path).write_bytes(data)
        for path, held in fixture.base.items():
            _save_base(_file_below(root / "base", path), held)
        (root / "after").mkdir(exist_ok=True)
        for raw in sorted(fixture.after):
            _save_entry(_file_below(root / "after", os.fsdecode(raw)), fixture.after[raw])
        text = json.dumps(to_json(fixture), indent=2, ensure_ascii=False)
        (root / "fixture.json").write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise FixtureError(error.filename or str(root), error.strerror or str(error)) from error


def to_json(fixture: Fixture) -> dict[str, Any]:
    """The object of `fixture.json`."""
    return {
        "format": FORMAT,
        "name": fixture.name,
        "lang": fixture.lang,
        "timeoutMs": fixture.timeout_ms,
        "runBound": fixture.run_bound,
        "scope": fixture.scope,
        "policy": fixture.policy,
        "ops": [encode(op) for op in fixture.ops],
        "limits": dict(fixture.limits),
        "vanished": sorted(fixture.vanished),
        "expect": expect_json(fixture.expect),
    }


def expect_json(expect: Expect) -> dict[str, Any]:
    """The object under `expect`."""
    return {
        field: list(value) if isinstance(value, tuple) else value
        for field, value in zip(_EXPECT_FIELDS, expect, strict=True)
    }


def harvested_json(ops: Iterable[Op]) -> tuple[dict[str, str], ...]:
    """Operations as `expect.harvested` holds them: every field but `html`."""
    return tuple(
        {name: value for name, value in encode(op).items() if name != "html"} for op in ops
    )


def rejected_json(harvest: Harvest) -> tuple[dict[str, str], ...]:
    """Rejections as `expect.rejected` holds them."""
    return tuple({"path": item.path, "reason": item.reason} for item in harvest.rejected)


def differences(expected: Expect, got: Expect) -> list[Difference]:
    """The fields in which two runs differ, in the order of the table.

    Wording and clock are no difference: a `reason` counts as its code, the `reasons` of a
    violation do not count, `blocking` counts as a number of sentences, and the instants of archive
    stamps in the output are blanked.
    """
    found = []
    for field, old, new in zip(
        _EXPECT_FIELDS, expect_json(expected).values(), expect_json(got).values(), strict=True
    ):
        comparable = _COMPARABLE.get(field, _as_is)
        if comparable(old) != comparable(new):
            found.append(Difference(field, old, new))
    return found


def harvest_differences(expected: Expect, harvest: Harvest) -> list[Difference]:
    """`differences` for a harvest alone: `harvested` and `rejected`."""
    got = expected._replace(harvested=harvested_json(harvest.ops), rejected=rejected_json(harvest))
    return differences(expected, got)


def _as_is(value: Any) -> Any:
    return value


def _without_stamps(text: str) -> str:
    return _STAMP.sub(r"\1\2", text)


def _by_code(rejected: list[Mapping[str, str]]) -> list[tuple[str, str]]:
    return [(item["path"], code_of(item["reason"])) for item in rejected]


def _without_reasons(violations: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in v.items() if key != "reasons"} for v in violations]


_COMPARABLE: dict[str, Callable[[Any], Any]] = {
    "stdout": _without_stamps,
    "stderr": _without_stamps,
    "rejected": _by_code,
    "violations": _without_reasons,
    "blocking": len,
}


def _checked(
    value: object, fields: Mapping[str, type | tuple[type, ...]], where: Path
) -> dict[str, Any]:
    """`value` as an object with exactly these fields, each of its type."""
    if not isinstance(value, dict) or set(value) != set(fields):
        raise FixtureError(str(where), f"expected an object with the keys {', '.join(fields)}")
    for key, kind in fields.items():
        # A JSON true is no number, though Python's bool is an int.
        if not isinstance(value[key], kind) or (kind is int and isinstance(value[key], bool)):
            raise FixtureError(str(where), f"{key} has the wrong type")
    return value


def _strings(values: list[object], key: str, where: Path) -> list[str]:
    strings = [value for value in values if isinstance(value, str)]
    if len(strings) != len(values):
        raise FixtureError(str(where), f"{key} is not a list of strings")
    return strings


def _objects(values: list[object], key: str, where: Path) -> tuple[dict[str, Any], ...]:
    objects = tuple(value for value in values if isinstance(value, dict))
    if len(objects) != len(values):
        raise FixtureError(str(where), f"{key} is not a list of objects")
    return objects


def _expect(fields: Mapping[str, Any], where: Path) -> Expect:
    rejected = _objects(fields["rejected"], "rejected", where)
    for item in rejected:
        _checked(item, {"path": str, "reason": str}, where)
    return Expect(
        exit_code=fields["exitCode"],
        timed_out=fields["timedOut"],
        stdout=fields["stdout"],
        stderr=fields["stderr"],
        harvested=_objects(fields["harvested"], "harvested", where),
        rejected=rejected,
        violations=_objects(fields["violations"], "violations", where),
        blocking=tuple(_strings(fields["blocking"], "blocking", where)),
        appended=fields["appended"],
    )


def _load_seed(root: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for path, data in _load_base(root):
        if data is None:
            raise FixtureError(str(root / path), "a seed holds regular files alone")
        files[path] = data
    return files


def _load_base(root: Path) -> Iterator[tuple[str, bytes | None]]:
    for raw, path, state in _walk(root):
        kind = _kind(state.st_mode)
        if kind not in ("file", "link"):
            raise FixtureError(str(path), "a seed or base holds files and links alone")
        try:
            yield raw.decode(), path.read_bytes() if kind == "file" else None
        except (OSError, UnicodeDecodeError) as error:
            raise FixtureError(str(path), f"cannot be seeded: {error}") from error


def _load_after(root: Path) -> Iterator[tuple[bytes, DiskEntry]]:
    for raw, path, state in _walk(root):
        readable = bool(state.st_mode & 0o444)
        yield raw, DiskEntry(path, _kind(state.st_mode), state.st_size, readable=readable)


def _kind(mode: int) -> str:
    kinds = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "too-deep"}
    kinds.update({form: kind for kind, form in _SPECIALS.items()})
    return kinds.get(stat.S_IFMT(mode), "device")


def _walk(root: Path) -> Iterator[tuple[bytes, Path, os.stat_result]]:
    """Everything below `root` that is not a folder, and the empty folders; follows no link."""
    pending = [root] if root.is_dir() else []
    while pending:
        folder = pending.pop()
        try:
            children = sorted(folder.iterdir())
            states = [(child, child.lstat()) for child in children]
        except OSError as error:
            raise FixtureError(str(folder), error.strerror or str(error)) from error
        if not states and folder != root:
            yield _name(folder, root), folder, folder.lstat()
        for child, state in states:
            if stat.S_ISDIR(state.st_mode):
                pending.append(child)
            else:
                yield _name(child, root), child, state


def _name(path: Path, root: Path) -> bytes:
    return os.fsencode(str(path.relative_to(root)))


def _file_below(root: Path, path: str) -> Path:
    """The place of `path` below `root`, its folders made; refuses a path that leads out."""
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise FixtureError(path, "is no path below a fixture")
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _save_base(target: Path, data: bytes | None) -> None:
    if data is None:
        target.symlink_to(_NO_TARGET)
    else:
        target.write_bytes(data)


def _save_entry(target: Path, entry: Entry) -> None:
    if entry.kind == "too-deep":
        target.mkdir()
    elif entry.kind == "link":
        target.symlink_to(_NO_TARGET)
    elif entry.kind != "file":
        os.mknod(target, _SPECIALS[entry.kind] | 0o644)
    elif entry.size > FILE_BYTES_CAP:
        with target.open("wb") as file:
            file.truncate(entry.size)
    else:
        _save_file(target, entry)


def _save_file(target: Path, entry: Entry) -> None:
    try:
        data = entry.read(FILE_BYTES_CAP + 1)
    except OSError:
        target.touch()
        target.chmod(0)
        return
    target.write_bytes(data)
    if len(data) < entry.size:
        # Past what one recording keeps: the size is all that the harvest asks of such a file.
        os.truncate(target, entry.size)
