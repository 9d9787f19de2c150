"""`write` at the command line: whole envelopes (spec `cli` §10 `write`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cli import check_lines
from tests.support.command import memhtml
from tests.support.doors import committed, detail, head, indexed, rows, said, state
from tests.support.session import make_store

from memhtml.schema.envelope import validate_envelope

A = "areas/inbox/relay-limit.html"
TITLE = ("--title", "Relay limit")
CLAIM = ("--claim", "The relay limit is 12.")
TYPE = ("--type", "semantic")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with one memory, for calls that change nothing."""
    root = make_store(str(tmp_path_factory.mktemp("write") / "store"))
    done = memhtml("write", "--repo", root, *TITLE, *CLAIM, *TYPE, env={"MEMHTML_EMBED": "off"})
    assert done.status == 0, done
    return root


def test_a_memory_is_written(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "store"))
    done = memhtml(
        *("write", "--repo", root, *TITLE, *CLAIM, "--type", "procedural"),
        *("--body", "Wait first.", "--body", "```sh\ndrain\n\nwait\n```"),
        *("--tag", "Run book", "--tag", "x", "--entity", "service:relay", "--importance", "7"),
        *("--confidence", "0.125", "--session-id", "s1", "--prompt-id", "p1", "--turn-uuid", "t1"),
        env={"MEMHTML_EMBED": "off"},
    )
    assert (done.status, done.stderr) == (0, "")
    validate_envelope(done.envelope)
    path = "resources/run-book/relay-limit.html"
    found = detail(root, path)
    assert done.envelope == {
        "apiVersion": "1",
        "type": "memory.written",
        "data": {
            "path": path,
            "created": True,
            "deduped": False,
            "existingPath": None,
            "commitSha": head(root),
            "contentHash": found.record.content_hash,
        },
    }
    assert (
        "<mark>The relay limit is 12.</mark> Wait first.</p>\n<figure><pre>"
        in Path(root, path).read_text()
    )
    record = found.record
    assert (record.tags, record.entities) == (("Run book", "x"), ("service:relay",))
    assert (record.importance, record.confidence) == (7, 0.13)
    assert (found.session_id, found.prompt_id, found.turn_uuid) == ("s1", "p1", "t1")
    assert said(root).splitlines()[2:] == ["Memhtml-Session: s1", "Memhtml-Prompt: p1"]
    assert indexed(root) == committed(root)
    assert rows(root, "SELECT link_kind, session_id FROM memory_session_links") == [("wrote", "s1")]


def test_markup_and_an_explicit_path_are_used_as_given(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "store"))
    done = memhtml(
        *("write", "--repo", root, *TITLE, *TYPE, "--path=/areas/net//relay.html"),
        *("--article-html", "<P ID=x><MARK>It is 12.</MARK></P>", "--strict-path", "--body", ""),
        env={"MEMHTML_EMBED": "off"},
    )
    assert done.data["path"] == "areas/net/relay.html"
    text = Path(root, "areas/net/relay.html").read_text()
    assert '<article>\n<p id="x"><mark>It is 12.</mark></p>\n</article>' in text


def test_a_duplicate_answers_with_the_path_that_has_it(store: str) -> None:
    before = state(store)
    done = memhtml("write", "--repo", store, "--title", "Other", *CLAIM, *TYPE)
    validate_envelope(done.envelope)
    assert done.data == {
        "path": A,
        "created": False,
        "deduped": True,
        "existingPath": A,
        "commitSha": None,
        "contentHash": detail(store, A).record.content_hash,
    }
    assert state(store) == before


