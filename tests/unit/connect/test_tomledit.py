"""A table of a TOML text is put and taken out, and everything else stays as it was."""

import pytest

from pynchy.cli.connect.json_text import BadText, Unwritable
from pynchy.cli.connect.toml_text import TomlText, write_value

OURS = ("mcp_servers", "pynchy")
ENTRY = {"command": "/opt/pynchy", "args": ["mcp"], "env": {"A": "1"}, "limit": 60, "on": True}

RICH = '''\
# mine
model = "a"  # of today
notify = [
  "x", # [mcp_servers.pynchy]
]
words = """
[mcp_servers.pynchy]
"""

[mcp_servers.other]
command = "x" # keep
  [mcp_servers.other.env]
  A = "]"

# about the projects
[projects."/home/a b"]
trust_level = "trusted"
'''

TEXTS = ["", "\n", "# only a comment\n", 'model = "a"', RICH, "[mcp_servers]\n", "[[a]]\nb = 1\n"]


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_put_is_there_and_every_line_still_is(text: str) -> None:
    before = TomlText(text)

    after = before.put(OURS, ENTRY)

    assert after.find(OURS) == ENTRY
    assert after.text.startswith(text.rstrip())
    assert after.put(OURS, ENTRY) == after


@pytest.mark.parametrize("text", TEXTS)
def test_taking_it_out_again_gives_the_old_text(text: str) -> None:
    after = TomlText(text).put(OURS, ENTRY).drop(OURS)

    assert after.plain == TomlText(text).plain
    assert after.text.strip() == text.strip()


def test_a_table_in_the_midst_is_replaced_where_it_stands() -> None:
    old = "[mcp_servers.pynchy]\ncommand = 'old'\n[mcp_servers.pynchy.env]\nB = '2'\n"
    text = RICH.replace("# about", f"{old}\n# about")

    after = TomlText(text).put(OURS, ENTRY)

    assert after.find(OURS) == ENTRY
    assert after.drop(OURS).text == RICH
    assert TomlText(text).drop(OURS).text == RICH


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = { pynchy = { command = 'x' } }\n",
        "mcp_servers.pynchy.command = 'x'\n",
        "[mcp_servers]\npynchy = { command = 'x' }\n",
        "mcp_servers = 3\n",
        "[[mcp_servers]]\na = 1\n",
    ],
)
def test_what_is_written_in_another_way_is_not_rewritten(text: str) -> None:
    with pytest.raises(Unwritable):
        TomlText(text).put(OURS, ENTRY)
    if TomlText(text).find(OURS):
        with pytest.raises(Unwritable):
            TomlText(text).drop(OURS)


@pytest.mark.parametrize(
    ("text", "line"), [("a = 1\nb = \n", 2), ("a = 1\na = 2\n", 2), ("\n\n[x", 3), ("a = '''", 1)]
)
def test_a_broken_text_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(BadText) as caught:
        _ = TomlText(text).plain

    assert caught.value.line == line


@pytest.mark.parametrize("value", ["[" * 3000 + "]" * 3000, "9" * 5000], ids=["deep", "long"])
def test_a_text_that_no_reader_can_bear_is_refused_too(value: str) -> None:
    with pytest.raises(BadText):
        _ = TomlText(f"a = {value}\n").plain


@pytest.mark.parametrize("value", ['quote " and \\', "\x00\x1f\x7f", "ü 🎉", "", "\n\r\t"])
def test_any_text_is_written_so_that_it_reads_the_same(value: str) -> None:
    table = {"key": value, value or "empty": [value]}

    assert TomlText("").put(("a", value), table).find(("a", value)) == table
    assert write_value({}) == "{}"
