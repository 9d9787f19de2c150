"""The command folder: which names it has, where they lead, and when it is made again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from memhtml_sandbox import tools
from memhtml_sandbox.errors import SandboxFailed
from memhtml_sandbox.tools import command_folder


def _links(folder: str) -> dict[str, str]:
    return {name: os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)}


def _command(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small host: a folder that stands for `/usr/bin`, another for what is outside of it."""
    folder = tmp_path / "host/usr/bin"
    for name in ("bash", "mawk", "cat", "curl", "git"):
        _command(folder / name)
    (tmp_path / "host/alternatives").mkdir()
    (tmp_path / "host/alternatives/awk").symlink_to(folder / "mawk")
    (folder / "awk").symlink_to(tmp_path / "host/alternatives/awk")
    (folder / "jq").symlink_to("/nowhere/jq")
    (folder / "sed").write_text("not executable")
    monkeypatch.setattr(tools, "SEARCHED", (str(folder),))
    monkeypatch.setattr(tools, "_WATCHED", (str(folder), str(tmp_path / "host/alternatives")))
    monkeypatch.setattr(tools, "_HIDDEN", {str(folder): "/.bin"})
    return folder


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "sandbox")


def test_links_lead_to_the_resolved_command(host: Path, root: str) -> None:
    found = command_folder(root, node=None)

    expected = {"awk": "mawk", "mawk": "mawk", "bash": "bash", "cat": "cat"}
    assert _links(found.folder) == {name: f"/.bin/{to}" for name, to in expected.items()}
    assert found.foreign == ()


def test_the_folder_is_named_by_what_it_holds(host: Path, root: str) -> None:
    folder = command_folder(root, node=None).folder
    lines = sorted(f"{name}\t{target}\n" for name, target in _links(folder).items())

    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert folder == f"{root}/tools/{digest[:16]}"
    assert os.stat(folder).st_mode & 0o777 == 0o755


def test_a_node_elsewhere_is_bound_by_its_name(host: Path, root: str, tmp_path: Path) -> None:
    node = _command(tmp_path / "versions/20/bin/node")
    (tmp_path / "shim").symlink_to(node)
    found = command_folder(root, node=str(tmp_path / "shim"))

    assert _links(found.folder)["node"] == "/.bin.d/node"
    assert found.foreign == (("node", str(node)),)
    assert command_folder(root, node=str(tmp_path / "shim")) == found


def test_a_node_among_the_commands_is_linked_like_them(host: Path, root: str) -> None:
    found = command_folder(root, node=str(_command(host / "node")))

    assert _links(found.folder)["node"] == "/.bin/node"
    assert found.foreign == ()


def test_a_node_that_is_not_there_is_left_out(host: Path, root: str) -> None:
    assert "node" not in _links(command_folder(root, node="/nowhere/node").folder)


def test_a_warm_call_resolves_nothing(
    host: Path, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = command_folder(root, node=None)

    def resolve(node: str | None) -> dict[str, tuple[str, str]]:
        raise AssertionError("resolved again")

    monkeypatch.setattr(tools, "_resolve", resolve)
    assert command_folder(root, node=None) == found


def test_a_change_of_the_host_makes_another_folder(host: Path, root: str, tmp_path: Path) -> None:
    first = command_folder(root, node=None)
    _command(host / "grep")
    second = command_folder(root, node=None)
    (tmp_path / "host/alternatives/awk").unlink()
    (tmp_path / "host/alternatives/awk").symlink_to(_command(host / "gawk"))
    third = command_folder(root, node=None)

    assert "grep" in _links(second.folder)
    assert _links(third.folder)["awk"] == "/.bin/gawk"
    assert len({first.folder, second.folder, third.folder}) == 3


def test_a_change_that_alters_no_link_keeps_the_folder(host: Path, root: str) -> None:
    first = command_folder(root, node=None)
    _command(host / "wget")

    assert command_folder(root, node=None) == first


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"key": 1, "hash": "x", "foreign": 3}'])
def test_a_damaged_note_is_made_again(host: Path, root: str, damage: str) -> None:
    found = command_folder(root, node=None)
    Path(f"{root}/tools/current").write_text(damage)

    assert command_folder(root, node=None) == found


