"""Whole envelopes of the session commands, as a caller meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.command import Said, memhtml
from tests.support.session import git, page, tip

from memhtml.schema.envelope import validate_envelope

FACT = {
    "op": "write",
    "title": "The checkout api retries twice",
    "type": "semantic",
    "body": "The checkout api retries a failed charge twice before it gives up.",
    "entity": "service:checkout-api",
}
PATH = "areas/inbox/the-checkout-api-retries-twice.html"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A new store."""
    folder = str(tmp_path / "store")
    assert memhtml("init", "--repo", folder).data["created"]
    return folder


def call(root: str, *words: str, text: str = "", env: dict[str, str] | None = None) -> Said:
    """A session command on the store; its envelope has the published shape."""
    said = memhtml("session", *words, "--repo", root, text=text, env=env)
    validate_envelope(said.envelope)
    return said


def lines(*values: dict[str, Any]) -> str:
    """JSONL."""
    return "\n".join(json.dumps(value) for value in values)


def test_session_from_start_to_prune(root: str) -> None:
    base = tip(root)
    started = call(root, "start", "--id", "s1")
    assert started.envelope["type"] == "session.started"
    assert started.data["head"]["source"] == "git"
    assert started.data["head"]["skipped"] == 1
    put = call(root, "put", "--id", "s1", text=lines(FACT))
    assert put.data["paths"] == [PATH]
    assert put.data["vector"]["reason"] == "embedder-off"
    script = 'sed -i \'s#</head>#<meta name="memhtml-entity" content="team:x">\\n</head>#\' ' + (
        f"/mnt/memhtml/{PATH}\n"
    )
    ran = call(root, "exec", "--id", "s1", text=script)
    assert ran.data["harvested"] == [{"kind": "label", "path": PATH}]
    status = call(root, "status", "--id", "s1")
    assert (status.data["puts"], status.data["labels"], status.data["behind"]) == (1, 1, False)
    landed = call(root, "commit", "--id", "s1", "--message", "  two\n facts ")
    assert landed.data["kind"] == "committed"
    assert landed.data["baseSha"] == base
    assert git(root, "log", "-1", "--format=%s") == "memhtml(session): two facts"
    assert 'content="team:x"' in git(root, "show", f"main:{PATH}")
    rebased = call(root, "rebase", "--id", "s1")
    assert (rebased.data["moved"], rebased.data["ops"]) == (False, 0)
    pruned = call(root, "prune", "--older-than", "0d")
    assert pruned.data["logs"] == {"count": 1}
    assert call(root, "status", "--id", "s1").envelope["code"] == "ERR_STORAGE"


def test_neighbours_name_the_record_that_states_the_fact(root: str) -> None:
    call(root, "start", "--id", "s1")
    call(root, "put", "--id", "s1", text=lines(FACT))
    call(root, "commit", "--id", "s1", "--message", "one")
    other = {**FACT, "title": "Retries", "body": "A failed charge is retried on the checkout api."}
    (found,) = call(root, "put", "--id", "s1", text=lines(other)).data["neighbors"]
    assert found["hits"][0]["path"] == PATH
    assert found["hits"][0]["score"] == 1 / 61
    assert found["hits"][0]["arms"] == ["lexical"]


def test_put_refuses_the_whole_call_for_one_bad_line(root: str) -> None:
    call(root, "start", "--id", "s1")
    bad = {**FACT, "title": "Arc", "type": "arc", "body": "An arc is curated."}
    said = call(root, "put", "--id", "s1", text=lines(FACT, bad))
    assert said.status == 1
    assert said.envelope["code"] == "ERR_INVALID_MEMORY"
    assert "reserved path" in said.envelope["error"]
    assert call(root, "status", "--id", "s1").data["ops"] == 0


