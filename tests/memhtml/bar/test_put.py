"""How the write bar judges puts (spec `write-bar` §4.3, §5.1, §10)."""

from __future__ import annotations

import pytest
from tests.support.bar import STRICT, A, B, C, corpus, judged, kinds, only_reason, page, reasons

from memhtml.policy import Policy
from memhtml_format.ops import AddLabel, Archive, Move, Put
from memhtml_format.violations import Violation, sentence
from memhtml_format.vocab import TYPES

TWIN = f"archive/2026/{A}"


def test_new_fact_at_a_free_path_passes() -> None:
    assert judged(corpus({}), Put(A, page("the ttl is five"))) == []


def test_path_problem_comes_first_and_is_marked() -> None:
    found = judged(corpus({}), Put("notes/a.txt", "<p>no claim"))
    assert kinds(found) == [("format", "notes/a.txt")]
    assert found[0].reasons[0].startswith("path: ")
    assert len(found[0].reasons) > 2
    for reason in found[0].reasons:
        assert reason in sentence(found[0])


def test_put_with_active_content_is_format() -> None:
    html = page("the ttl is five").replace("</article>", "<iframe></iframe></article>")
    assert "iframe" in only_reason(judged(corpus({}), Put(A, html)), "format", A)


def test_put_of_half_a_character_is_format() -> None:
    found = judged(corpus({}), Put(A, page("the ttl is \ud800")))
    assert kinds(found) == [("format", A)]


def test_put_with_format_is_as_if_absent() -> None:
    bad = page("the ttl is five").replace("memhtml-type", "memhtml-kind")
    found = judged(
        corpus({}),
        Put(A, bad),
        AddLabel(A, "system:cache"),
        Put(B, page("the ttl is five")),
    )
    assert kinds(found) == [("format", A), ("format", A)]


def test_put_of_a_live_article_is_a_duplicate_naming_the_record() -> None:
    base = corpus({A: page("the ttl is five")})
    found = judged(base, Put(B, page("the ttl is five", title="Another title")))
    assert found == [Violation("duplicate", B, existing=A)]
    text = sentence(found[0])
    assert text.startswith(B)
    assert f"duplicate of {A}" in text
    assert "search first" in text
    assert "link to" in text


def test_duplicate_names_the_base_record_before_a_put_and_the_first_by_path() -> None:
    base = corpus({B: page("the ttl is five"), A: page("the ttl is five")})
    found = judged(
        base, Put(C, page("the ttl is five")), Put("areas/x.html", page("the ttl is five"))
    )
    assert [violation.existing for violation in found] == [A, A]


def test_duplicate_within_the_batch_names_the_earliest_put() -> None:
    html = page("the ttl is five")
    found = judged(corpus({}), Put(C, html), Put(B, html), Put(A, html))
    assert found == [
        Violation("duplicate", B, existing=C),
        Violation("duplicate", A, existing=C),
    ]


def test_same_bytes_over_their_own_path_are_a_duplicate_of_themselves() -> None:
    base = corpus({A: page("the ttl is five")})
    found = judged(base, Put(A, page("the ttl is five")))
    assert found == [Violation("duplicate", A, existing=A)]
    again = judged(corpus({}), Put(A, page("x is new")), Put(A, page("x is new")))
    assert again == [Violation("duplicate", A, existing=A)]


def test_live_record_with_status_archived_still_makes_a_duplicate() -> None:
    retired = page("the ttl is five").replace(
        'status" content="active"', 'status" content="archived"'
    )
    found = judged(corpus({A: retired}), Put(B, page("the ttl is five")))
    assert kinds(found) == [("duplicate", B)]


def test_archived_record_makes_no_duplicate() -> None:
    assert judged(corpus({TWIN: page("the ttl is five")}), Put(B, page("the ttl is five"))) == []


def test_task_is_not_exempt_from_duplicate() -> None:
    task = page("renew the certificate", kind="task")
    assert kinds(judged(corpus({A: task}), Put(B, task))) == [("duplicate", B)]


def test_archiving_the_old_copy_does_not_free_its_article() -> None:
    html = page("the ttl is five")
    base = corpus({A: html})
    found = judged(base, Archive(A, TWIN, html), Put(B, html))
    assert found == [Violation("duplicate", B, existing=A)]


def test_other_fact_over_a_record_is_a_claim_edit() -> None:
    found = judged(corpus({A: page("the ttl is five")}), Put(A, page("the ttl is ten")))
    assert found == [Violation("claim-edit", A)]
    text = sentence(found[0])
    assert text.startswith(A)
    assert "active record" in text
    assert "never edited in place" in text
    assert "memhtml-supersedes" in text


