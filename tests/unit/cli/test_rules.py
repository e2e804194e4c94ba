"""`pynchy rules`: what agents may do without a question, and revoking it."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.cli.support import Host, Run

from pynchy.cli.doctor.settings import check_groups
from pynchy.config import Settings
from pynchy.data_dir import DataFolder
from pynchy.findings import Status
from pynchy.http.hook_keys import HookKeys
from pynchy.model import GroupName
from pynchy.permissions.rulebook import RuleBook
from pynchy.rule import Effect, Rule

GROUPS = {"web-team": {"permissions": {"deny": ["Bash(git push *)"]}}}


class NoEvents:
    problem = None

    def publish(self, event: object) -> None:
        """Nobody listens."""


@pytest.fixture
def rule(tmp_path: Path) -> Rule:
    """A rule that was made on a card before the host was started."""
    now = datetime.now(UTC)
    made = Rule(
        "q001", Effect.ALLOW, "Bash(git status *)", GroupName("web-team"), "ben\x1b[2J", now,
        expires_at=now + timedelta(days=3),
    )  # fmt: skip
    (tmp_path / "data").mkdir()
    book = RuleBook(Settings(), NoEvents(), lambda: now, tmp_path / "data")
    return asyncio.run(book.add(made))


@pytest.fixture
def host(tmp_path: Path, rule: Rule) -> Iterator[Host]:
    assert rule
    settings = Settings.model_validate({"http": {"port": 0}, "groups": GROUPS})
    host = Host(tmp_path / "data", settings)
    host.start()
    yield host
    host.stop()


def test_rules_are_listed_with_all_that_is_known_of_them(host: Host, rule: Rule, run: Run) -> None:
    assert host
    lines = [line.split("\t") for line in run("rules").stdout.splitlines()]

    own, made = lines
    assert own[1:5] == ["deny", own[2], "Bash(git push *)", "web-team"]
    assert own[5:] == ["for good", "the settings", "0", "never"]
    assert made[0] == rule.short_id
    assert made[1:5] == ["allow", made[2], "Bash(git status *)", "web-team"]
    assert "begin with: git status (with options that are known to be harmless)" in made[2]
    assert "\x1b" not in made[6]


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_rules_of_a_group_that_is_none_were_an_empty_list(
    host: Host, run: Run, flags: list[str]
) -> None:
    host.ask("Why?", group="joined")

    assert run("rules", "--group", "joined").stdout.startswith("There are no rules")
    for name, meant in [("nope", "pynchy groups"), ("web-tema", "did you mean web-team?")]:
        told = run("rules", "--group", name, *flags)
        assert (told.exit_code, told.stdout) == (1, "")
        assert f"no group is called {name}" in told.stderr
        assert meant in told.stderr


def test_a_terminal_shows_all_of_a_rule_however_narrow_it_is(
    host: Host, rule: Rule, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert host
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("pynchy.cli.rules.is_terminal", lambda: True)
    monkeypatch.setattr("pynchy.cli.output.is_terminal", lambda: True)

    shown = " ".join(run("rules").stdout.split())

    assert f"{rule.short_id} allow Bash(git status *)" in shown
    assert "begin with: git status" in shown
    assert "used 0 times, last: never" in shown


def test_rules_are_listed_for_programs(host: Host, rule: Rule, run: Run) -> None:
    assert host
    views = json.loads(run("rules", "--json", "--group", "web-team").stdout)

    assert [view["origin"] for view in views] == ["settings", "card"]
    assert views[1]["short_id"] == rule.short_id
    assert views[1]["id"] == "q001"
    assert views[1]["uses"] == 0


def test_a_rule_is_revoked_once(host: Host, rule: Rule, run: Run) -> None:
    done = run("rules", "revoke", rule.short_id)
    assert (done.exit_code, done.stdout) == (
        0,
        "Revoked: allow Bash(git status *) in group web-team.\n",
    )

    again = run("rules", "revoke", rule.short_id)
    assert again.exit_code == 1
    assert "pynchy rules" in again.stderr
    assert len(host.client.rules()) == 1
    assert "rule_revoked" in run("events").stdout


def test_a_rule_of_the_settings_is_not_revoked(host: Host, run: Run) -> None:
    own = host.client.rules()[0]["short_id"]

    refused = run("rules", "revoke", own)

    assert refused.exit_code == 1
    assert "[groups.web-team.permissions]" in refused.stderr


def test_a_host_says_that_its_rules_cannot_be_read(tmp_path: Path, run: Run) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rules.json").write_text("{")
    host = Host(tmp_path / "data", Settings.model_validate({"http": {"port": 0}}))
    host.start()
    try:
        assert "rules.json" in " ".join(host.client.health()["problems"])
        listed, for_programs = run("rules"), run("rules", "--json")
        (tmp_path / "data" / "rules.json").unlink()
        mended = run("rules")
    finally:
        host.stop()

    for told in (listed, for_programs):
        assert told.exit_code == 0
        assert "rules.json cannot be used" in told.stderr
        assert "no rule allows anything" in told.stderr
    assert "There are no rules" not in listed.stdout
    assert for_programs.stdout == "[]\n"
    assert (mended.stderr, mended.stdout[:18]) == ("", "There are no rules")


def test_a_removed_group_leaves_no_rules_behind(host: Host, tmp_path: Path, run: Run) -> None:
    host.stop()
    now = datetime.now(UTC)
    book = RuleBook(Settings(), NoEvents(), lambda: now, tmp_path / "data")
    lost = Rule("q9", Effect.ALLOW, "Bash(ls)", GroupName("joined"), "ben", now)
    asyncio.run(book.add(lost))
    host.start()
    short_id = host.ask("Why?", group="joined")
    host.reply(short_id, "decline", "ana")

    done = run("groups", "remove", "joined", "--force")

    assert done.exit_code == 0
    assert host.client.rules("joined") == []


def test_a_removed_group_lets_no_terminal_in_any_more(host: Host, tmp_path: Path, run: Run) -> None:
    keys = HookKeys(DataFolder(tmp_path / "data"))
    lost, other = keys.make("joined"), keys.make("web-team")
    host.reply(host.ask("Why?", group="joined"), "decline", "ana")

    done = run("groups", "remove", "joined", "--force")

    assert done.exit_code == 0
    assert keys.group_of(lost) is None
    assert keys.group_of(other) == "web-team"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["Bash", "--command", "git status -s"], ("allow", "allows it: Bash(git status *)", 0)),
        (["Bash", "--command", "git push"], ("deny", "denies it: Bash(git push *)", 2)),
        (["Bash", "--command", "sudo git status"], ("ask", "can tell what it runs (sudo: ", 3)),
        (["Bash", "--command", "git status > a"], ("ask", "(it redirects to or from a file)", 3)),
        (["Bash", "--command", "git status; ("], ("ask", "(it cannot be parsed)", 3)),
        (["Bash", "--command", "make"], ("ask", "no rule allows this command: make", 3)),
        (["Edit", "--file", ".env", "--cwd", "/srv"], ("ask", "the file is a sensitive one", 3)),
        (["Edit", "--file", "a.py"], ("ask", "no rule can tell which file it is about", 3)),
        (["Edit", "--file", ".env", "--cwd", "."], ("ask", "the file is a sensitive one", 3)),
        (["mcp__jira__create"], ("ask", "no rule allows it", 3)),
        (["Bash", "--input", '{"command": "git status", "x": 1}'], ("ask", "looks at: x", 3)),
    ],
)
def test_a_call_is_tried_on_the_rules_and_nothing_is_used_up(
    host: Host, rule: Rule, run: Run, words: list[str], expected: tuple[str, str, int]
) -> None:
    effect, why, code = expected
    tried = run("rules", "test", "web-team", *words)

    assert (tried.exit_code, tried.stdout.splitlines()[0]) == (0, effect)
    assert why in tried.stdout
    assert run("rules", "test", "web-team", *words, "--exit-code").exit_code == code
    view = json.loads(run("rules", "test", "web-team", *words, "--json").stdout)
    assert (view["effect"], why in view["because"]) == (effect, True)
    if effect == "allow":
        assert [one["short_id"] for one in view["rules"]] == [rule.short_id]
        assert rule.short_id in tried.stdout
    assert [one["uses"] for one in host.client.rules()] == [0, 0]
    assert "rule_used" not in run("events").stdout


@pytest.mark.parametrize(
    ("words", "told", "code"),
    [
        (["web-tema", "Bash", "--command", "ls"], "did you mean web-team?", 1),
        (["web-team", "Bash"], "--command", 2),
        (["web-team", "Read", "--command", "ls"], "--command", 2),
        (["web-team", "Bash", "--file", "x"], "--file", 2),
        (["web-team", "Bash", "--command", "ls", "--input", "{}"], "exclude each other", 2),
        (["web-team", "Edit", "--input", "[1]"], "a JSON object", 2),
        (["web-team", "Edit", "--input", "{"], "no JSON", 2),
        (["web-team", "Edit", "--input", "[" * 90_000], "no JSON", 2),
    ],
)
def test_what_cannot_be_tried_on_the_rules_is_said(
    host: Host, run: Run, words: list[str], told: str, code: int
) -> None:
    assert host.client
    tried = run("rules", "test", *words)

    assert tried.exit_code == code, tried.stderr
    assert told in tried.stderr


def test_a_damaged_file_allows_nothing_in_a_trial_and_denies_still(
    tmp_path: Path, run: Run
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rules.json").write_text("{")
    groups = {"web-team": {"permissions": {"deny": ["Bash(git push *)"], "allow": ["Bash(ls)"]}}}
    host = Host(tmp_path / "data", Settings.model_validate({"http": {"port": 0}, "groups": groups}))
    host.start()
    try:
        allowed = run("rules", "test", "web-team", "Bash", "--command", "ls")
        denied = run("rules", "test", "web-team", "Bash", "--command", "git push")
    finally:
        host.stop()
    assert allowed.stdout.startswith("ask\nno rule can allow anything just now")
    assert denied.stdout.startswith("deny\n")


def test_ids_are_completed(
    host: Host, rule: Rule, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert host
    monkeypatch.setenv("_PYNCHY_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "pynchy rules revoke ")
    monkeypatch.setenv("COMP_CWORD", "3")

    assert f"plain,{rule.short_id}" in run().stdout


MISSPELT = {"allow": ["bash", "Bassh", "Bash(ls)"], "deny": ["bash", "mcp_jira", "mcp__jira__*"]}


def test_a_tool_that_is_misspelt_in_a_rule_was_not_noticed(tmp_path: Path, run: Run) -> None:
    groups = {"web-team": {"permissions": MISSPELT}}
    settings = Settings.model_validate({"http": {"port": 0}, "groups": groups})
    found = check_groups(settings, DataFolder(tmp_path / "data"), ())
    host = Host(tmp_path / "data", settings)
    host.start()
    try:
        listed = run("rules")
        other = run("rules", "--group", "web-team", "--json")
    finally:
        host.stop()

    told = [
        "groups.web-team.permissions.allow: no tool is called bash; did you mean Bash?",
        "groups.web-team.permissions.allow: no tool is called Bassh; did you mean Bash?",
        "groups.web-team.permissions.deny: no tool is called mcp_jira; did you mean mcp__jira?",
    ]
    doubts = [one for one in found if one.check == "rules of web-team"]
    assert [one.detail for one in doubts] == told
    assert {one.status for one in doubts} == {Status.WARNING}
    for one in (listed, other):
        assert one.exit_code == 0
        assert one.stderr.splitlines() == [f"Warning: {text}" for text in told]
    assert len(listed.stdout.splitlines()) == 6