@pytest.mark.parametrize(
    ("text", "code", "mention"),
    [
        ("", "ERR_MISSING_ARGUMENT", "no operations"),
        ("\n{}", "ERR_MISSING_ARGUMENT", "line 2"),
        ("not json", "ERR_INVALID_FLAG", "line 1"),
        (lines(FACT) + '\n{"op":"link"}', "ERR_INVALID_FLAG", "line 2"),
        (lines({**FACT, "importance": 11}), "ERR_INVALID_FLAG", "importance"),
        (lines({**FACT, "colour": "red"}), "ERR_INVALID_FLAG", "colour"),
    ],
)
def test_bad_line_is_a_usage_error_that_names_it(
    root: str, text: str, code: str, mention: str
) -> None:
    call(root, "start", "--id", "s1")
    said = call(root, "put", "--id", "s1", text=text)
    assert said.status == 2
    assert said.envelope["code"] == code
    assert mention in said.envelope["error"]


def test_starting_a_session_twice_is_refused_unless_forced(root: str) -> None:
    call(root, "start", "--id", "s1")
    said = call(root, "start", "--id", "s1")
    assert said.status == 1
    assert "session.exists" in said.envelope["error"]
    assert said.envelope["suggestions"] == [
        f"memhtml session status --id s1 --repo {root}",
        f"memhtml session start --id s1 --force --repo {root}",
    ]
    assert call(root, "start", "--id", "s1", "--force").status == 0


@pytest.mark.parametrize("command", ["put", "exec", "status", "commit", "rebase"])
def test_unknown_session_is_not_started_by_a_typo(root: str, command: str) -> None:
    words = [command, "--id", "s9"] + (["--message", "m"] if command == "commit" else [])
    text = lines(FACT) if command == "put" else "true\n"
    said = call(root, *words, text=text)
    assert said.status == 1
    assert "session.read" in said.envelope["error"]
    assert f"memhtml session start --id s9 --repo {root}" in said.envelope["suggestions"]


def test_bound_run_shares_one_session_and_refuses_a_duplicate_at_once(root: str) -> None:
    env = {"MEMHTML_SESSION": " run-42 "}
    first = call(root, "put", text=lines(FACT), env=env)
    assert (first.data["id"], first.data["started"]) == ("run-42", True)
    twice = call(root, "put", "--id", "run-42", text=lines({**FACT, "title": "Again"}), env=env)
    assert twice.envelope["code"] == "ERR_INVALID_MEMORY"
    assert f"duplicate of {PATH}" in twice.envelope["error"]
    assert memhtml("write", env=env).envelope["code"] == "ERR_SESSION_BOUND"
    done = call(root, "commit", "--message", "run 42", "--drop-refused", env=env)
    assert done.data["kind"] == "committed"


def test_store_on_another_branch_takes_a_ref(root: str) -> None:
    git(root, "branch", "-m", "main", "master")
    assert call(root, "start", "--id", "s0").data["ref"] == "refs/heads/main"
    assert call(root, "start", "--id", "s1", "--ref", "master").data["ref"] == "refs/heads/master"
    call(root, "put", "--id", "s1", text=lines(FACT))
    done = call(root, "commit", "--id", "s1", "--message", "m")
    assert done.data["worktreeSynced"]
    assert git(root, "status", "--porcelain") == ""


def test_illegal_ref_name_is_a_git_error(root: str) -> None:
    said = call(root, "start", "--id", "s1", "--ref", "a..b")
    assert (said.status, said.envelope["code"]) == (1, "ERR_GIT")


@pytest.mark.parametrize("age", ["7", "7 parsecs", "-1d", "", "1e9d"])
def test_prune_refuses_an_age_without_a_unit(root: str, age: str) -> None:
    said = call(root, "prune", f"--older-than={age}")
    assert (said.status, said.envelope["code"]) == (2, "ERR_INVALID_FLAG")


def test_prune_lists_what_has_not_landed(root: str) -> None:
    call(root, "start", "--id", "s1")
    call(root, "put", "--id", "s1", text=lines(FACT))
    Path(root, ".memhtml/sessions/broken.json").write_text("{", encoding="utf-8")
    said = call(root, "prune", "--older-than", "0 seconds")
    assert [entry["id"] for entry in said.data["unlanded"]] == ["s1"]
    assert said.data["unlanded"][0]["ops"] == 1
    assert said.data["unreadable"] == ["broken"]
    assert call(root, "status", "--id", "s1").data["ops"] == 1


