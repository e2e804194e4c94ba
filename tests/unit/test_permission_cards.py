"""May I: what a person reads of a call, and what counts as a yes."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.numbered_cases import DEPLOY, card, hear, readable

from pynchy.bridge.cards import card_of, offered
from pynchy.calls import ToolCall, WhyAsked
from pynchy.channels.base import Channel, LocalChannel
from pynchy.channels.numbered import Reacted, read_reaction, render_card
from pynchy.channels.slack import limits
from pynchy.channels.slack.render import is_whole, render
from pynchy.channels.text import describe as describe_ending
from pynchy.choices import read_word
from pynchy.errors import InvalidReply
from pynchy.fences import Part, split_code
from pynchy.inbox import markdown
from pynchy.model import Answer, Card, Ending, Kind, OutcomeKind, Question, RequestId
from pynchy.outcome_text import resume_prompt
from pynchy.permissions.card import (
    allowed_call,
    approval_question,
    brief_of,
    check_edited,
    describe_call,
    permission_question,
)
from pynchy.rule import Because
from pynchy.testing import make_pending
from pynchy.wire import ending_json, pending_json, read_ending, read_pending

BASH = ToolCall("claude", "Bash", {"command": "git push"}, "/srv/app")
MAY_I = permission_question(
    BASH,
    "shell commands that begin with: git push; for every agent of team",
    "shell commands that begin with: git push; in this session alone",
)
ASKED = card("ab2c", MAY_I)


def call(tool: str, **given: Any) -> ToolCall:
    return ToolCall("codex", tool, given)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (BASH, "Claude Code wants to run a shell command:\n\n```sh\ngit push\n```"),
        (BASH, "Folder: `/srv/app`"),
        (call("Bash", command="a", description="Say `hi`\nto all"), "words: ``Say `hi`⏎to all``"),
        (call("Bash", command="a", disableSandbox=True), '"disableSandbox": true'),
        (call("Bash", command="a", sandbox=False, timeout=0), '"sandbox": false,\n  "timeout": 0'),
        (call("Bash", command=["rm", "x"]), '"command": [\n    "rm",'),
        (call("Bash", command="echo hi\nrm -r x"), "echo hi ⏎\nrm -r x"),
        (call("Bash", command="ls" + "\n" * 90 + "rm x"), "ls ⏎\n⟨89 empty lines⟩ ⏎\nrm x"),
        (call("Bash", command="ls" + " " * 300 + ";rm x"), "ls ⟨300 blanks⟩ ;rm x"),
        (call("Bash", command="ls\rrm x"), "ls⟨U+000D⟩rm x"),
        (call("Bash", command="echo ```\nx"), "````sh\necho ``` ⏎\nx\n````"),
        (call("Read", file_path="/etc/passwd"), "Codex wants to read the file `/etc/passwd`"),
        (call("WebFetch", url="http://x", prompt="p"), "fetch `http://x`"),
        (call("WebFetch", url="http://x", prompt="p"), '"prompt": "p"'),
        (call("Write", file_path="a", content="x\ny"), "write the file `a`:\n\n```\nx\ny\n```"),
        (
            call("Edit", file_path="a", old_string="x", new_string="y\nz", replace_all=True),
            '```diff\n-x\n+y\n+z\n```\n\nWith:\n\n```json\n{\n  "replace_all": true',
        ),
        (
            call("Edit", file_path="a", old_string="a\nb\nc\nd", new_string="a\nB\nd"),
            "```diff\n a\n-b\n-c\n+B\n d\n```",
        ),
        (call("Edit", file_path="a", old_string="a", new_string="a\n"), "```diff\n a\n+\n```"),
        (call("Edit", file_path="a", old_string="a\na", new_string="a"), "```diff\n a\n-a\n```"),
        (call("Edit", file_path="a", old_string="", new_string="a"), "```diff\n+a\n```"),
        (call("Edit", file_path="a", old_string="-- x", new_string=""), "```diff\n--- x\n```"),
        (
            call(
                "MultiEdit",
                file_path="a",
                edits=[{"old_string": "x", "new_string": "y"}, {"new_string": "z", "more": 1}],
            ),
            '+z\n```\n\nWith:\n\n```json\n{\n  "edits": [\n    {},\n    {\n      "more": 1',
        ),
        (
            call("MultiEdit", diff="--- a\n+++ a\n+x"),
            "Codex wants to change files:\n\n```diff\n--- a\n+++ a\n+x\n```",
        ),
        (call("mcp__jira__close", key="A"), 'tool `mcp__jira__close`:\n\n```json\n{\n  "key"'),
        (call("Stop"), "Codex wants to use the tool `Stop`"),
    ],
)
def test_all_of_a_call_is_told(asked: ToolCall, told: str) -> None:
    assert told in describe_call(asked)


@pytest.mark.parametrize(
    ("asked", "brief"),
    [
        (BASH, "git push"),
        (call("Bash", command="a\nb"), "a ⏎\nb"),
        (call("Bash", command="echo ```\nx", description="y"), "echo ``` ⏎\nx"),
        (call("Edit", file_path="/a/b.py", old_string="x"), "change the file /a/b.py"),
        (call("WebFetch", url="http://x"), "fetch http://x"),
        (call("mcp__jira__close", key="A"), "use the tool mcp__jira__close"),
    ],
)
def test_a_list_says_what_is_wanted(asked: ToolCall, brief: str) -> None:
    assert brief_of(describe_call(asked)) == brief


GAP = " " * 300
MARKED = "⟨300 blanks⟩ rm -r ~"


@pytest.mark.parametrize(
    "asked",
    [
        call("Bash", command=f"ls{GAP}rm -r ~"),
        call("Bash", command=f"ls\n{GAP}rm -r ~"),
        call("Bash", command=f"{GAP}rm -r ~"),
        call("Bash", command="ls" + "\u00a0" * 300 + "rm -r ~"),
        call("Bash", command="ls" + "\u2003\t\u3000" * 100 + "rm -r ~"),
        call("Bash", command="ls", description=f"list{GAP}rm -r ~"),
        call("Write", file_path="a", content=f"x{GAP}rm -r ~"),
        call("Write", file_path="a", content=f"x\n{GAP}rm -r ~"),
        call("Edit", file_path="a", old_string="x", new_string=f"x{GAP}rm -r ~"),
        call("Edit", file_path="a", old_string="x", new_string=f"x\n{GAP}rm -r ~"),
        call("Edit", file_path="a", diff=f"+x{GAP}rm -r ~"),
        call("mcp__any__tool", key=f"x{GAP}rm -r ~"),
        call("Read", file_path=f"x{GAP}rm -r ~"),
    ],
    ids=readable,
)
def test_a_gap_pushed_a_part_of_the_call_out_of_sight(asked: ToolCall) -> None:
    assert MARKED in describe_call(asked)


def test_a_gap_pushed_a_part_of_an_approvals_preview_out_of_sight() -> None:
    assert MARKED in approval_question("Deploy?", "", f"x{GAP}rm -r ~", "").text


def test_code_is_indented_as_it_was_written() -> None:
    deep = " " * 40 + "x = 1"

    assert f"\n{deep}\n" in describe_call(call("Write", file_path="a", content=f"y\n{deep}"))
    changed = call("Edit", file_path="a", old_string="y", new_string=f"y\n{deep}")
    assert f"\n y\n+{deep}\n" in describe_call(changed)


@pytest.mark.parametrize("ends", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_what_some_take_for_the_end_of_a_line_vanished_from_a_change(ends: str) -> None:
    told = describe_call(call("Edit", file_path="a", old_string="x", new_string=f"# y{ends}z"))

    assert f"+# y{ends}z" in told


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (" /etc/passwd", "`⟨1 blank⟩/etc/passwd`"),
        ("/srv/a\t ", "`/srv/a⟨2 blanks⟩`"),
        ("\u00a0a b ", "`⟨1 blank⟩a b⟨1 blank⟩`"),
        ("  ", "`⟨2 blanks⟩`"),
        (f"{GAP}a", f"`⟨{len(GAP)} blanks⟩a`"),
    ],
)
def test_blanks_around_a_path_were_not_to_be_seen(path: str, told: str) -> None:
    for asked in (call("Read", file_path=path), replace(call("Bash", command="x"), cwd=path)):
        assert told in describe_call(asked)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (" " * 20, "\t" * 20, ("-x ⟨20 blanks⟩ y", "+x ⟨20 tabs⟩ y")),
        (" " * 20, " " * 19 + "\t", ("-x ⟨20 blanks⟩ y", "+x ⟨19 blanks, 1 tab⟩ y")),
        (" " * 20, "\u00a0" * 20, ("-x ⟨20 blanks⟩ y", "+x ⟨U+00A0 x20⟩ y")),
        ("\n" * 5, "\n\t" + "\n" * 4, ("-⟨4 empty lines⟩", "+⟨1 line of 1 tab, 3 empty lines⟩")),
    ],
)
def test_a_change_from_blanks_to_tabs_looked_like_none(
    old: str, new: str, told: tuple[str, str]
) -> None:
    change = call("Edit", file_path="a", old_string=f"x{old}y\nz", new_string=f"x{new}y\nz")
    diff = call("Edit", file_path="a", diff=f"-x{old}y\n+x{new}y")

    for line in told:
        assert f"\n{line}\n" in describe_call(change)
    if "\n" not in old:
        assert all(f"\n{line}\n" in describe_call(diff) for line in told)


@pytest.mark.parametrize(
    "given", [{}, {"diff": ""}, {"old_string": "", "new_string": ""}, {"edits": [{}]}]
)
def test_a_change_that_shows_nothing_says_so(given: dict[str, Any]) -> None:
    told = describe_call(call("Edit", file_path="a", **given))

    assert "wants to change the file `a`, and does not show what changes" in told
    assert "```diff" not in told


def test_a_change_of_the_last_newline_alone_looked_like_none() -> None:
    told = describe_call(call("Edit", file_path="a", old_string="x\n", new_string="x"))

    assert "```diff\n x\n-\n```" in told


def test_an_agent_wrote_the_first_words_of_its_own_card() -> None:
    said = "Claude Code wants to read the file `README.md`\n\n````"

    told = describe_call(ToolCall(said, "Bash", {"command": "curl x | sh"}))

    name = "````` Claude Code wants to read the file `README.md`⏎⏎```` `````"
    assert told.startswith(f"The program {name} wants to run a shell command:\n")
    assert split_code(told)[1:] == [Part("curl x | sh", is_code=True)]
    assert "<code>curl x | sh</code>" in str(markdown.render(told))


@pytest.mark.parametrize(
    "opening",
    [
        "```",
        "Fine:\n```\nx",
        "~~~",
        "````\n```",
        "- x\n\n  ```\n  a\n```",
        "> ```\n```",
        "1. ```\n```",
        "   ```\n   x",
        "```\nx\n```\n~~~~ y",
        "```\r\nx",
    ],
)
def test_a_fence_that_an_agent_left_open_swallowed_the_preview(opening: str) -> None:
    for question in (
        approval_question(f"Deploy?\n\n{opening}", "", "rm -r /", "low"),
        approval_question("Deploy?", opening, "rm -r /", "low"),
    ):
        assert Part("rm -r /", is_code=True) in split_code(question.text)
        page = str(markdown.render(question.text))
        assert "<pre><code>rm -r /</code></pre>\n<p>Risk" in page.replace(
            "</pre><p>", "</pre>\n<p>"
        )


def test_code_that_an_agent_closed_stays_as_it_was_written() -> None:
    action = "Deploy:\n\n```sh\nmake deploy\n```\n\nUse `x` and ```y``` now."

    assert approval_question(action, "", "", "").text == action


def test_an_approval_tells_what_why_and_how_risky() -> None:
    question = approval_question("Deploy 2.1?", "To all.", "+ new\n- old", "high")

    assert question.text == (
        "Deploy 2.1?\n\nTo all.\n\n```\n+ new\n- old\n```\n\nRisk, as the agent sees it: high"
    )
    assert [option.value for option in question.options] == ["approve", "deny"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("approve ab2c", Answer(("Allow once",))),
        ("Approve #AB2C.", Answer(("Allow once",))),
        ("always ab2c", Answer(("Allow always…",))),
        ("always ab2c, it is fine", Answer(("Allow always…",), "it is fine")),
        ("session ab2c", Answer(("Allow in this session…",))),
        ("Session #ab2c.", Answer(("Allow in this session…",))),
        ("always ab2c session", None),
        ("always ab2c, in this session", None),
        ("always ab2c for this SESSION only", None),
        ("session ab2c, or always", None),
        ("session ab2c is over", None),
        ("session", None),
        ("sessions ab2c", None),
        ("deny ab2c too risky, sorry", Answer(("Deny",), "too risky, sorry")),
        ("deny ab2c: too risky", Answer(("Deny",), "too risky")),
        ("deny: ab2c", Answer(("Deny",))),
        ("approve ab2c, but slowly", Answer(("Allow once",), "but slowly")),
        ("approve ab2c\nbut slowly", Answer(("Allow once",), "but slowly")),
        ("approve ab2c - but slowly", Answer(("Allow once",), "but slowly")),
        ("approve ab2c only after I said so", None),
        ("always ab2c ask me first", None),
        ("approve", None),
        ("approve ab2cd", None),
        ("approve it", None),
        ("yes ab2c", None),
        ("ok", None),
        ("1", None),
        ("1 ab2c", None),
        ("Allow once", None),
        ("", None),
    ],
    ids=readable,
)
def test_a_choice_needs_its_word_and_the_id(typed: str, expected: Answer | None) -> None:
    if expected is None:
        with pytest.raises(InvalidReply, match="approve ab2c"):
            read_word(MAY_I, "ab2c", typed, is_aimed=False)
    else:
        assert read_word(MAY_I, "ab2c", typed, is_aimed=False) == expected


ASKS_BACK = "hint: To be sure that it is meant for this, say “approve ab2c”"


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("approve ab2c", {}, "ab2c: Allow once"),
        ("approve ab2c", {"private": False}, "ab2c: Allow once"),
        ("deny ab2c too risky", {"private": False}, "ab2c: Deny“too risky”"),
        ("always #ab2c", {}, "ab2c: Allow always…"),
        ("session ab2c", {"private": False}, "ab2c: Allow in this session…"),
        ("always ab2c session", {"private": False}, ASKS_BACK),
        ("#ab2c deny not now", {}, "ab2c: Deny“not now”"),
        ("approve", {"quoted": "card-ab2c"}, "ab2c: Allow once"),
        ("1", {"quoted": "card-ab2c"}, ASKS_BACK),
        ("Always ask me before pushing!", {"quoted": "card-ab2c"}, ASKS_BACK),
        ("approve nothing that pushes", {"quoted": "card-ab2c"}, ASKS_BACK),
        ("approve, but slowly", {"quoted": "card-ab2c"}, ASKS_BACK),
        ("#ab2c always ask first", {}, ASKS_BACK),
        ("ab2c: always ask me", {}, ASKS_BACK),
        ("approve ab2c, but slowly", {}, "ab2c: Allow once“but slowly”"),
        ("ok", {"quoted": "card-ab2c"}, ASKS_BACK),
        ("#ab2c 1", {}, ASKS_BACK),
        ("#ab2c Allow once", {}, ASKS_BACK),
        ("1", {}, ASKS_BACK),
        ("1", {"private": False}, ASKS_BACK),
        ("ok", {}, ASKS_BACK),
        ("OK!", {"private": False}, ASKS_BACK),
        ("approve", {}, ASKS_BACK),
        ("approve", {"private": False}, ASKS_BACK),
        ("allow once", {}, ASKS_BACK),
        ("that looks fine to me", {}, ASKS_BACK),
        ("that looks fine to me", {"private": False}, "-"),
        ("cancel: no time", {}, "declines ab2c: no time"),
    ],
)
def test_in_a_chat_nothing_else_is_a_yes(text: str, context: Any, expected: str) -> None:
    assert hear(text, ASKED, **context).startswith(expected)


def test_of_several_cards_the_one_that_is_named_is_meant() -> None:
    other, choice = card("cd3e", MAY_I), card("ef4g", DEPLOY)

    assert hear("approve cd3e", ASKED, other, choice) == "cd3e: Allow once"
    assert hear("approve", ASKED, other, choice).startswith("hint: Which question is that for?")
    assert hear("deny", ASKED, choice).startswith("hint: Which question is that for?")
    assert hear("later", ASKED, choice).startswith("hint: Which question is that for?")
    assert hear("ef4g later", ASKED, choice) == "ef4g: Later"


def test_who_comes_late_is_told() -> None:
    over = card("ab2c", over=True)

    assert hear("approve ab2c", over) == "late: ab2c"
    assert hear("deny ab2c too risky", over, private=False) == "late: ab2c"


def test_a_reaction_allows_nothing() -> None:
    reading = read_reaction(Reacted("1️⃣", "card-ab2c", ASKED.asked_at), [ASKED])

    assert "approve ab2c" in getattr(reading, "text", "")


def test_a_numbered_card_says_what_to_type() -> None:
    pending = make_pending(questions=(MAY_I,), kind=Kind.PERMISSION)
    text = render_card((MAY_I,), card_of(pending), 4_000)

    assert "approve. Allow once" in text
    assert f"Reply “approve {pending.short_id}” or “always {pending.short_id}” or" in text
    assert "1." not in text


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (
            call("Bash", command="find . -name '*.py' -o -name '*.js'"),
            "> ```find . -name '*.py' -o -name '*.js'```",
        ),
        (call("Bash", command="echo `date` ~/a_b"), "> ```echo ⟨U+0060⟩date⟨U+0060⟩ ~/a_b```"),
        (call("Bash", command="cat <<E\n```\nE"), "⏎```\n> ```⟨U+0060⟩⟨U+0060⟩⟨U+0060⟩ ⏎```\n> "),
        (call("Write", file_path="a_b_c", content="x"), "write the file ```a_b_c```:"),
        (call("Write", file_path="a", content="x\n\n\n  *y*"), "```x```\n>\n>\n>   ```*y*```"),
        (call("Read", file_path="a``b*c*"), "file ⟨U+0060⟩⟨U+0060⟩⟨U+0060⟩a"),
        (call("Write", file_path="a", content="x\x0by\u2028z"), "```x⟨U+000B⟩y⟨U+2028⟩z```"),
    ],
)
def test_a_chat_showed_another_command_than_the_one_that_ran(asked: ToolCall, shown: str) -> None:
    question = permission_question(asked, "files: Edit(src/*/a_*)")
    pending = make_pending(questions=(question,), kind=Kind.PERMISSION)
    text = render_card((question,), card_of(pending), 4_000)

    assert shown in text
    assert "> ```files: Edit(src/*/a_*)```" in text
    assert "'''" not in text


def test_no_markup_of_a_chat_is_left_open_where_a_card_is_cut() -> None:
    long = permission_question(call("Bash", command="echo *a* && " * 900))
    pending = make_pending(questions=(long,), kind=Kind.PERMISSION)
    text = render_card((long,), card_of(pending), 2_000)

    assert "Shortened to fit." in text
    assert all(line.count("```") % 2 == 0 for line in text.split("\n"))


def test_slack_asks_once_more_before_a_rule_is_made_and_shows_code_as_code() -> None:
    pending = make_pending(questions=(MAY_I,), kind=Kind.PERMISSION)
    [message] = render(RequestId("r1"), (MAY_I,), card_of(pending)).messages

    confirms = [b["accessory"].get("confirm") for b in message.blocks if "accessory" in b]
    assert [c and c["text"]["text"] for c in confirms] == [
        None,
        "Rule: shell commands that begin with: git push; for every agent of team",
        None,
        "Rule: shell commands that begin with: git push; in this session alone",
    ]
    [code] = [b for b in message.blocks if b["type"] == "rich_text"]
    assert code["elements"][0]["elements"][0]["text"] == "git push"
    assert limits.violations(message.text, message.blocks) == []


def test_slack_folds_no_paragraph_of_a_card_away() -> None:
    pending = make_pending(questions=(MAY_I,), kind=Kind.PERMISSION)
    [message] = render(RequestId("r1"), (MAY_I,), card_of(pending)).messages

    sections = [block for block in message.blocks if block["type"] == "section"]
    assert sections
    assert all(block["expand"] for block in sections)


def test_slacks_permission_cards_had_numbers_that_nobody_may_say_and_two_ways_to_say_no() -> None:
    pending = make_pending(questions=(MAY_I,), kind=Kind.PERMISSION)
    id_ = pending.short_id
    [message] = render(RequestId("r1"), (MAY_I,), card_of(pending)).messages

    shown = json.dumps(message.blocks, ensure_ascii=False)
    assert "1." not in shown
    assert "Decline" not in shown
    assert f"thread with “approve {id_}” or “always {id_}” or “deny {id_}”" in shown
    assert limits.violations(message.text, message.blocks) == []


class InSlack(Channel):
    """Slack, as far as it says what it can show."""

    name = "slack"

    def shows_whole(self, questions: tuple[Question, ...], card: Card) -> bool:
        return is_whole(questions, card)


def test_slack_cut_off_the_rule_that_a_person_confirmed() -> None:
    long = permission_question(BASH, "exactly this shell command: " + "x" * 300)
    pending = make_pending(questions=(long,), kind=Kind.PERMISSION)

    [shown] = offered(pending, InSlack(), card_of(pending))

    assert shown.labels == ("Allow once", "Deny")
    assert shown.text == long.text
    assert offered(pending, LocalChannel(), card_of(pending)) == (long,)


class Narrow(Channel):
    """A channel of which nothing is known."""

    name = "narrow"


def test_what_is_not_shown_whole_can_be_denied_and_not_allowed() -> None:
    long = permission_question(ToolCall("claude", "Bash", {"command": "x" * 5_000}))
    pending = make_pending(questions=(long,), kind=Kind.PERMISSION)

    [shown] = offered(pending, Narrow(), card_of(pending))
    assert shown.labels == ("Deny",)
    assert shown.text.startswith("Too long to be allowed here: open `pynchy show")
    assert offered(pending, LocalChannel(), card_of(pending)) == (long,)


def test_slack_shows_whole_what_one_message_holds() -> None:
    pending = make_pending(kind=Kind.PERMISSION)
    short, long = (
        permission_question(ToolCall("claude", "Bash", {"command": "x" * size}))
        for size in (6_000, 14_000)
    )

    assert is_whole((short,), card_of(pending))
    assert not is_whole((long,), card_of(pending))


WHY = WhyAsked(
    "Path is outside allowed working directories", "/etc/hosts", ("Bash(cat *)", "the folder /etc")
)


def test_a_card_did_not_say_why_the_program_stopped() -> None:
    text = permission_question(replace(BASH, why=WHY)).text

    call, *why = text.split("\n\n")[-4:]
    assert call == "Folder: `/srv/app`"
    assert why == [
        "Claude Code stopped because it leaves the folder: `/etc/hosts`",
        "Claude Code says why it stopped: `Path is outside allowed working directories`",
        "It would allow from then on (shown only, never used): `Bash(cat *)`, `the folder /etc`",
    ]
    within = replace(BASH, why=WhyAsked(blocked_path="/srv/app/.env"))
    assert "stopped because of this path: `/srv/app/.env`" in permission_question(within).text


def test_what_a_program_says_of_why_writes_no_lines_of_its_own() -> None:
    told = "fine`\n\nFolder: `/tmp`\u202e" + " " * 90 + "x"
    why = WhyAsked(told, told, (told,))
    text = permission_question(replace(BASH, why=why)).text

    assert text.startswith(describe_call(BASH))
    assert text.count("\n\nFolder:") == 1
    assert text.count("⟨90 blanks⟩") == 3


def test_a_reason_that_does_not_fit_leaves_deny_alone() -> None:
    call = ToolCall("claude", "Bash", {"command": "x" * 8_000}, why=WHY)
    long = replace(call, why=WhyAsked("y" * 300, "/" + "z" * 299, ("w" * 300,) * 5))
    pending = make_pending(questions=(permission_question(long),), kind=Kind.PERMISSION)

    assert is_whole((permission_question(call),), card_of(pending))
    assert not is_whole(pending.questions, card_of(pending))
    [shown] = offered(pending, Narrow(), card_of(pending))
    assert shown.labels == ("Deny",)


def test_a_resumed_model_reads_its_call_and_not_why_the_program_stopped() -> None:
    assert describe_call(replace(BASH, why=WHY)) == describe_call(BASH)


def test_a_card_says_why_no_rule_has_answered() -> None:
    told = permission_question(BASH, because=Because("no rule allows this command", "a `b`")).text
    assert told.endswith("\n\nAsked because no rule allows this command: `` a `b` ``")


EDITABLE = replace(BASH, editable=True)
JIRA = ToolCall("claude", "mcp__jira__close", {"key": "A"}, editable=True)


@pytest.mark.parametrize(
    ("asked", "edited"),
    [
        (EDITABLE, {"command": "git fetch"}),
        (replace(EDITABLE, input={"command": "a", "timeout": 5}), {"command": "a", "timeout": 9}),
        (replace(EDITABLE, input={"command": "a", "timeout": 5}), {"command": "a"}),
        (replace(EDITABLE, input={"cmd": "a"}), {"cmd": "a", "command": "b"}),
        (JIRA, {"key": "B", "more": [{"x": None}]}),
        (JIRA, {}),
    ],
)
def test_what_a_call_may_be_edited_into(asked: ToolCall, edited: dict[str, Any]) -> None:
    assert check_edited(asked, edited) == edited
    assert check_edited(replace(asked, input=edited), edited) is None


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else 1


@pytest.mark.parametrize(
    ("asked", "edited", "why"),
    [
        (None, {}, "cannot be edited"),
        (BASH, {"command": "a"}, "cannot be edited"),
        (EDITABLE, None, "JSON object"),
        (EDITABLE, {1: "a"}, "JSON object"),
        (EDITABLE, {"command": "a", "x" * 90: 1}, "no field of this call: it has command"),
        (EDITABLE, {"command": "\ud800"}, "no JSON"),
        (JIRA, {"key": float("nan")}, "no JSON"),
        (JIRA, {"key": {1}}, "no JSON"),
        (JIRA, {"key": deep(20)}, "16 levels"),
        (JIRA, {"key": "ü" * 100_000}, "at most 200,000 bytes"),
        (replace(JIRA, tool="Write"), {"key": "A", "content": "x"}, "'content' is no field"),
    ],
)
def test_what_a_call_may_not_be_edited_into(asked: ToolCall | None, edited: Any, why: str) -> None:
    with pytest.raises(InvalidReply, match=why):
        check_edited(asked, edited)


def test_an_edited_call_is_what_was_allowed_and_every_card_says_so() -> None:
    edited = Answer(("Allow once",), "so", {"command": "git fetch"})
    ending = Ending(OutcomeKind.ANSWERED, datetime(2026, 11, 17, tzinfo=UTC), (edited,), "ana")
    pending = make_pending(questions=(MAY_I,), kind=Kind.PERMISSION, call=EDITABLE, ending=ending)

    assert allowed_call(pending) == replace(EDITABLE, input={"command": "git fetch"})
    assert edited.describe() == "Allow once, edited — so"
    told = describe_ending(ending, "slack", lambda text, most: text[:most])
    assert told == "Answered elsewhere: Allow once, edited — so by ana (None)"
    prompt = resume_prompt(pending)
    assert prompt.index("git push") < prompt.index("They have changed it") < prompt.index("fetch")
    assert read_pending(pending_json(pending)) == pending
    assert read_ending(ending_json(ending)) == ending


def test_records_of_what_was_not_edited_are_as_they_were() -> None:
    ending = Ending(OutcomeKind.ANSWERED, datetime(2026, 11, 17, tzinfo=UTC), (Answer(("Yes",)),))

    assert "edited" not in json.loads(ending_json(ending))["answers"][0]
    assert "edited" not in json.dumps(json.loads(pending_json(make_pending(ending=ending))))


def test_a_card_was_fifteen_times_as_long_as_its_request() -> None:
    deep: Any = [0] * 50_000
    for _ in range(10):
        deep = [deep]
    call = ToolCall("claude", "mcp__x__y", {"a": deep}, cwd="/srv")

    told = describe_call(call)

    assert len(told) < 4 * len(json.dumps(deep))
    assert told.count("0") >= 50_000


def test_many_kinds_of_blanks_were_each_named_and_still_look_different() -> None:
    old, other = " \t" * 20_000, " \t" * 19_999 + "\t "
    cards = [
        describe_call(ToolCall("claude", "Edit", {"old_string": text, "new_string": "x"}))
        for text in (old, other)
    ]

    assert len(cards[0]) < len(old)
    assert cards[0] != cards[1]
