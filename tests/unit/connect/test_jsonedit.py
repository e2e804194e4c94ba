"""A JSON text is changed in one place, and nowhere else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pynchy.cli.connect import json_text
from pynchy.cli.connect.json_text import BadText, JsonText, Unwritable

OURS = ("mcp", "pynchy")
ENTRY = {"command": ["pynchy", "mcp"], "enabled": True}

COMMENTED = """\
{
  // the model
  "model": "a", // of today
  "mcp": {
    /* others */
    "other": {"command": ["x"]}, // keep
  },
}
"""

TEXTS = [
    "{}",
    "{\n}\n",
    '{"a": 1}',
    '{\n\t"a": [1, 2],\n\t"mcp": {}\n}\n',
    '{\n    "mcp": {\n        "other": {"x": "}, // no comment"}\n    }\n}',
    '{"mcp": {"other": 1}, "z": "\\u007b \\"quoted\\""}',
    COMMENTED,
    '{\n  "mcp": {\n    // nothing yet\n  }\n}\n',
    '{\n  "a": 1 // last\n}\n',
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_put_is_there_and_everything_else_still_is(text: str) -> None:
    before = JsonText(text, comments=True)

    after = before.put(OURS, ENTRY)

    others = {key: value for key, value in before.plain.items() if key != "mcp"}
    mcp = {**before.plain.get("mcp", {}), "pynchy": ENTRY}
    assert after.plain == {**others, "mcp": mcp}
    for line in text.split("\n"):
        for comment in ("// the model", "// of today", "/* others */", "// keep", "// last"):
            assert (comment in line) <= (comment in after.text)


@pytest.mark.parametrize("text", [text for text in TEXTS if '"other"' in text or "yet" in text])
def test_taking_it_out_again_gives_the_old_text(text: str) -> None:
    before = JsonText(text, comments=True)

    after = before.put(OURS, ENTRY).drop(OURS)

    assert after.plain == before.plain
    assert after.text == text


@pytest.mark.parametrize("text", ['{"mcp": null}', '{"mcp": [1]}', '{"mcp": {"pynchy": null}}'])
def test_where_nothing_is_there_is_nothing_to_take_out(text: str) -> None:
    assert JsonText(text).drop(OURS).text == text


def test_a_comment_stays_beside_the_value_that_it_is_about() -> None:
    text = JsonText('{\n  "a": 1 // one\n}\n', comments=True).put(("b",), 2).text

    assert text == '{\n  "a": 1, // one\n  "b": 2\n}\n'


def test_a_value_on_the_line_of_a_comment_is_not_swallowed_by_it() -> None:
    text = JsonText('{ // first\n  "ours": 1, "b": 2 }', comments=True).drop(("ours",))

    assert text.plain == {"b": 2}


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "mcp": {\n    "other": 1 // one, two\n  }\n}\n',
        '{"mcp": {"other": 1 /* a */}, "x": 2 /* b */, "y": 3}',
        '{\n  "a": [1, 2] // see http://x, y\n}',
        '{\n  "a": 1 /* x, y */\n  // , }\n}',
    ],
)
def test_a_comma_in_a_comment_is_not_taken_for_one_of_the_text(text: str) -> None:
    before = JsonText(text, comments=True)

    after = before.put(OURS, ENTRY)

    assert after.find(OURS) == ENTRY
    assert after.drop(OURS) == before


def test_an_edit_that_would_say_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "_append", lambda text, *_: text.replace("1", "2"))

    with pytest.raises(Unwritable):
        JsonText('{"a": 1}').put(OURS, ENTRY)


def test_an_empty_file_is_an_empty_object() -> None:
    assert JsonText("").put(("a", "b"), 1).text == '{\n  "a": {\n    "b": 1\n  }\n}\n'


def test_the_indent_of_the_file_is_kept() -> None:
    text = JsonText('{\n\t"a": 1\n}').put(("b", "c"), 2).text

    assert text == '{\n\t"a": 1,\n\t"b": {\n\t\t"c": 2\n\t}\n}'


def test_an_item_joins_a_list_once_and_leaves_it_alone() -> None:
    before = JsonText('{\n  "permissions": {"allow": ["Bash(ls:*)"], "deny": []}\n}\n')
    path = ("permissions", "allow")

    added = before.add(path, "mcp__pynchy")

    assert added.find(path) == ["Bash(ls:*)", "mcp__pynchy"]
    assert added.add(path, "mcp__pynchy") == added
    assert added.take(path, "mcp__pynchy") == before
    assert before.take(path, "mcp__pynchy") == before


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3),
        ('{"a": }', 1),
        ('{\n"a": 1,\n', 3),
        ("[1]", 1),
        ('{"a": 1} x', 1),
        ('{\n// a comment\n"a": 1}', 2),
        ('{"a": 1,\n}', 2),
        ('{"a": 1,\n"a": 2}', 2),
        ('{"a": "\n"}', 1),
        ('{"a": "\\x"}', 1),
        ("{" * 9, 1),
        ("[" * 5000, 1),
    ],
)
def test_a_broken_text_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(BadText) as caught:
        _ = JsonText(text).plain

    assert caught.value.line == line


def test_a_value_of_another_kind_is_in_the_way() -> None:
    for text in ('{"mcp": []}', '{"mcp": "off"}'):
        with pytest.raises(BadText, match="mcp is no object"):
            JsonText(text).put(OURS, ENTRY)
    with pytest.raises(BadText, match="is no list"):
        JsonText('{"permissions": {"allow": "all"}}').add(("permissions", "allow"), "x")


_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(
    document=st.dictionaries(st.text(), _PLAIN, max_size=4),
    indent=st.sampled_from([None, 1, 2, "\t"]),
    servers=st.dictionaries(st.text(), _PLAIN, max_size=3),
    comments=st.booleans(),
)
def test_any_document_says_the_same_but_for_our_entry(
    document: dict[str, Any], indent: Any, servers: dict[str, Any], *, comments: bool
) -> None:
    servers.pop("pynchy", None)
    document["mcp"] = servers
    text = JsonText(json.dumps(document, indent=indent), comments=comments)

    put = text.put(OURS, ENTRY)

    assert text.plain == document
    assert put.plain == {**document, "mcp": {**servers, "pynchy": ENTRY}}
    assert put.put(OURS, 1).drop(OURS).plain.get("mcp", {}) == servers