def test_root_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    said = memhtml("session", "start", "--id", "s1", "--repo", str(tmp_path))
    assert (said.status, said.envelope["code"]) == (1, "ERR_GIT")
    assert any(s.startswith("memhtml init") for s in said.envelope["suggestions"])
    assert list(tmp_path.iterdir()) == []


def test_script_that_is_too_large_names_the_limit_and_the_other_way(root: str) -> None:
    call(root, "start", "--id", "s1")
    said = call(root, "exec", "--id", "s1", text="#" * 1_048_576)
    assert (said.status, said.envelope["code"]) == (2, "ERR_INVALID_FLAG")
    assert "1048576" in said.envelope["error"]
    assert "session put" in said.envelope["error"]


def test_recorded_exec_replays_and_a_changed_expectation_fails(root: str, tmp_path: Path) -> None:
    call(root, "start", "--id", "s1")
    fixture = tmp_path / "fixture"
    html = page("A recorded fact holds.")
    script = f"cat > /mnt/memhtml/areas/inbox/r.html <<'H'\n{html}H\necho done\n"
    call(root, "exec", "--id", "s1", "--record", str(fixture), text=script)
    assert memhtml("replay", str(fixture)).data["passed"] == 1
    recorded = json.loads((fixture / "fixture.json").read_text(encoding="utf-8"))
    recorded["expect"]["stdout"] = "other\n"
    (fixture / "fixture.json").write_text(json.dumps(recorded), encoding="utf-8")
    said = memhtml("replay", str(fixture))
    validate_envelope(said.envelope)
    assert said.status == 1
    assert said.data["fixtures"][0]["differences"][0]["field"] == "stdout"
    assert "stdout" in said.stderr
    again = call(root, "exec", "--id", "s1", "--record", str(fixture), text="true\n")
    assert (again.status, again.envelope["code"]) == (2, "ERR_INVALID_FLAG")


def test_replay_of_our_own_recordings_passes() -> None:
    folder = Path(__file__).resolve().parents[2] / "harvest" / "sessions"
    fixtures = sorted(str(path.parent) for path in folder.glob("*/fixture.json"))
    assert len(fixtures) >= 12
    said = memhtml("replay", *fixtures)
    validate_envelope(said.envelope)
    assert said.status == 0, said.stderr
    assert said.data["failed"] == 0
    assert said.data["passed"] + said.data["skipped"] == len(fixtures)


def test_lower_tree_gets_a_new_base_after_the_answer_when_its_delta_grew(root: str) -> None:
    call(root, "start", "--id", "s1")
    call(root, "exec", "--id", "s1", text="true\n")
    facts = [{**FACT, "title": f"Fact {n}", "body": f"Fact {n} is so."} for n in range(30)]
    call(root, "put", "--id", "s1", text=lines(*facts))
    landed = call(root, "commit", "--id", "s1", "--message", "many").data["sha"]
    bases = Path(root, ".memhtml/sandbox/base")
    assert not (bases / landed).exists()
    got = call(root, "exec", "--id", "s1", text="find /mnt/memhtml -name '*.html' | wc -l\n")
    assert got.data["stdout"] == "30\n"
    assert (bases / landed).is_dir()
    again = call(root, "exec", "--id", "s1", text="find /mnt/memhtml -name '*.html' | wc -l\n")
    assert again.data["stdout"] == "30\n"


def test_bad_sandbox_setting_is_refused_before_anything_starts_or_goes(root: str) -> None:
    env = {"MEMHTML_SANDBOX": "bogus"}
    said = call(root, "exec", text="true\n", env={**env, "MEMHTML_SESSION": "run-1"})
    assert (said.status, said.envelope["code"]) == (2, "ERR_INVALID_FLAG")
    assert said.envelope["suggestions"] == ["memhtml help session exec"]
    assert not Path(root, ".memhtml/sessions/run-1.json").exists()
    call(root, "start", "--id", "s1")
    for flags in ([], ["--dry-run"]):
        said = call(root, "prune", "--older-than", "0d", *flags, env=env)
        assert (said.status, said.envelope["code"]) == (2, "ERR_INVALID_FLAG")
    assert call(root, "status", "--id", "s1").status == 0
    assert memhtml("replay", root, env=env).envelope["code"] == "ERR_INVALID_FLAG"
