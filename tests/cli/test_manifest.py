"""`manifest` and `help` (spec `cli` §3.6, §3.7, §10), and that the table is about this build."""

from __future__ import annotations

from importlib import import_module

import pytest
from tests.support.cli import check_lines, fresh, here, parsed, words

from memhtml import __version__
from memhtml.cli import guide, registry

FLAG_KEYS = ["name", "type", "description", "values", "required", "repeatable", "default"]


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("manifest",),
        ("help",),
        ("--help",),
        ("-h",),
        ("--version",),
        ("--repo", "/nowhere"),
        ("--",),
        ("help", "--json"),
        ("--bogus", "--help"),
        ("--help", "--force", "true"),
    ],
)
def test_the_manifest_answers_every_way_of_asking(argv: tuple[str, ...]) -> None:
    ran = here(*argv)
    assert (ran.status, ran.envelope["type"]) == (0, "cli.manifest")
    assert ran.stdout == here("manifest").stdout


def test_the_manifest_has_its_fields_in_order() -> None:
    data = here("manifest").data
    assert list(data) == [
        *("name", "version", "summary", "apiVersion", "guide", "globalFlags", "errorCodes"),
        *("config", "responseTypes", "commands"),
    ]
    assert (data["name"], data["version"], data["apiVersion"]) == ("memhtml", __version__, "1")
    assert [entry["topic"] for entry in data["guide"]] == [
        *("first-call", "write-surfaces", "when-to-batch", "conflicts", "authoring", "code-mode"),
        "recall-discipline",
    ]
    assert [flag["name"] for flag in data["globalFlags"]] == ["dense", "repo", "help"]
    assert len(data["errorCodes"]) == 23
    assert all(list(each) == ["name", "description", "fallback"] for each in data["config"])


def test_flags_and_arguments_list_only_the_keys_that_apply() -> None:
    for command in here("manifest").data["commands"]:
        assert list(command) == [
            *("name", "summary", "args", "flags", "responseTypes", "examples"),
            *("supportsJson", "supportsDense"),
        ]
        for flag in command["flags"]:
            assert list(flag) == [key for key in FLAG_KEYS if key in flag]
            assert flag.get("required") in (None, True)
            assert flag.get("repeatable") in (None, True)
        for arg in command["args"]:
            assert set(arg) - {"repeatable"} == {"name", "description", "required"}


def test_the_commands_of_the_build_are_listed_in_order() -> None:
    assert [each["name"] for each in here("manifest").data["commands"]] == [
        *("manifest", "help", "init", "write", "apply", "correct", "link", "archive"),
        *("task add", "task status", "read", "status", "neighbors", "resolve", "reinforce"),
        *("list", "entity activity", "task list", "state export", "state import"),
        *("exec", "agents-doc", "replay", "session start", "session put", "session exec"),
        *("session status", "session commit", "session rebase", "session prune"),
        *("search", "recall", "index rebuild", "index update", "index embed", "index status"),
        *("doctor", "publish", "head status", "head search", "head snapshot", "head embed"),
        "eval discriminate",
    ]


def test_every_command_has_a_handler_and_only_listed_types() -> None:
    used: set[str] = set()
    for command in registry.COMMANDS:
        module, _, function = command.handler.partition(":")
        assert callable(getattr(import_module(f"memhtml.cli.commands.{module}"), function))
        used.update(command.types)
    assert used == set(registry.RESPONSE_TYPES)


def test_every_example_parses_and_calls_its_own_command() -> None:
    for command in registry.COMMANDS:
        assert command.examples
        for example in command.examples:
            assert parsed(*words(example)).name == command.name


def test_codes_types_and_variables_are_described_once_each() -> None:
    assert list(guide.CODES) == list(registry.ERROR_CODES)
    assert list(guide.TYPES) == list(registry.RESPONSE_TYPES)
    assert len(set(registry.ERROR_CODES)) == len(registry.ERROR_CODES)
    assert {name for name, _, _ in guide.VARIABLES} >= {"MEMHTML_ROOT", "MEMHTML_SESSION"}