FAILURES = [
    ((*TITLE, *TYPE), 2, "ERR_MISSING_ARGUMENT", "write needs --claim or --article-html"),
    ((*TITLE, *TYPE, "--claim", " "), 2, "ERR_MISSING_ARGUMENT", "--claim or --article-html"),
    ((), 2, "ERR_MISSING_ARGUMENT", "write needs --title and --type"),
    (
        (*TITLE, *TYPE, *CLAIM, "--article-html", "<p>"),
        *(2, "ERR_INVALID_FLAG", "--article-html excludes --claim"),
    ),
    (
        (*TITLE, *TYPE, "--body", "x", "--article-html", "<p>"),
        *(2, "ERR_INVALID_FLAG", "--article-html excludes --body"),
    ),
    ((*TITLE, *CLAIM, "--type", "essay"), 2, "ERR_INVALID_FLAG", "allowed are episodic, semantic"),
    ((*TITLE, *CLAIM, *TYPE, "--importance", "11"), 2, "ERR_INVALID_FLAG", "from 1 to 10"),
    ((*TITLE, *CLAIM, *TYPE, "--importance", "0"), 2, "ERR_INVALID_FLAG", "from 1 to 10"),
    ((*TITLE, *CLAIM, *TYPE, "--importance", "x"), 2, "ERR_INVALID_FLAG", "a whole number"),
    ((*TITLE, *CLAIM, *TYPE, "--confidence", "1.01"), 2, "ERR_INVALID_FLAG", "from 0 to 1"),
    ((*TITLE, *CLAIM, *TYPE, "--confidence", "high"), 2, "ERR_INVALID_FLAG", "from 0 to 1"),
    ((*TITLE, *CLAIM, *TYPE, "surplus"), 2, "ERR_UNEXPECTED_ARGUMENT", "'surplus'"),
    ((*TITLE, *CLAIM, *TYPE, "--due", "x"), 2, "ERR_INVALID_FLAG", "--due"),
    (
        (*TITLE, *TYPE, "--article-html", "<p class=x>a</p><script>"),
        *(1, "ERR_INVALID_MEMORY", "there are 0; script elements are not allowed; class attribut"),
    ),
    ((*CLAIM, *TYPE, "--title", " "), 1, "ERR_INVALID_MEMORY", "the title is blank"),
    (
        (*TITLE, *TYPE, "--claim", "N.", "--path", "notes/a.html", "--strict-path"),
        *(1, "ERR_INVALID_MEMORY", "not rooted in a PARA bucket"),
    ),
    (
        (*TITLE, *TYPE, "--claim", "N.", "--path=", "--strict-path"),
        *(1, "ERR_INVALID_MEMORY", "is blank"),
    ),
    ((*TITLE, *TYPE, "--claim", "N.", "--path", A), 1, "ERR_WRITE_CONFLICT", f"{A} is taken"),
]


@pytest.mark.parametrize(("words", "status", "code", "text"), FAILURES)
def test_a_failure_says_why_and_writes_nothing(
    store: str, words: tuple[str, ...], status: int, code: str, text: str
) -> None:
    before = state(store)
    done = memhtml("write", "--repo", store, *words)
    validate_envelope(done.envelope)
    assert (done.status, done.envelope["code"]) == (status, code), done.stdout
    assert text in done.envelope["error"]
    check_lines(done.envelope["suggestions"])
    if status == 2:
        assert done.envelope["suggestions"][-1].startswith("memhtml help write")
    assert state(store) == before


def test_a_taken_path_suggests_to_look_and_to_correct(store: str) -> None:
    done = memhtml(
        "write", *TITLE, *TYPE, "--claim", "N.", "--path", A, env={"MEMHTML_ROOT": store}
    )
    assert done.envelope["suggestions"] == [
        f"memhtml read {A}",
        f"memhtml correct {A} --title <title> --claim <sentence>",
    ]


@pytest.mark.parametrize(
    ("env", "status", "code", "text"),
    [
        ({"MEMHTML_EMBED": "best"}, 2, "ERR_INVALID_FLAG", "MEMHTML_EMBED is 'best'"),
        ({"MEMHTML_SESSION": "s1"}, 2, "ERR_SESSION_BOUND", "write is closed in this run"),
        ({"MEMHTML_REFUSE_ENV_ROOT": "1"}, 2, "ERR_REPO_REQUIRED", "--repo"),
        ({"MEMHTML_ROOT": "/nowhere"}, 1, "ERR_GIT", "/nowhere"),
    ],
)
def test_the_environment_may_be_wrong(
    store: str, env: dict[str, str], status: int, code: str, text: str
) -> None:
    done = memhtml("write", *TITLE, *CLAIM, *TYPE, env={"MEMHTML_ROOT": store, **env})
    validate_envelope(done.envelope)
    assert (done.status, done.envelope["code"]) == (status, code)
    assert text in done.envelope["error"]
    if "MEMHTML_SESSION" not in env:  # Those lines need the variable to parse.
        check_lines(done.envelope["suggestions"])


def test_a_damaged_index_is_named_with_its_remedy(tmp_path: Path) -> None:
    root = make_store(str(tmp_path / "store"))
    Path(root, ".memhtml/index.db").write_bytes(b"no database" * 1000)
    before = state(root)
    done = memhtml("write", *TITLE, *CLAIM, *TYPE, env={"MEMHTML_ROOT": root})
    assert done.envelope == {
        "apiVersion": "1",
        "error": "storage operation failed: index.open: .memhtml/index.db: it is damaged",
        "code": "ERR_STORAGE",
        "suggestions": ["memhtml index rebuild"],
    }
    assert (done.status, state(root)) == (1, before)