def test_other_fact_over_an_archived_record_is_a_claim_edit() -> None:
    found = judged(corpus({TWIN: page("the ttl is five")}), Put(TWIN, page("the ttl is ten")))
    assert found == [Violation("claim-edit", TWIN)]


@pytest.mark.parametrize("to", [TWIN, "projects/p/a.html"])
def test_path_that_a_record_left_in_this_batch_is_still_held(to: str) -> None:
    old = page("the ttl is five")
    leave = Archive(A, to, old) if to == TWIN else Move(A, to, old)
    found = judged(corpus({A: old}), leave, Put(A, page("the ttl is ten")))
    assert found == [Violation("claim-edit", A)]


@pytest.mark.parametrize("to", [TWIN, "projects/p/a.html"])
def test_path_that_a_record_reached_in_this_batch_is_held(to: str) -> None:
    old = page("the ttl is five")
    come = Archive(A, to, old) if to == TWIN else Move(A, to, old)
    found = judged(corpus({A: old}), come, Put(to, page("the ttl is ten")))
    assert found == [Violation("claim-edit", to)]


def test_put_over_a_put_of_the_same_log_replaces_it() -> None:
    assert judged(corpus({}), Put(A, page("x is one")), Put(A, page("x is two"))) == []


def test_replaced_put_still_counts_for_duplicate() -> None:
    found = judged(
        corpus({}), Put(A, page("x is one")), Put(A, page("x is two")), Put(B, page("x is one"))
    )
    assert found == [Violation("duplicate", B, existing=A)]


def test_put_at_a_free_archive_slot_passes_and_meets_no_policy() -> None:
    policy = Policy(frozenset({"episodic"}), require_anchor=True)
    assert judged(corpus({}), Put(TWIN, page("x ran", kind="episodic")), policy=policy) == []


@pytest.mark.parametrize(
    "path",
    [
        "archive/x.html",
        "archive/2026.1/areas/a.html",
        "archive/2026/x.html",
        "archive/26/areas/a.html",
    ],
)
def test_put_under_archive_outside_a_slot_fails_the_path_rule(path: str) -> None:
    reason = only_reason(judged(corpus({}), Put(path, page("x is new"))), "format", path)
    assert reason.startswith("path: ")


def test_put_is_not_asked_for_its_link_targets() -> None:
    html = page("x is new", links=[("supports", "/areas/inbox/none.html")])
    assert judged(corpus({}), Put(A, html)) == []


def test_file_that_does_not_parse_may_be_replaced() -> None:
    assert judged(corpus({}, others=[A]), Put(A, page("x is new"))) == []


def test_writing_below_a_record_is_format() -> None:
    below = f"{A}/x.html"
    reason = only_reason(
        judged(corpus({A: page("x is")}), Put(below, page("y is"))), "format", below
    )
    assert A in reason


def test_writing_below_a_record_that_this_batch_archives_is_format() -> None:
    old, below = page("the ttl is five"), f"{A}/x.html"
    found = judged(corpus({A: old}), Archive(A, TWIN, old), Put(below, page("y is")))
    assert kinds(found) == [("format", below)]


def test_writing_at_the_folder_of_a_record_is_format() -> None:
    inner = "areas/x.html/y.html"
    found = judged(corpus({inner: page("y is")}), Put("areas/x.html", page("x is")))
    assert inner in only_reason(found, "format", "areas/x.html")


@pytest.mark.parametrize("first_is_outer", [True, False])
def test_put_below_or_above_an_earlier_put_is_format(first_is_outer: bool) -> None:
    outer, inner = Put("areas/x.html", page("x is")), Put("areas/x.html/y.html", page("y is"))
    ops = (outer, inner) if first_is_outer else (inner, outer)
    assert kinds(judged(corpus({}), *ops)) == [("format", ops[1].path)]


def test_put_below_a_refused_put_is_free() -> None:
    found = judged(corpus({}), Put("areas/x.html", "<p>"), Put("areas/x.html/y.html", page("y is")))
    assert kinds(found) == [("format", "areas/x.html")]


def test_writing_below_a_file_that_is_no_record_is_format() -> None:
    found = judged(corpus({}, others=["areas/notes"]), Put("areas/notes/deep/x.html", page("x is")))
    assert "areas/notes" in only_reason(found, "format", "areas/notes/deep/x.html")