def test_usage_codes_exit_two_in_the_description_too() -> None:
    from memhtml.errors import USAGE_CODES

    assert {code for code, (status, _) in guide.CODES.items() if status == "2"} == {
        *USAGE_CODES,
        "ERR_PATH_NOT_FOUND",
    }


@pytest.mark.parametrize(
    "argv",
    [
        ("help", "session", "exec"),
        ("session", "exec", "--help"),
        ("session", "exec", "-h"),
        ("-h", "session", "exec"),
        ("help", "session", "exec", "--bogus", "--lang", "perl"),
        ("session", "exec", "--help", "--timeout-ms", "x", "--json"),
        ("session", "exec", "more", "words", "--help", "true"),
    ],
)
def test_help_describes_one_command_and_ignores_the_other_flags(argv: tuple[str, ...]) -> None:
    ran = here(*argv)
    assert (ran.status, ran.envelope["type"], ran.data["name"]) == (0, "cli.help", "session exec")


def test_help_is_the_entry_and_four_fields_more() -> None:
    for command in here("manifest").data["commands"]:
        shown = here("help", *command["name"].split()).data
        assert {key: shown[key] for key in command} == command
        assert list(shown)[len(command) :] == [
            *("usage", "globalFlags", "usageErrorCodes", "seeAlso"),
        ]


def test_usage_lines_show_what_is_required_and_what_repeats() -> None:
    assert here("help", "replay").data["usage"] == "memhtml replay <dir>... [flags]"
    assert here("help", "help").data["usage"] == "memhtml help [command]... [flags]"
    assert here("help", "session", "exec").data["usage"] == "memhtml session exec [-] [flags]"
    assert here("help", "init").data["usage"] == "memhtml init [flags]"


def test_related_commands_share_the_first_word_or_a_type() -> None:
    assert here("help", "manifest").data["seeAlso"] == ["help"]
    assert here("help", "session", "put").data["seeAlso"] == [
        *("session start", "session exec", "session status", "session commit"),
        *("session rebase", "session prune"),
    ]
    assert here("help", "init").data["seeAlso"] == []


def test_help_of_a_first_word_suggests_its_commands() -> None:
    ran = here("help", "session")
    assert (ran.status, ran.code) == (2, "ERR_UNKNOWN_COMMAND")
    assert ran.suggestions[0] == "memhtml help session start"
    assert len(ran.suggestions) == 7
    check_lines(ran.suggestions)


def test_help_of_an_unknown_word_suggests_near_ones() -> None:
    for argv in (("help", "reply"), ("reply", "--help")):
        assert here(*argv).suggestions[0] == "memhtml help replay"


def test_help_on_a_terminal_is_markdown_and_json_asks_for_the_envelope() -> None:
    page = here("help", "session", "commit", terminal=True).stdout.decode()
    headings = [line for line in page.splitlines() if line.startswith("#")]
    assert headings == [
        "# memhtml session commit",
        *("## Usage", "## Flags", "## Global flags", "## Response", "## Errors", "## Examples"),
        "## See also",
    ]
    assert "\x1b" not in page
    assert here("help", terminal=True).stdout.decode().startswith("# memhtml\n")
    assert here("help", "--json", terminal=True).envelope["type"] == "cli.manifest"
    assert here("init", "-h", "--json", terminal=True).envelope["type"] == "cli.help"
    assert here("help", "nothing", terminal=True).code == "ERR_UNKNOWN_COMMAND"
    assert here("manifest", terminal=True).envelope["type"] == "cli.manifest"
    assert here(terminal=True).envelope["type"] == "cli.manifest"


def test_dense_is_kept_beside_help() -> None:
    assert here("init", "--help", "--dense").stdout.count(b"\n") == 1


def test_the_manifest_needs_no_store_and_makes_none(tmp_path: object) -> None:
    ran = fresh(env={"MEMHTML_ROOT": f"{tmp_path}/none", "MEMHTML_REFUSE_ENV_ROOT": "1"})
    assert (ran.status, ran.stderr, ran.envelope["type"]) == (0, "", "cli.manifest")
