"""Every row of spec `cli` §3.2, and the order of checks of §3.3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cli import check_lines, here, parsed

from memhtml.cli import nearest, registry
from memhtml.errors import MemhtmlError

TOKENS = (
    *("session", "start", "exec", "commit", "help", "write", "-", "--", "-h", "-x", "true", "0"),
    *("--force", "--no-force", "--id", "--id=s1", "--timeout-ms=5", "--help", "--help=no"),
    *("--dense", "--dense=maybe", "--repo", "--bogus", "--="),
)


def refusal(*argv: str) -> MemhtmlError:
    with pytest.raises(MemhtmlError) as caught:
        parsed(*argv)
    return caught.value


@pytest.mark.parametrize(
    "argv",
    [
        ("session", "status", "--id", "s1"),
        ("session", "status", "--id=s1"),
        ("--id", "s1", "session", "status"),
        ("session", "--id", "s1", "status"),
        ("session", "status", "--id=other", "--id", "s1"),
        ("session", "status", "--id", "no id", "--id", "s1"),
    ],
)
def test_a_flag_is_read_wherever_it_stands_and_its_last_value_counts(argv: tuple[str, ...]) -> None:
    call = parsed(*argv)
    assert (call.name, call.text("id"), call.args) == ("session status", "s1", [])


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((), False),
        (("--force",), True),
        (("--no-force",), False),
        (("--force", "--no-force"), False),
        (("--force=yes",), True),
        (("--force=TRUE",), True),
        (("--force=1",), True),
        (("--force=No",), False),
        (("--force=0",), False),
        (("--no-force", "--force=true"), True),
    ],
)
def test_a_switch_is_on_off_or_spelled_out(argv: tuple[str, ...], expected: bool) -> None:
    assert parsed("session", "start", "--id", "s1", *argv).switch("force") is expected


def test_a_switch_with_another_value_is_refused() -> None:
    error = refusal("session", "start", "--id", "s1", "--force=maybe")
    assert error.code == "ERR_INVALID_FLAG"
    assert "maybe" in str(error)


def test_a_value_may_be_empty_and_may_hold_an_equals_sign() -> None:
    assert parsed("session", "commit", "--id=s1", "--message=").text("message") == ""
    assert parsed("session", "commit", "--id=s1", "--message=a=b=c").text("message") == "a=b=c"


def test_a_value_may_start_with_one_dash_but_not_with_two() -> None:
    call = parsed("session", "commit", "--id", "s1", "--message", "-x")
    assert call.text("message") == "-x"
    error = refusal("session", "commit", "--message", "--id", "s1")
    assert (error.code, "--message needs a value" in str(error)) == ("ERR_INVALID_FLAG", True)


def test_a_string_flag_at_the_end_of_the_line_is_refused() -> None:
    error = refusal("session", "status", "--id", "s1", "--repo")
    assert (error.code, error.exit_status) == ("ERR_INVALID_FLAG", 2)


def test_a_repeatable_flag_keeps_every_value_in_order_but_the_empty_ones() -> None:
    call = parsed(
        *("session", "exec", "--id", "s1", "--script", "true", "--record", "out"),
        *("--record-path", "b", "--record-path=", "--record-path=a"),
    )
    assert call.texts("record-path") == ["b", "a"]


@pytest.mark.parametrize("name", ["type", "facet", "tag"])
def test_an_empty_value_of_a_repeatable_flag_is_dropped_whatever_it_allows(name: str) -> None:
    assert parsed("search", "relay", f"--{name}=").texts(name) == []
    call = parsed("search", "relay", "--type", "", "--type", "semantic")
    assert call.texts("type") == ["semantic"]


def test_two_dashes_end_the_flags() -> None:
    assert parsed("replay", "--", "--dense", "-h").args == ["--dense", "-h"]


@pytest.mark.parametrize("value", ["x", "", "1.5", "0x10", "1e3", " 5", "+5", "٣", "9" * 40])
def test_a_number_is_an_optional_minus_and_digits(value: str) -> None:
    error = refusal("session", "exec", "--id", "s1", "--script", "true", f"--timeout-ms={value}")
    assert error.code == "ERR_INVALID_FLAG"
    assert "--timeout-ms" in str(error)


@pytest.mark.parametrize("value", ["0", "-5", "600001"])
def test_a_timeout_out_of_range_is_refused(value: str) -> None:
    error = refusal("session", "exec", "--id", "s1", "--script", "true", "--timeout-ms", value)
    assert "from 1 to 600000" in str(error)


@pytest.mark.parametrize("value", ["1", "600000"])
def test_a_timeout_at_either_end_is_taken(value: str) -> None:
    call = parsed("session", "exec", "--id", "s1", "--script", "true", "--timeout-ms", value)
    assert call.number("timeout-ms") == int(value)
    assert "timeout-ms" in call.given


def test_defaults_fill_what_is_absent() -> None:
    call = parsed("session", "exec", "--id", "s1")
    assert (call.text("lang"), call.number("timeout-ms"), call.switch("server")) == (
        "bash",
        30000,
        True,
    )
    assert call.text("file") is None
    assert call.texts("record-path") == []
    assert call.given == {"id"}


def test_a_value_outside_the_allowed_list_is_refused_with_the_list() -> None:
    ran = here("session", "exec", "--id", "s1", "--lang", "python")
    assert ran.code == "ERR_INVALID_FLAG"
    assert "bash, js" in ran.envelope["error"]
    assert ran.suggestions[-1] == "memhtml help session exec"


@pytest.mark.parametrize(
    ("stray", "spellings"),
    [
        ("false", ("--force=false", "--no-force")),
        ("NO", ("--force=false", "--no-force")),
        ("0", ("--force=false", "--no-force")),
        ("true", ("--force=true", "--force")),
        ("1", ("--force=true", "--force")),
    ],
)
def test_a_word_meant_as_a_switch_value_is_refused_with_both_spellings(
    stray: str, spellings: tuple[str, str]
) -> None:
    ran = here("session", "start", "--id", "s1", "--force", stray)
    assert (ran.status, ran.code) == (2, "ERR_INVALID_FLAG")
    assert [line.rpartition(" ")[2] for line in ran.suggestions[:2]] == list(spellings)
    check_lines(ran.suggestions)


def test_a_stray_word_after_the_negated_switch_means_the_opposite() -> None:
    ran = here("session", "start", "--id", "s1", "--no-force", "true")
    assert [line.rpartition(" ")[2] for line in ran.suggestions[:2]] == [
        "--force=false",
        "--no-force",
    ]


def test_a_stray_word_is_named_before_an_unknown_flag() -> None:
    assert "yes" in str(refusal("session", "start", "--bogus", "--force", "yes"))


@pytest.mark.parametrize(
    "flag", ["--bogus", "-x", "--no-bogus", "--no-id", "--no-force=true", "--=x"]
)
def test_an_unknown_flag_is_refused(flag: str) -> None:
    error = refusal("session", "start", "--id", "s1", flag)
    assert error.code == "ERR_INVALID_FLAG"
    assert flag in str(error)


def test_a_flag_of_another_command_suggests_the_commands_that_have_it() -> None:
    ran = here("session", "status", "--id", "s1", "--dry-run")
    assert ran.code == "ERR_INVALID_FLAG"
    assert ran.suggestions == [
        "memhtml session prune --older-than 7d --dry-run",
        "memhtml index embed --dry-run",
        "memhtml help session status",
    ]


def test_a_slip_in_a_flag_suggests_the_flag() -> None:
    ran = here("session", "exec", "--id", "s1", "--timeout", "5")
    assert ran.suggestions[0] == "memhtml session exec --id <id> --timeout-ms 30000"
    check_lines(ran.suggestions)


def test_json_is_a_flag_of_help_alone() -> None:
    ran = here("manifest", "--json")
    assert (ran.code, ran.suggestions[0]) == ("ERR_INVALID_FLAG", "memhtml help --json")


def test_all_that_is_missing_is_said_at_once() -> None:
    ran = here("session", "commit")
    assert (ran.status, ran.code) == (2, "ERR_MISSING_ARGUMENT")
    for part in ("--id", "MEMHTML_SESSION", "--message"):
        assert part in ran.envelope["error"]
    assert ran.suggestions == [
        "memhtml session commit --id <id> --message <text>",
        "memhtml help session commit",
    ]


def test_the_variable_stands_for_an_absent_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHTML_SESSION", " run-42 ")
    session = parsed("session", "status").session()
    assert (session.id, session.from_variable, session.run_bound) == ("run-42", True, True)


@pytest.mark.parametrize(("given", "bound"), [(" run-42 ", True), ("other", False)])
def test_an_id_on_the_line_is_run_bound_only_when_it_equals_the_variable(
    monkeypatch: pytest.MonkeyPatch, given: str, bound: bool
) -> None:
    monkeypatch.setenv("MEMHTML_SESSION", "run-42")
    session = parsed("session", "status", "--id", given).session()
    assert (session.id, session.from_variable, session.run_bound) == (given.strip(), False, bound)


def test_a_bad_variable_is_refused_where_it_would_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHTML_SESSION", "../x")
    error = refusal("session", "commit")
    assert (error.code, "MEMHTML_SESSION" in str(error)) == ("ERR_INVALID_FLAG", True)
    assert parsed("session", "status", "--id", "s1").session().run_bound is False
    assert parsed("session", "prune", "--older-than", "7d").name == "session prune"


@pytest.mark.parametrize("value", ["", " ", ".x", "a/b", "é", "a" * 129, "a b", "-a", "a\n/"])
def test_a_bad_id_is_refused_naming_the_flag(value: str) -> None:
    error = refusal("session", "status", f"--id={value}")
    assert (error.code, "--id" in str(error)) == ("ERR_INVALID_FLAG", True)


@pytest.mark.parametrize("value", ["a", "0", "A.b_c-d", "s.lock", "a" * 128])
def test_a_good_id_is_taken(value: str) -> None:
    assert parsed("session", "status", "--id", value).session().id == value


@pytest.mark.parametrize(
    "argv",
    [
        ("manifest", "more"),
        ("init", "-"),
        ("session", "put", "--id", "s1", "-"),
        ("session", "exec", "--id", "s1", "script.sh"),
        ("session", "exec", "--id", "s1", "-", "-"),
        ("session", "status", "s1", "--id", "s1"),
        ("replay", "-"),
        ("replay", "a", "-"),
    ],
)
def test_a_surplus_positional_is_refused(argv: tuple[str, ...]) -> None:
    ran = here(*argv)
    assert (ran.status, ran.code) == (2, "ERR_UNEXPECTED_ARGUMENT")
    check_lines(ran.suggestions)


def test_a_script_given_as_a_word_suggests_the_file_flag() -> None:
    ran = here("session", "exec", "--id", "s1", "my script.sh")
    assert ran.suggestions[0] == "memhtml session exec --id <id> --file 'my script.sh'"


@pytest.mark.parametrize("command", ["search", "recall", "head search"])
def test_a_query_of_several_words_is_suggested_in_quotes(command: str) -> None:
    ran = here(*command.split(), "a refund's", "time")
    assert (ran.status, ran.code) == (2, "ERR_UNEXPECTED_ARGUMENT")
    quoted = f"memhtml {command} 'a refund'\"'\"'s time'"
    assert ran.suggestions == [quoted, f"memhtml help {command}"]


def test_exec_takes_a_dash_for_standard_input() -> None:
    assert parsed("session", "exec", "--id", "s1", "-").args == ["-"]


def test_replay_takes_many_folders() -> None:
    assert parsed("replay", "a", "b", "c").args == ["a", "b", "c"]


@pytest.mark.parametrize(
    "sources",
    [
        ("--script", "true", "--file", "x"),
        ("--script", "true", "-"),
        ("--file", "x", "-"),
        ("--file", "-", "-"),
    ],
)
def test_a_script_from_two_places_is_refused(sources: tuple[str, ...]) -> None:
    assert refusal("session", "exec", "--id", "s1", *sources).code == "ERR_INVALID_FLAG"


def test_record_path_without_record_is_refused() -> None:
    error = refusal("session", "exec", "--id", "s1", "--record-path", "areas/")
    assert error.code == "ERR_INVALID_FLAG"


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("nothing", "--bogus", "--force", "true"), "ERR_UNKNOWN_COMMAND"),
        (("session", "commit", "--force", "true", "--bogus", "x"), "ERR_INVALID_FLAG"),
        (("session", "commit", "--bogus", "x"), "ERR_INVALID_FLAG"),
        (("session", "commit", "surplus"), "ERR_MISSING_ARGUMENT"),
        (("session", "commit", "--id", "!", "surplus"), "ERR_INVALID_FLAG"),
        (("session", "exec", "--id=s", "s", "--script=a", "--file=b"), "ERR_UNEXPECTED_ARGUMENT"),
    ],
)
def test_the_first_failing_check_answers(argv: tuple[str, ...], code: str) -> None:
    assert refusal(*argv).code == code


def test_an_argument_that_is_not_utf8_is_refused_but_in_paths() -> None:
    broken = b"\xff".decode("utf-8", "surrogateescape")
    assert refusal("session", "commit", "--id=s1", f"--message={broken}").code == "ERR_INVALID_FLAG"
    assert parsed("session", "put", "--id=s1", f"--file={broken}").text("file") == broken


@pytest.mark.parametrize(
    ("argv", "first"),
    [
        (("sesion", "commit"), "memhtml session commit --id <id> --message <text>"),
        (("session", "exce"), "memhtml session exec --id <id>"),
        (("SESSION", "PRUNE"), "memhtml session prune --older-than 7d"),
        (("reply",), "memhtml replay <dir>"),
        (("manifset",), "memhtml manifest"),
        # What follows the name are arguments.
        (("serach", "how long does a refund take"), "memhtml search <query>"),
        (("task", "lst", "projects/infra/tasks/a.html"), "memhtml task list"),
        (("index", "/srv/notes/areas/inbox"), "memhtml help index rebuild"),
    ],
)
def test_a_slip_in_a_command_suggests_the_command(argv: tuple[str, ...], first: str) -> None:
    ran = here(*argv)
    assert (ran.status, ran.code, ran.suggestions[0]) == (2, "ERR_UNKNOWN_COMMAND", first)
    assert len(ran.suggestions) <= 4
    check_lines(ran.suggestions)


def test_a_word_near_nothing_suggests_help() -> None:
    assert here("xyzzyplughquux" * 4).suggestions == ["memhtml help"]


@pytest.mark.parametrize("argv", [("session",), ("session", "bogus"), ("",), ("help", "nothing")])
def test_words_that_name_no_command_are_refused(argv: tuple[str, ...]) -> None:
    ran = here(*argv)
    assert (ran.status, ran.code) == (2, "ERR_UNKNOWN_COMMAND")
    check_lines(ran.suggestions)


@given(st.text("abcde", max_size=7), st.text("abcde", max_size=7))
def test_the_distance_agrees_with_its_definition(left: str, right: str) -> None:
    def slow(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        swap = slow(a[1:], b[1:]) + (a[0] != b[0])
        return swap if a[0] == b[0] else min(swap, slow(a[1:], b) + 1, slow(a, b[1:]) + 1)

    assert nearest.distance(left, right) == slow(left, right)


@given(
    st.lists(
        st.one_of(
            st.sampled_from(TOKENS),
            st.text(max_size=5),
        ),
        max_size=7,
    )
)
def test_any_words_are_a_call_or_a_usage_error(argv: list[str]) -> None:
    try:
        call = parsed(*argv)
    except MemhtmlError as error:
        assert error.code in registry.USAGE_ERROR_CODES
        assert error.exit_status == 2
        check_lines(error.suggestions)
    else:
        assert call.name in registry.BY_NAME


def test_a_flag_name_has_one_type_across_the_table() -> None:
    seen: dict[str, str] = {}
    for command in registry.COMMANDS:
        for flag in (*registry.GLOBAL_FLAGS, *command.flags):
            assert seen.setdefault(flag.name, flag.type) == flag.type
            assert not flag.name.startswith("no-")
    assert seen == registry.flag_types()


@pytest.mark.parametrize(
    ("word", "wanted"),
    [("session", "memhtml help session start"), ("Exec", "memhtml help session exec")],
)
def test_one_word_of_a_pair_suggests_help_with_the_pairs_that_have_it(
    word: str, wanted: str
) -> None:
    ran = here(word)
    assert (ran.code, ran.suggestions[0]) == ("ERR_UNKNOWN_COMMAND", wanted)
    check_lines(ran.suggestions)