def _plant(root: str, **fields: object) -> None:
    """Put fields into the note, which still fits this host."""
    path = Path(f"{root}/tools/current")
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_planted_note_binds_nothing_of_the_host(host: Path, root: str, tmp_path: Path) -> None:
    found = command_folder(root, node=None)
    secret = _command(tmp_path / "secret")
    for name, path in (("loot", secret), ("bash", secret), ("../x", secret), ("cat", tmp_path)):
        _plant(root, foreign=[[name, str(path)]])
        assert command_folder(root, node=None) == found, name


@pytest.mark.parametrize("digest", ["../../secret", "", "x" * 16, "../" + "a" * 13, None, ["a"]])
def test_a_planted_note_leads_to_no_other_folder(
    host: Path, root: str, tmp_path: Path, digest: object
) -> None:
    found = command_folder(root, node=None)
    (tmp_path / "secret").mkdir()
    _plant(root, hash=digest)
    assert command_folder(root, node=None) == found


def test_a_planted_folder_in_the_place_of_the_real_one_is_replaced(
    host: Path, root: str, tmp_path: Path
) -> None:
    found = command_folder(root, node=None)
    expected = _links(found.folder)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/kept").touch()
    for kind in ("link", "commands", "file"):
        shutil.rmtree(found.folder)
        if kind == "link":
            os.symlink(tmp_path / "elsewhere", found.folder)
        elif kind == "commands":
            _command(Path(found.folder) / "bash")
        else:
            Path(found.folder).touch()
        os.unlink(f"{root}/tools/current")
        assert command_folder(root, node=None) == found
        assert not os.path.islink(found.folder)
        assert _links(found.folder) == expected
    assert os.listdir(tmp_path / "elsewhere") == ["kept"]


@pytest.mark.parametrize("kind", ["pipe", "device", "deep", "folder"])
def test_a_note_that_is_no_small_file_is_not_waited_for(host: Path, root: str, kind: str) -> None:
    found = command_folder(root, node=None)
    path = Path(f"{root}/tools/current")
    path.unlink()
    if kind == "folder":
        path.mkdir()
        with pytest.raises(SandboxFailed):
            command_folder(root, node=None)
        return
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_text("[" * 30_000)
    assert command_folder(root, node=None) == found
    assert path.is_file()


def test_a_folder_of_tools_behind_a_link_is_refused(host: Path, root: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    os.mkdir(root)
    os.symlink(tmp_path / "elsewhere", f"{root}/tools")
    with pytest.raises(SandboxFailed, match="symbolic link"):
        command_folder(root, node=None)
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_deleted_folder_is_made_again(host: Path, root: str) -> None:
    found = command_folder(root, node=None)
    for name in os.listdir(found.folder):
        os.unlink(f"{found.folder}/{name}")
    os.rmdir(found.folder)

    assert command_folder(root, node=None) == found
    assert "bash" in os.listdir(found.folder)


def test_a_root_that_cannot_be_written_fails_to_seed(host: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SandboxFailed) as failed:
        command_folder(str(tmp_path / "file"), node=None)

    assert failed.value.code == "exec.seed"


def test_on_this_host_awk_is_there_and_curl_is_not(tmp_path: Path) -> None:
    links = _links(command_folder(str(tmp_path), node=None).folder)

    assert {"bash", "awk", "cat", "ls", "sh"} <= links.keys()
    assert not {"curl", "wget", "git", "ssh"} & links.keys()
    for name, target in links.items():
        on_host = target.replace("/.bin/", "/usr/bin/").replace("/.bin2/", "/bin/")
        assert os.path.exists(on_host), name


def test_a_warm_call_is_cheap(tmp_path: Path) -> None:
    command_folder(str(tmp_path), node=None)
    fastest_s = 1.0
    for _ in range(20):
        begun = time.perf_counter()
        command_folder(str(tmp_path), node=None)
        fastest_s = min(fastest_s, time.perf_counter() - begun)

    assert fastest_s < 0.001
