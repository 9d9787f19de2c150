"""The store policy file and what it means (spec `write-bar` §5, §6)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from memhtml.errors import StorageError
from memhtml.policy import DEFAULT, FILE_NAME, Policy, decode, encode, from_value, load
from memhtml.schema.policy import StorePolicy
from memhtml_format.vocab import TYPES


def refusal(text: str | bytes) -> str:
    """The message of the error that a file with this text is."""
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(StorageError) as caught:
        decode(data)
    assert caught.value.reason == "policy.invalid"
    assert caught.value.exit_status == 1
    assert str(caught.value).startswith("storage operation failed: policy.invalid: ")
    assert FILE_NAME in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("text", ["{}", ' {"writeBar": {}} \n', '{"v1Doors": "closed-in-session"}'])
def test_file_that_sets_nothing_means_the_defaults(text: str) -> None:
    assert decode(text.encode()) == DEFAULT == Policy(frozenset(), False, "closed-in-session")


def test_file_that_sets_everything_is_read() -> None:
    text = (
        '{"writeBar": {"refuseTypes": ["episodic", "verdict"], "requireAnchor": true},'
        ' "v1Doors": "open"}'
    )
    assert decode(text.encode()) == Policy(frozenset({"episodic", "verdict"}), True, "open")


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("[]", "", "object"),
        ("null", "", "object"),
        ("", "", "object"),
        ("{", "", "object"),
        ('{"v1Doors": NaN}', "", "object"),
        ("[" * 100_000, "", "object"),
        ('{"writebar": {}}', "writebar", "writeBar"),
        ('{"a b": {}}', '"a b"', "v1Doors"),
        ('{"writeBar": null}', "writeBar", "object"),
        ('{"writeBar": []}', "writeBar", "object"),
        ('{"writeBar": {"v1Doors": "open"}}', "writeBar.v1Doors", "refuseTypes"),
        ('{"writeBar": {"refuseTypes": "arc"}}', "writeBar.refuseTypes", "array"),
        ('{"writeBar": {"refuseTypes": null}}', "writeBar.refuseTypes", "array"),
        ('{"writeBar": {"refuseTypes": ["arc", "arcs"]}}', "writeBar.refuseTypes[1]", "precedent"),
        ('{"writeBar": {"refuseTypes": ["arc", "arc"]}}', "writeBar.refuseTypes[1]", "repeat"),
        ('{"writeBar": {"refuseTypes": [["arc"]]}}', "writeBar.refuseTypes[0]", "arc"),
        ('{"writeBar": {"requireAnchor": 1}}', "writeBar.requireAnchor", "true or false"),
        ('{"writeBar": {"requireAnchor": null}}', "writeBar.requireAnchor", "true or false"),
        ('{"v1Doors": "Open"}', "v1Doors", "closed-in-session, open, closed"),
        ('{"v1Doors": null}', "v1Doors", "closed-in-session"),
        ('{"v1Doors": ["open"]}', "v1Doors", "closed-in-session"),
        ('{"v1Doors": "open", "v1Doors": "open"}', "v1Doors", "once"),
        (
            '{"writeBar": {"requireAnchor": true, "requireAnchor": 1}}',
            "writeBar.requireAnchor",
            "once",
        ),
    ],
)
def test_anything_else_is_refused_naming_key_and_expectation(
    text: str, key: str, expected: str
) -> None:
    message = refusal(text)
    assert f"{FILE_NAME}: {key}" in message if key else True
    assert expected in message.partition("expected")[2]


def test_file_that_is_not_utf8_is_refused() -> None:
    assert "UTF-8" in refusal(b'{"v1Doors": "\xff"}')


def test_byte_order_mark_is_no_json() -> None:
    refusal("\ufeff{}")


def test_number_too_long_to_convert_is_refused() -> None:
    refusal('{"v1Doors": ' + "9" * 10_000 + "}")


def test_message_holds_no_raw_control_character_of_a_key() -> None:
    assert "\\u001b" in refusal('{"\\u001b[31m": 1}')


@pytest.mark.parametrize(
    ("doors", "inside", "outside"),
    [("closed-in-session", True, False), ("open", False, False), ("closed", True, True)],
)
def test_doors_close_as_the_setting_says(doors: Any, inside: bool, outside: bool) -> None:
    policy = Policy(v1_doors=doors)
    assert policy.closes_doors(in_session=True) is inside
    assert policy.closes_doors(in_session=False) is outside


def test_store_without_a_file_has_the_defaults(tmp_path: Path) -> None:
    assert load(str(tmp_path)) == DEFAULT


def test_file_is_read_from_the_working_tree_each_time(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    file.write_text('{"v1Doors": "closed"}')
    assert load(str(tmp_path)).v1_doors == "closed"
    file.write_text('{"v1Doors": "open"}')
    assert load(str(tmp_path)).v1_doors == "open"


@pytest.mark.parametrize("make", ["folder", "link", "pipe"])
def test_file_of_another_kind_is_refused(tmp_path: Path, make: str) -> None:
    file = tmp_path / FILE_NAME
    if make == "folder":
        file.mkdir()
    elif make == "link":
        (tmp_path / "elsewhere").write_text("{}")
        file.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(file)
    with pytest.raises(StorageError) as caught:
        load(str(tmp_path))
    assert caught.value.reason == "policy.invalid"


policies = st.builds(
    Policy,
    st.frozensets(st.sampled_from(TYPES)),
    st.booleans(),
    st.sampled_from(["closed-in-session", "open", "closed"]),
)


@given(policies)
def test_encoded_policy_decodes_to_itself(policy: Policy) -> None:
    assert from_value(encode(policy)) == policy
    assert decode(json.dumps(encode(policy)).encode()) == policy


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([*TYPES, "open", "closed", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["writeBar", "v1Doors", "refuseTypes", "requireAnchor", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
near_values = st.fixed_dictionaries(
    {},
    optional={
        "writeBar": values
        | st.fixed_dictionaries(
            {},
            optional={
                "refuseTypes": values | st.lists(st.sampled_from(TYPES), max_size=4),
                "requireAnchor": values,
            },
        ),
        "v1Doors": values,
    },
)


@given(values | near_values)
@settings(max_examples=300)
def test_decoder_and_published_model_accept_the_same_files(value: object) -> None:
    text = json.dumps(value)
    try:
        policy: Policy | None = decode(text.encode())
    except StorageError:
        policy = None
    try:
        model: StorePolicy | None = StorePolicy.model_validate_json(text)
    except ValidationError:
        model = None
    assert (policy is None) == (model is None)
    if policy is not None and model is not None:
        assert policy.refuse_types == frozenset(model.write_bar.refuse_types)
        assert policy.require_anchor == model.write_bar.require_anchor
        assert policy.v1_doors == model.v1_doors