def test_writing_at_a_folder_without_records_is_format() -> None:
    found = judged(
        corpus({}, others=["areas/x.html/picture.png"]), Put("areas/x.html", page("x is"))
    )
    assert "folder" in only_reason(found, "format", "areas/x.html")


def test_tree_is_not_asked_about_folders_that_hold_records() -> None:
    base = corpus({A: page("a is here"), "projects/p/deep/x.html": page("x is here")})
    ops = [Put(f"projects/p/deep/n{n}.html", page(f"n is {n}")) for n in range(5)]
    assert judged(base, *ops) == []
    assert base.tree_questions == [op.path for op in ops]


def test_tree_is_asked_once_about_a_new_folder() -> None:
    base = corpus({A: page("a is here")})
    ops = [Put(f"areas/new/deep/n{n}.html", page(f"n is {n}")) for n in range(5)]
    assert judged(base, *ops) == []
    assert base.tree_questions == ["areas/new"]


def test_tree_is_not_asked_when_nothing_is_written() -> None:
    base = corpus({A: page("a is here")})
    assert judged(base, AddLabel(A, "system:cache")) == []
    assert base.tree_questions == []


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("scope", ["session", "curate"])
def test_refused_type_is_below_the_bar_with_one_reason(kind: str, scope: str) -> None:
    policy = Policy(frozenset({kind}))
    found = judged(corpus({}), Put(A, page("x is new", kind=kind)), policy=policy, scope=scope)
    reason = only_reason(found, "write-bar", A)
    expected = {"episodic": "trace index", "verdict": "review output"}.get(kind, kind)
    assert expected in reason
    assert "below the write bar" in sentence(found[0])
    assert sentence(found[0]).startswith(A)


def test_type_that_is_not_refused_passes() -> None:
    policy = Policy(frozenset({"episodic", "verdict"}))
    assert judged(corpus({}), Put(A, page("x is new", kind="arc")), policy=policy) == []


def test_put_below_the_bar_counts_as_done() -> None:
    policy = Policy(frozenset({"episodic"}))
    html = page("x ran", kind="episodic")
    found = judged(corpus({}), Put(A, html), Put(B, html), policy=policy)
    assert kinds(found) == [("write-bar", A), ("duplicate", B), ("write-bar", B)]


def test_refused_type_and_missing_anchor_are_one_violation() -> None:
    policy = Policy(frozenset({"episodic"}), require_anchor=True)
    found = judged(corpus({}), Put(A, page("x ran", kind="episodic")), policy=policy)
    text = reasons(found, "write-bar", A)
    assert "trace index" in text
    assert "memhtml-entity" in text


@pytest.mark.parametrize("kind", ["semantic", "task"])
def test_put_without_anchor_is_below_the_bar(kind: str) -> None:
    reason = only_reason(
        judged(corpus({}), Put(A, page("x is new", kind=kind)), policy=STRICT), "write-bar", A
    )
    assert "memhtml-entity" in reason
    assert "projects/<slug>/" in reason


@pytest.mark.parametrize("path", ["projects/p/x.html", "projects/p/tasks/x.html"])
def test_put_under_a_project_is_anchored(path: str) -> None:
    assert judged(corpus({}), Put(path, page("x is new")), policy=STRICT) == []


def test_put_right_under_projects_is_not_anchored() -> None:
    path = "projects/x.html"
    assert kinds(judged(corpus({}), Put(path, page("x is new")), policy=STRICT)) == [
        ("write-bar", path)
    ]


@pytest.mark.parametrize(
    ("value", "anchored"), [("x", True), ("a:b", True), ("\u00a0", False), (" ", False)]
)
def test_any_entity_that_is_not_blank_anchors(value: str, anchored: bool) -> None:
    found = judged(corpus({}), Put(A, page("x is new", entities=[value])), policy=STRICT)
    assert (found == []) is anchored


def test_promoted_terms_do_not_anchor() -> None:
    html = page("the <dfn>pool</dfn> is new")
    assert kinds(judged(corpus({}), Put(A, html), policy=STRICT)) == [("write-bar", A)]


def test_later_label_does_not_help_a_put() -> None:
    found = judged(corpus({}), Put(A, page("x is new")), AddLabel(A, "system:x"), policy=STRICT)
    assert kinds(found) == [("write-bar", A)]


def test_put_with_format_is_not_asked_for_an_anchor() -> None:
    assert kinds(judged(corpus({}), Put(A, "<p>"), policy=STRICT)) == [("format", A)]
