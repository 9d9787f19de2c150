"""The four closed doors: `ERR_SESSION_BOUND` (spec `cli` §6.2, `sessions` §11)."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests.support.cli import check_lines, here

from memhtml.cli import registry
from memhtml.cli.inputs import PUT_OPS
from memhtml_format.jsonl import decode_lines

DOORS = [("write",), ("apply",), ("correct",), ("task", "add")]
PIPE = " | memhtml session put"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root that `MEMHTML_ROOT` names; it needs no repository for a policy to be read."""
    monkeypatch.setenv("MEMHTML_ROOT", str(tmp_path))
    return tmp_path


def set_doors(store: Path, value: str) -> None:
    (store / "memhtml.config.json").write_text(json.dumps({"v1Doors": value}))


def piped_object(line: str) -> dict[str, object]:
    """The JSON of a `printf … | memhtml session put` line, as a shell would pass it."""
    command, _, _ = line.partition(PIPE)
    printf, template, text = shlex.split(command)
    assert (printf, template) == ("printf", "%s\\n")
    [decoded] = decode_lines(text + "\n", ops=PUT_OPS, command="session put")
    assert decoded.number == 1
    value = json.loads(text)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "rest", [(), ("--title",), ("--bogus", "--force", "true"), ("surplus", "words", "--dense")]
)
def test_a_bound_run_closes_the_doors_before_any_other_check(
    door: tuple[str, ...], rest: tuple[str, ...], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMHTML_SESSION", "run-42")
    ran = here(*door, *rest)
    assert (ran.status, ran.code) == (2, "ERR_SESSION_BOUND")
    assert "MEMHTML_SESSION" in ran.envelope["error"]
    assert list(store.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "door"),
    [
        (("--title", "help me", "write"), "write"),
        (("--dense", "task", "add"), "task add"),
        (("write", "task", "add"), "write"),
        (("apply", "-"), "apply"),
        (("--entity", "a:b", "correct", "areas/x.html"), "correct"),
    ],
)
def test_a_door_is_known_by_its_words_wherever_flags_stand(
    argv: tuple[str, ...], door: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMHTML_SESSION", "run-42")
    ran = here(*argv)
    assert (ran.code, door in ran.envelope["error"]) == ("ERR_SESSION_BOUND", True)


@pytest.mark.parametrize(
    ("door", "memory_type", "then"),
    [
        (("write",), "semantic", ["memhtml session exec <<'SH'", "memhtml session status"]),
        (("apply",), "semantic", ["memhtml session exec <<'SH'", "memhtml session status"]),
        (("correct",), "semantic", ["memhtml session exec <<'SH'"]),
        (("task", "add"), "task", ["memhtml session status"]),
    ],
)
def test_the_suggestions_pipe_a_line_the_put_decoder_takes_and_then_name_session_commands(
    door: tuple[str, ...],
    memory_type: str,
    then: list[str],
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MEMHTML_SESSION", "run-42")
    first, *rest = here(*door).suggestions
    assert first.endswith(f"{PIPE} --file -")
    line = piped_object(first)
    assert (line["op"], line["type"]) == ("write", memory_type)
    assert {"title", "body", "entity"} < set(line)
    assert rest == then
    check_lines([first, *rest])


@pytest.mark.parametrize("door", DOORS)
def test_a_policy_of_closed_closes_an_unbound_run_too(door: tuple[str, ...], store: Path) -> None:
    set_doors(store, "closed")
    ran = here(*door)
    assert (ran.status, ran.code) == (2, "ERR_SESSION_BOUND")
    assert "v1Doors" in ran.envelope["error"]
    start, put, *_ = ran.suggestions
    assert start == "memhtml session start --id <id>"
    assert put.endswith(f"{PIPE} --id <id> --file -")
    assert all("--id <id>" in line for line in ran.suggestions)
    check_lines(ran.suggestions)


def test_a_policy_of_closed_needs_no_id_where_the_variable_gives_it(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_doors(store, "closed")
    monkeypatch.setenv("MEMHTML_SESSION", "run-42")
    assert not any("--id" in line for line in here("write").suggestions)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("variable", ["run-42", "no id at all", None])
def test_a_policy_of_open_leaves_the_door_open(
    door: tuple[str, ...], variable: str | None, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_doors(store, "open")
    if variable is not None:
        monkeypatch.setenv("MEMHTML_SESSION", variable)
    # The root is no repository, so a door that is open gets as far as its own checks.
    assert here(*door, "--bogus").code == "ERR_INVALID_FLAG"


@pytest.mark.parametrize("variable", [None, "", "  "])
def test_an_unbound_run_finds_the_doors_open(
    variable: str | None, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable is not None:
        monkeypatch.setenv("MEMHTML_SESSION", variable)
    for door in DOORS:
        assert here(*door, "--bogus").code == "ERR_INVALID_FLAG"


def test_a_bad_variable_is_named_at_a_door_it_would_close(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMHTML_SESSION", "not an id")
    for door in DOORS:
        ran = here(*door)
        assert (ran.status, ran.code) == (2, "ERR_INVALID_FLAG")
        assert "MEMHTML_SESSION" in ran.envelope["error"]
        assert ran.envelope["suggestions"] == [f"memhtml help {' '.join(door)}"]


def test_a_policy_that_cannot_be_read_keeps_the_door_shut(store: Path) -> None:
    (store / "memhtml.config.json").write_text('{"v1doors": "open"}')
    ran = here("write")
    assert (ran.status, ran.code) == (1, "ERR_STORAGE")
    assert "policy.invalid" in ran.envelope["error"]


def test_the_policy_is_read_from_the_root_the_call_names(tmp_path: Path) -> None:
    (tmp_path / "memhtml.config.json").write_text('{"v1Doors": "closed"}')
    assert here("write", "--repo", str(tmp_path)).code == "ERR_SESSION_BOUND"
    assert here("--repo", str(tmp_path), "task", "add").code == "ERR_SESSION_BOUND"


def test_a_refused_environment_root_means_the_default_policy(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_doors(store, "open")
    monkeypatch.setenv("MEMHTML_REFUSE_ENV_ROOT", "1")
    monkeypatch.setenv("MEMHTML_SESSION", "run-42")
    assert here("write").code == "ERR_SESSION_BOUND"


def test_help_about_a_door_is_help_and_no_refusal(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMHTML_SESSION", "run-42")
    for argv, name in ((("write", "--help"), "write"), (("help", "task", "add"), "task add")):
        ran = here(*argv)
        assert (ran.status, ran.data["name"]) == (0, name)


def test_every_other_command_stays_open_in_a_bound_run(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_doors(store, "closed")
    monkeypatch.setenv("MEMHTML_SESSION", "run-42")
    assert set(registry.DOORS) < set(registry.BY_NAME)
    for name in set(registry.BY_NAME) - set(registry.DOORS):
        assert here(*name.split(), "--bogus").envelope.get("code") != "ERR_SESSION_BOUND", name
