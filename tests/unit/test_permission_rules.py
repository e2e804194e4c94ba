"""What rules say of a call, and which rule is offered for one."""

import errno
import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pynchy.calls import ToolCall
from pynchy.model import GroupName, SessionId
from pynchy.permissions.files import Protected
from pynchy.permissions.links import MAX_STEPS
from pynchy.permissions.patterns import PatternProblem, read_pattern
from pynchy.permissions.rules import decide, derive, describe, judge
from pynchy.rule import Effect, Origin, Rule

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
CWD = "/no/such/app"


def rule(effect: str, pattern: str, **more: Any) -> Rule:
    """Return a rule as the settings have it, unless its origin is told."""
    name, more = f"{effect} {pattern}", {"origin": Origin.SETTINGS} | more
    return Rule(name, Effect(effect), pattern, GroupName("team"), "ana", NOW, **more)


def on_card(pattern: str) -> Rule:
    return rule("allow", pattern, origin=Origin.CARD)


def call(tool: str, value: str = "", cwd: str = CWD) -> ToolCall:
    fields = {"Bash": "command", "WebFetch": "url"}
    return ToolCall("claude", tool, {fields.get(tool, "file_path"): value}, cwd)


def said(asked: ToolCall, *rules: Rule, **more: Any) -> str | None:
    decided = decide(rules, asked, "s1", NOW, **more)
    return decided.effect.value if decided else None


@pytest.mark.parametrize("pattern", ["mcp__prod__*", "mcp__prod__ssh_exec", "Bash", "Edit", "Read"])
def test_a_title_may_be_denied_and_is_never_allowed(pattern: str) -> None:
    title = "mcp__prod__ssh_exec" if pattern.startswith("mcp") else pattern
    asked = ToolCall("gem", f"“{title}”", {"command": "ls", "file_path": "/a"}, CWD)

    assert said(asked, rule("allow", pattern)) is None
    assert said(asked, rule("allow", pattern), rule("deny", pattern)) == "deny"
    assert derive(asked) is None


def test_what_no_rule_speaks_of_is_asked() -> None:
    assert decide([], call("Bash", "ls"), "s1", NOW) is None


GIT_LOG = "Bash(git log *)"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (call("Bash", "git log > x"), "no rule can tell what it runs (it redirects to or from"),
        (call("Bash", "git log; ("), "no rule can tell what it runs (it cannot be parsed)"),
        (call("Bash", "sudo git log"), "no rule can tell what it runs (sudo: "),
        (call("Bash", "git log; rm -r 'a b'"), "no rule allows this command: rm -r 'a b'"),
        (call("Bash", "git log --output=x"), "a rule for such commands leaves this one out ("),
        (call("Bash", "npm test", "/else"), "a rule allows it in another folder"),
        (call("Bash", "git log x", ""), "a word of it may be a file, and the agent's folder is"),
        (
            call("Bash", "pynchy approve ab2c"),
            "pynchy itself is allowed only by a rule for exactly",
        ),
        (call("Bash", "npm publish"), "a rule of the group wants it asked each time: Bash(npm pub"),
        (call("Bash", "git -C x push"), "it may be what a rule of the group denies: Bash(git push"),
        (call("Bash", "git push"), "a rule of the group denies it: Bash(git push *)"),
        (call("Bash", "git log -1"), "a rule of the group allows it: Bash(git log *)"),
        (
            ToolCall("claude", "Bash", {"command": "git log", "run_in_background": True}, CWD),
            "the call has fields that no rule looks at: run_in_background",
        ),
        (call("Edit", "src/.env"), "the file is a sensitive one, and no rule names it"),
        (call("Edit", "a.py", ""), "no rule can tell which file it is about"),
        (call("Edit", "docs/a.md"), "no rule allows it"),
        (call("WebFetch", "ftp://x"), "no rule can tell which host the address leads to"),
    ],
)
def test_what_the_rules_say_is_said_with_its_reason(asked: ToolCall, why: str) -> None:
    allowed = (GIT_LOG, "Bash(npm test) in /srv/app", "Bash(pynchy *)", "Edit(src/**)")
    rules = [rule("allow", pattern) for pattern in allowed]
    rules += [rule("ask", "Bash(npm publish *)"), rule("deny", "Bash(git push *)")]

    assert judge(rules, asked, "s1", NOW).because.describe().startswith(why)


def test_where_no_rule_allows_anything_that_is_the_reason() -> None:
    for asked in (call("Bash", "a > b"), call("Bash", "ls"), call("Read", "a")):
        said = judge([rule("deny", GIT_LOG)], asked, "s1", NOW)
        assert (said.effect, said.rules) == (Effect.ASK, ())
        assert said.because.describe() == "the group has no rule that allows anything"


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        (["allow", "ask", "deny"], "deny"),
        (["deny", "ask", "allow"], "deny"),
        (["allow", "ask"], "ask"),
        (["ask", "allow"], "ask"),
        (["allow"], "allow"),
    ],
)
@pytest.mark.parametrize(
    ("pattern", "asked"),
    [
        ("Bash(git log *)", call("Bash", "git log -3")),
        ("Edit(src/**)", call("Edit", "src/a.py")),
        ("WebFetch(domain:example.org)", call("WebFetch", "https://example.org/x")),
        ("mcp__jira__*", call("mcp__jira__create")),
    ],
)
def test_deny_beats_ask_beats_allow(
    effects: list[str], expected: str, pattern: str, asked: ToolCall
) -> None:
    assert said(asked, *(rule(effect, pattern) for effect in effects)) == expected


def test_every_command_of_a_line_needs_a_rule_and_all_that_were_used_are_told() -> None:
    rules = [rule("allow", "Bash(git status *)"), rule("allow", "Bash(head *)")]

    decided = decide(rules, call("Bash", "git status | head -3"), "s1", NOW)

    assert decided is not None
    assert decided.rules == tuple(rules)
    assert said(call("Bash", "git status | head -3"), rules[0]) is None


def test_one_denied_command_denies_the_line() -> None:
    rules = [rule("allow", "Bash"), rule("deny", "Bash(git push *)")]

    assert said(call("Bash", "git log; git push"), *rules) == "deny"
    assert said(call("Bash", "git log; git pull"), *rules) == "allow"


@pytest.mark.parametrize(
    "line", ["git push > x", "sudo git push", "$(git push)", "sh -c 'git push -f'", "git push $X"]
)
def test_a_line_in_doubt_is_denied_where_the_denied_command_surely_is_in_it(line: str) -> None:
    assert said(call("Bash", line), rule("deny", "Bash(git push *)")) == "deny"


@pytest.mark.parametrize("line", ["git pu$X", "x=push; git $x", "g\\\nit push", "git push '"])
def test_a_line_in_doubt_is_asked_otherwise(line: str) -> None:
    rules = [rule("deny", "Bash(git push *)"), rule("allow", "Bash")]
    assert said(call("Bash", line), *rules) is None


@pytest.mark.parametrize(
    "line",
    [
        "git -C /x push",
        "git --no-pager push",
        "/usr/bin/git push",
        "git log push",
        "find . -exec git push \\;",
        "mytool run /usr/bin/git -C x push",
    ],
)
def test_words_between_those_of_a_denied_command_are_asked_about(line: str) -> None:
    rules = [rule("deny", "Bash(git push *)"), rule("allow", "Bash")]
    assert said(call("Bash", line), *rules) == "ask"


@pytest.mark.parametrize("line", ["git-push origin", "GIT-push", "sudo git-push", "ls; git-push"])
def test_a_denied_subcommand_of_git_is_denied_as_a_program_of_its_own(line: str) -> None:
    rules = [rule("deny", "Bash(git push *)"), rule("allow", "Bash")]

    assert said(call("Bash", line), *rules) == "deny"
    assert said(call("Bash", line), rule("allow", "Bash(git push *)")) is None


@pytest.mark.parametrize(
    "line",
    [
        "/usr/lib/git-core/git-push origin",
        "git -c alias.x=push x",
        "git -c ALIAS.x=push x",
        "git --config-env=alias.x=HOME x",
        "git --config-env alias.x=HOME x",
        "git -c include.path=x y",
        "git -c 'includeIf.onbranch:main.path=x' y",
        "find . -exec git -c alias.x=push x \\;",
    ],
)
def test_another_name_for_a_denied_subcommand_is_asked_about(line: str) -> None:
    rules = [rule("deny", "Bash(git push *)"), rule("allow", "Bash")]

    assert said(call("Bash", line), *rules) == "ask"
    assert said(call("Bash", "git -c user.name=x add alias.py"), *rules) == "allow"


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("Bash(git clone *)", "git clone -u 'touch x' . y"),
        ("Bash(git clone *)", "git clone -qu 'touch x' . y"),
        ("Bash(ip -4 *)", "ip -4 netns exec x y"),
        ("Bash(cargo +stable *)", "cargo +stable install x"),
        ("Bash(python -m pip *)", "python -m pip freeze --log-file=x"),
    ],
)
def test_a_rule_written_by_hand_lets_no_program_in_by_another_spelling(
    pattern: str, line: str
) -> None:
    assert said(call("Bash", line), rule("allow", pattern)) is None


def test_a_rule_written_by_hand_covers_the_subcommand_that_it_names() -> None:
    assert said(call("Bash", "git clone -q . y"), rule("allow", "Bash(git clone *)")) == "allow"
    assert said(call("Bash", "yarn deploy --json"), rule("allow", "Bash(yarn deploy *)")) == "allow"
    assert said(call("Bash", "git fetch -u x"), rule("allow", "Bash(git *)")) == "allow"


def test_a_bare_bash_rule_allows_only_what_is_understood() -> None:
    assert said(call("Bash", "make test"), rule("allow", "Bash")) == "allow"
    assert said(call("Bash", "make test > x"), rule("allow", "Bash")) is None
    assert said(call("Bash", "make $(x)"), rule("deny", "Bash")) == "deny"


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("Bash(git log --o*)", "git log --output=x"),
        ("Bash(sort -*)", "sort -o x y"),
        ("Bash(git s*)", "git submodule foreach x"),
        ("Bash(find . -*)", "find . -delete"),
        ("Bash(git -C *)", "git -C x bisect run y"),
        ("Bash(git --no-pager *)", "git --no-pager config a b"),
    ],
)
def test_a_word_that_may_go_on_lets_no_option_in_that_runs_or_writes(
    pattern: str, line: str
) -> None:
    assert said(call("Bash", line), rule("allow", pattern)) is None


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("Bash(git diff *)", "git diff --no-index /dev/null x"),
        ("Bash(git diff *)", "git diff --no-ind x y"),
        ("Bash(git diff *)", "git diff /dev/null /home/ana/.ssh/id_rsa"),
        ("Bash(git diff *)", "git diff x ../../.ssh/id_rsa"),
        ("Bash(git blame *)", "git blame --contents=/etc/passwd x"),
        ("Bash(git *)", "git diff -- /etc/passwd x"),
        ("Bash(kubectl get *)", "kubectl get secrets -o yaml"),
        ("Bash(kubectl get *)", "kubectl get pods,secret/x"),
        ("Bash(kubectl get *)", "kubectl get Secret"),
        ("Bash(kubectl get *)", "kubectl get -f x.yaml -o yaml"),
        ("Bash(kubectl get *)", "kubectl get --filename=x.yaml"),
        ("Bash(go test *)", "go test -test.memprofile=/x"),
        ("Bash(go test *)", "go test ./... -args --test.trace x"),
    ],
)
def test_a_wildcard_lets_no_word_in_that_reads_secrets_or_writes_files(
    pattern: str, line: str
) -> None:
    assert said(call("Bash", line), rule("allow", pattern)) is None
    assert derive(call("Bash", line)) is None


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("Bash(git diff *)", "git diff HEAD~1..HEAD -- src/a.py"),
        ("Bash(git log *)", "git log origin/main...HEAD --stat"),
        ("Bash(kubectl get *)", "kubectl get pods -n web -o wide"),
        ("Bash(go test *)", "go test ./... -run TestX -v"),
    ],
)
def test_a_wildcard_lets_the_usual_words_in(pattern: str, line: str) -> None:
    assert said(call("Bash", line), rule("allow", pattern)) == "allow"


@pytest.mark.parametrize(
    "name",
    [".git-credentials", ".curlrc", ".bash_history", "id_rsa", ".dockercfg", "ID_ED25519"],
)
def test_files_with_keys_and_histories_are_covered_by_no_wildcard(name: str) -> None:
    for pattern in ("Read", "Read(**)", "Read(home/*)"):
        assert said(call("Read", f"home/{name}"), rule("allow", pattern)) is None
    assert derive(call("Read", f"home/{name}")) is None


@pytest.mark.parametrize(
    "path",
    [
        "CLAUDE.local.md",
        "AGENTS.override.md",
        ".devcontainer/devcontainer.json",
        ".cursorrules",
        ".local/bin/git",
        ".oh-my-zsh/custom/x.zsh",
        ".lldbinit",
        ".pdbrc",
        ".ipython/profile_default/startup/x.py",
        ".pnpmfile.cjs",
        ".yarn/releases/yarn.cjs",
        ".Rprofile",
        ".nvm/nvm.sh",
        "Library/LaunchAgents/x.plist",
        ".vim/plugin/x.vim",
        ".p10k.zsh",
        ".zshrc.local",
        ".bashrc.local",
        ".fzf.bash",
        ".xonshrc",
    ],
)
def test_files_that_run_later_are_covered_by_no_wildcard(path: str) -> None:
    for pattern in ("Write", "Write(**)", f"Write({CWD}/**)"):
        assert said(call("Write", path), rule("allow", pattern)) is None
    assert derive(call("Write", path)) is None


@pytest.mark.parametrize(
    "path",
    [
        *("/proc/self/environ", "/proc/1/root/etc/x", "/sys/kernel/x", "/dev/sda", "/boot/x"),
        *("/etc/profile.d/x.sh", "/etc/sudoers", "/ETC/profile.d/x.sh", "/private/etc/x"),
    ],
)
def test_files_of_the_system_were_covered_by_a_wildcard(path: str) -> None:
    for pattern in ("Read", "Read(/**)", "Read(/*/**)"):
        assert said(call("Read", path), rule("allow", pattern)) is None
    assert said(call("Read", "x", cwd="/etc/y"), rule("allow", "Read(**)")) is None
    assert derive(call("Read", path)) is None


def test_files_of_the_system_are_covered_by_a_pattern_that_names_them() -> None:
    assert said(call("Read", "/etc/no-such/x"), rule("allow", "Read(/etc/**)")) == "allow"
    assert said(call("Read", "/srv/etc/proc"), rule("allow", "Read")) == "allow"


def test_a_denied_command_is_that_command_as_it_is_written() -> None:
    rules = [rule("allow", "Bash"), rule("deny", "Bash(rm -rf *)")]

    assert said(call("Bash", "rm -rf x"), *rules) == "deny"
    # Options in another order are other words: the documentation says so.
    assert said(call("Bash", "rm -fr x"), *rules) == "allow"
    assert said(call("Bash", "rm -fr x"), rules[0], rule("deny", "Bash(rm *)")) == "deny"


def test_a_word_that_may_go_on_covers_other_endings() -> None:
    allow = rule("allow", "Bash(npm run test*)")

    assert said(call("Bash", "npm run test:unit --silent"), allow) == "allow"
    assert said(call("Bash", "npm run tes"), allow) is None


def test_a_denied_wrapper_is_denied() -> None:
    assert said(call("Bash", "sudo ls"), rule("deny", "Bash(sudo *)")) == "deny"


def test_a_command_that_is_no_text_is_asked() -> None:
    asked = ToolCall("claude", "Bash", {"command": ["ls"]}, CWD)
    assert decide([rule("allow", "Bash")], asked, "s1", NOW) is None


@pytest.mark.parametrize(
    ("field", "off"),
    [("run_in_background", False), ("dangerouslyDisableSandbox", False), ("workdir", None)],
)
def test_a_call_that_says_more_than_its_command_is_asked(field: str, off: object) -> None:
    more = ToolCall("claude", "Bash", {"command": "git status", field: True}, CWD)
    usual = {"command": "git status", "description": "x", "timeout": 5, field: off}

    assert said(more, rule("allow", "Bash")) is None
    assert derive(more) is None
    assert said(more, rule("deny", "Bash(git *)")) == "deny"
    assert said(replace(more, input=usual), rule("allow", "Bash")) == "allow"


@pytest.mark.parametrize(
    "more",
    [
        *({"sandbox": False}, {"isolated": 0}, {"workdir": ""}, {"env": {}}, {"mounts": []}),
        *({"run_in_background": 0}, {"dangerouslyDisableSandbox": ""}, {"sandbox": 0.0}),
    ],
)
def test_a_call_that_says_no_to_its_sandbox_was_allowed_as_if_it_said_nothing(
    more: dict[str, Any],
) -> None:
    asked = ToolCall("codex", "Bash", {"command": "git status", **more}, CWD)

    assert said(asked, rule("allow", "Bash(git status)"), rule("allow", "Bash")) is None
    assert derive(asked) is None
    assert asked.odd_fields() == list(more)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Edit", {"file_path": "src/a.py", "filePath": ""}),
        ("MultiEdit", {"file_path": "src/a.py", "edits": 0}),
        ("Read", {"file_path": "src/a.py", "follow_links": False}),
        ("Edit", {"file_path": "src/a.py", "diff": "+x", "grantRoot": "/"}),
        ("Edit", {"file_path": "src/a.py", "filePath": "/etc/passwd"}),
        ("Edit", {"file_path": "src/a.py", "edits": [{"old_string": "a"}]}),
        ("Write", {"file_path": "src/a.py", "content": "x", "mode": "0777"}),
        ("Read", {"file_path": "src/a.py", "paths": ["/etc/passwd"]}),
        ("MultiEdit", {"file_path": "src/a.py", "edits": [{"file_path": "/etc/passwd"}]}),
        ("MultiEdit", {"file_path": "src/a.py", "edits": "x"}),
        ("MultiEdit", {"file_path": "src/a.py", "edits": 5}),
        ("NotebookEdit", {"notebook_path": "src/a.ipynb", "file_path": "/etc/passwd"}),
        ("WebFetch", {"url": "https://example.org", "urls": ["https://example.com"]}),
    ],
)
def test_a_call_that_names_more_than_its_file_or_address_is_asked_and_offered_no_rule(
    tool: str, given: dict[str, Any]
) -> None:
    asked = ToolCall("codex", tool, given, CWD)
    what = "domain:example.org" if tool == "WebFetch" else "**"

    assert said(asked, rule("allow", tool), rule("allow", f"{tool}({what})")) is None
    assert derive(asked) is None
    assert said(asked, rule("deny", tool)) == "deny"


@pytest.mark.parametrize("paths", [["infra/x.tf"], ["src/a.py", "infra/x.tf"], [3, "infra/x.tf"]])
def test_a_change_of_several_files_is_denied_where_one_of_them_is(paths: list[Any]) -> None:
    asked = ToolCall("codex", "MultiEdit", {"paths": paths, "diff": "delete …"}, CWD)
    allow = [rule("allow", tool) for tool in ("MultiEdit", "MultiEdit(**)", "Edit(**)")]

    assert said(asked, *allow) is None
    assert said(asked, *allow, rule("deny", "Edit(infra/**)")) == "deny"
    assert derive(asked) is None


def test_what_says_no_more_of_a_change_does_not_void_a_rule() -> None:
    usual = {"file_path": "src/a.py", "old_string": "a", "new_string": "b", "replace_all": True}
    several = {"file_path": "src/a.py", "edits": [{"old_string": "a", "new_string": "b"}]}

    asked = ToolCall("claude", "Edit", {**usual, "grantRoot": None}, CWD)
    assert said(asked, rule("allow", "Edit(src/**)")) == "allow"
    asked = ToolCall("claude", "MultiEdit", several, CWD)
    assert said(asked, rule("allow", "MultiEdit(src/**)")) == "allow"


def test_a_rule_counts_for_its_session_until_it_expires_or_is_revoked() -> None:
    own = rule("allow", "Bash(ls)", session_id=SessionId("s1"), expires_at=NOW + timedelta(1))

    assert said(call("Bash", "ls"), own) == "allow"
    assert said(call("Bash", "ls"), replace(own, session_id=SessionId("s2"))) is None
    assert said(call("Bash", "ls"), replace(own, expires_at=NOW)) is None
    assert said(call("Bash", "ls"), replace(own, revoked_at=NOW)) is None


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("Edit(src/**)", "src/a.py"),
        ("Edit(src/**)", "src/deep/er/a.py"),
        ("Edit(src/**)", f"{CWD}/src/a.py"),
        ("Edit(src/*.py)", "src/a.py"),
        ("Edit(src/**/a.py)", "src/a.py"),
        ("Edit(/no/such/**)", "src/a.py"),
        ("Edit(src/a.py)", "./src//x/../a.py"),
        ("Edit", "src/a.py"),
        ("Edit(.github/**)", ".github/workflows/ci.yml"),
        ("Edit(.env)", ".env"),
    ],
)
def test_a_glob_covers_what_it_means(pattern: str, path: str) -> None:
    assert said(call("Edit", path), rule("allow", pattern)) == "allow"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("Edit(src/**)", "src/../etc/passwd"),
        ("Edit(src/**)", "../src/a.py"),
        ("Edit(src/**)", "/etc/passwd"),
        ("Edit(src/**)", "srcx/a.py"),
        ("Edit(src/**)", "SRC/a.py"),
        ("Edit(src/*)", "src/deep/a.py"),
        ("Edit(src/**)", "~/src/a.py"),
        ("Edit(**)", ".git/hooks/pre-commit"),
        ("Edit(**)", ".GIT/hooks/pre-commit"),
        ("Edit(**)", "sub/.git/config"),
        ("Edit(**)", ".claude/settings.json"),
        ("Edit(**)", ".env"),
        ("Edit(**)", ".env.local"),
        ("Edit(*)", ".bashrc"),
        ("Edit(.*)", ".zshrc"),
        ("Edit(**)", ".g\u200cit/config"),
        ("Edit(**)", "a\x00b"),
        ("Edit(**)", ""),
        ("Edit", ".git/config"),
        ("Edit", "pynchy.toml"),
        ("Write(src/**)", "src/a.py"),
    ],
)
def test_a_glob_covers_nothing_else(pattern: str, path: str) -> None:
    assert said(call("Edit", path), rule("allow", pattern)) is None


def test_a_folder_that_the_agent_names_opens_no_sensitive_one() -> None:
    inside = call("Edit", "hooks/pre-commit", cwd=f"{CWD}/.git")
    assert said(inside, rule("allow", "Edit(**)"), rule("allow", "Edit")) is None


@pytest.mark.parametrize("cwd", ["", "relative", "/x\x00y"])
def test_a_relative_path_of_an_unknown_folder_is_asked(cwd: str) -> None:
    assert said(call("Edit", "src/a.py", cwd), rule("allow", "Edit(src/**)")) is None
    assert said(call("Edit", "src/a.py", cwd), rule("allow", "Edit")) is None


@pytest.mark.parametrize("path", ["INFRA/main.tf", "infra/.git/x", "a/../infra/x"])
@pytest.mark.parametrize("tool", ["Edit", "Write", "NotebookEdit"])
def test_a_denied_folder_is_denied_to_all_that_change_files(path: str, tool: str) -> None:
    assert said(call(tool, path), rule("deny", "Edit(infra/**)")) == "deny"
    assert said(call("Read", path), rule("deny", "Edit(infra/**)")) is None
    assert said(call(tool, path), rule("deny", "Edit")) == "deny"


@pytest.mark.parametrize("cwd", ["", "app"])
@pytest.mark.parametrize(
    "line", ["cat ../data/token", "cat token", "cat --show=../token", "cat -n ../token"]
)
def test_a_command_that_names_a_file_of_an_unknown_folder_is_asked(cwd: str, line: str) -> None:
    for pattern in ("Bash(cat *)", "Bash", "Bash(*)", "Bash(cat -*)"):
        assert said(call("Bash", line, cwd), rule("allow", pattern)) is None
    assert said(call("Bash", line, cwd), rule("allow", f"Bash({line})")) == "allow"
    assert said(call("Bash", "cat -n /srv/x", cwd), rule("allow", "Bash(cat *)")) == "allow"
    assert said(call("Bash", line, cwd), rule("deny", "Bash(cat *)")) == "deny"


@pytest.mark.parametrize("cwd", ["/no/such/app", "/no/such/app/infra", "/no/such", "/", "", "x"])
@pytest.mark.parametrize("path", ["/no/such/app/infra/x.tf", "/no/such/app/infra/a/b/x.tf"])
def test_a_denied_folder_is_denied_wherever_the_agent_says_it_is(cwd: str, path: str) -> None:
    rules = [rule("allow", "Edit"), rule("deny", "Edit(infra/**)")]

    assert said(call("Edit", path, cwd), *rules) == "deny"
    assert said(call("Edit", "/no/such/app/other/x.tf", cwd), *rules) == "allow"


@pytest.mark.parametrize("field", ["notebook_path", "path", "filePath"])
def test_a_denied_folder_is_denied_however_the_file_is_named(field: str) -> None:
    deny = rule("deny", "Edit(infra/**)")

    asked = ToolCall("claude", "NotebookEdit", {field: "infra/x.ipynb"}, CWD)
    assert said(asked, rule("allow", "NotebookEdit"), deny) == "deny"
    both = ToolCall("claude", "Edit", {"file_path": "src/x.py", field: "infra/x.ipynb"}, CWD)
    assert said(both, rule("allow", "Edit"), deny) == "deny"


def test_a_notebook_is_a_file_like_others() -> None:
    asked = ToolCall("claude", "NotebookEdit", {"notebook_path": "nb/x.ipynb"}, CWD)

    assert said(asked, rule("allow", "NotebookEdit(nb/**)")) == "allow"
    assert derive(asked) == f"NotebookEdit({CWD}/nb/x.ipynb)"


def test_a_change_of_several_files_at_once_is_asked_where_it_cannot_be_told_which() -> None:
    several = ToolCall("codex", "MultiEdit", {"diff": "update infra/x.tf\n+a"}, CWD)
    rules = [rule("allow", tool) for tool in ("MultiEdit", "Edit", "Write")]

    assert said(several, *rules, rule("deny", "Edit(infra/**)")) is None
    assert derive(several) is None


def test_links_are_followed_where_the_host_sees_them(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "src").mkdir()
    (root / "src" / "out").symlink_to("/etc")
    (root / "src" / "in.py").symlink_to("real.py")
    (root / "door").symlink_to(root / "src")
    allow = rule("allow", "Edit(src/**)")

    def of(path: str) -> ToolCall:
        return call("Edit", path, str(root))

    assert said(of("src/real.py"), allow) == "allow"
    assert said(of("src/in.py"), allow) == "allow"
    assert said(of("src/out/passwd"), allow) is None
    assert said(of("src/out/../x"), allow) is None
    assert said(of("door/real.py"), rule("deny", "Edit(src/**)")) == "deny"
    assert derive(of("src/in.py")) is None


def test_the_hosts_own_files_are_covered_by_no_wildcard(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "settings.toml"
    own = Protected.of_host(data, file)
    root = f"Edit({tmp_path}/**)"

    def edited(path: Path, *patterns: str) -> str | None:
        rules = [rule("allow", pattern) for pattern in patterns]
        return said(call("Edit", str(path)), *rules, protected=own)

    assert edited(data / "rules.json", root, "Edit") is None
    assert edited(data / "ipc" / "x", root, f"Edit({data}/ipc/*)") is None
    assert edited(file, root, "Edit") is None
    assert edited(file, f"Edit({file})") == "allow"
    assert edited(data / "boxes" / "team" / "workspace" / "a.py", root) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "cat {data}/token",
        "cat {data}/../data/token",
        "cat --file={data}/token",
        "cat -f{data}/token",
        "cat link/token",
        "cat {file}",
        "ls; cat {data}",
    ],
)
def test_a_command_that_names_the_hosts_own_files_is_asked(tmp_path: Path, line: str) -> None:
    data, file = tmp_path / "data", tmp_path / "settings.toml"
    data.mkdir()
    (tmp_path / "link").symlink_to(data)
    own = Protected.of_host(data, file)
    rules = [rule("allow", "Bash(cat *)"), rule("allow", "Bash")]

    asked = call("Bash", line.format(data=data, file=file), str(tmp_path))

    assert said(asked, *rules, protected=own) is None
    assert said(call("Bash", "cat x", str(data)), *rules, protected=own) is None
    assert said(call("Bash", "cat x /y -n", str(tmp_path)), *rules, protected=own) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "pynchy answer h3kd 1",
        "pynchy rules revoke h3kd7p",
        "pynchy --data-dir x answer h3kd 1",
        "/usr/bin/pynchy decline h3kd",
        "python -m pynchy answer h3kd 1",
        "pynchy",
    ],
)
def test_an_agent_does_not_answer_for_people_by_a_rule(line: str) -> None:
    rules = [rule("allow", pattern) for pattern in ("Bash", "Bash(*)", "Bash(pynchy *)")]

    assert said(call("Bash", line), *rules) is None
    assert derive(call("Bash", line)) is None
    assert said(call("Bash", line), rule("allow", f"Bash({line})")) == "allow"


def test_an_agent_may_ask_by_a_rule() -> None:
    asked = call("Bash", "pynchy ask 'Deploy?' -o Yes -o No")
    assert said(asked, rule("allow", "Bash(pynchy ask *)")) == "allow"


@pytest.mark.parametrize(
    "url", ["https://docs.python.org", "http://docs.python.org/3/?x#y", "https://DOCS.python.org/"]
)
def test_a_host_is_covered(url: str) -> None:
    assert said(call("WebFetch", url), rule("allow", "WebFetch(domain:docs.python.org)")) == "allow"


@pytest.mark.parametrize(
    "url",
    [
        "https://docs.python.org.evil.org/",
        "https://evil.org/docs.python.org",
        "https://docs.python.org@evil.org/",
        "https://evil.org#@docs.python.org",
        "https://evil.org\\@docs.python.org",
        "https://docs.python.org:8443/",
        "https://docs.python.org:/",
        "https://docs.python.org:x/",
        "https://xdocs.python.org/",
        "https://docs.python.org./",
        "ftp://docs.python.org/",
        "//docs.python.org/",
        "docs.python.org",
        "file:///etc/passwd",
        " https://docs.python.org/",
        "https://docs.python.org/\n",
        "https://d\u043ecs.python.org/",
        "https://[::1]/",
        "",
    ],
)
def test_no_other_host_is_covered(url: str) -> None:
    assert said(call("WebFetch", url), rule("allow", "WebFetch(domain:docs.python.org)")) is None


def test_hosts_below_one_are_covered_where_the_pattern_says_so() -> None:
    below = rule("allow", "WebFetch(domain:*.python.org)")

    assert said(call("WebFetch", "https://docs.python.org/"), below) == "allow"
    assert said(call("WebFetch", "https://python.org/"), below) is None
    assert said(call("WebFetch", "https://xpython.org/"), below) is None


def test_tools_are_told_apart() -> None:
    assert said(call("mcp__jira__create"), rule("allow", "mcp__jira__create")) == "allow"
    assert said(call("mcp__jira__create_all"), rule("allow", "mcp__jira__create")) is None
    assert said(call("mcp__jira2__create"), rule("allow", "mcp__jira__*")) is None
    assert said(call("bash"), rule("allow", "Bash")) is None
    assert said(call("bash"), rule("deny", "Bash")) == "deny"
    assert said(call("Task"), rule("deny", "*")) == "deny"
    assert said(call("Task"), rule("allow", "*")) is None
    assert said(call("Bash", "ls"), rule("allow", "*")) is None


@pytest.mark.parametrize(
    ("asked", "pattern"),
    [
        (call("Bash", "git status -s"), f"Bash(git status *) in {CWD}"),
        (call("Bash", "git diff HEAD~1"), f"Bash(git diff *) in {CWD}"),
        (call("Bash", "git log | git log -3"), f"Bash(git log *) in {CWD}"),
        (call("Bash", "kubectl get pods"), "Bash(kubectl get *)"),
        (call("Bash", "gh pr view 3"), "Bash(gh pr view *)"),
        (call("Bash", "git push origin main"), f"Bash(git push origin main) in {CWD}"),
        (call("Bash", "npm run build"), f"Bash(npm run build) in {CWD}"),
        (call("Bash", "pytest -q 'a b'"), f"Bash(pytest -q 'a b') in {CWD}"),
        (call("Bash", "make test"), f"Bash(make test) in {CWD}"),
        (call("Bash", "npm audit fix"), f"Bash(npm audit fix) in {CWD}"),
        (call("Bash", "mytool '*'"), f"Bash(mytool '*') in {CWD}"),
        (call("Bash", "python -m pytest -q"), f"Bash(python -m pytest -q) in {CWD}"),
        (call("Edit", "src/a.py"), f"Edit({CWD}/src/a.py)"),
        (call("WebFetch", "https://Example.org/x"), "WebFetch(domain:example.org)"),
        (call("mcp__jira__create"), "mcp__jira__create"),
    ],
)
def test_a_narrow_rule_is_offered_which_covers_the_call(asked: ToolCall, pattern: str) -> None:
    assert derive(asked) == pattern
    assert said(asked, on_card(pattern)) == "allow"


@pytest.mark.parametrize("line", ["npm run build", "make", "cargo build", "git status", "go test"])
def test_a_rule_made_in_one_folder_runs_no_code_of_another(line: str) -> None:
    pattern = derive(call("Bash", line))

    assert pattern is not None
    assert pattern.endswith(f" in {CWD}")
    own = on_card(pattern)
    for cwd in (CWD, f"{CWD}/sub", f"{CWD}/sub/.."):
        assert said(call("Bash", line, cwd), own) == "allow"
    for cwd in ("/srv/evil", f"{CWD}-evil", f"{CWD}/../evil", "/", "", "app"):
        assert said(call("Bash", line, cwd), own) is None


def test_a_command_that_looks_like_a_folder_is_none() -> None:
    line = "mytool 'a) in /srv'"
    pattern = derive(call("Bash", line))

    assert pattern == f"Bash(mytool 'a) in /srv') in {CWD}"
    assert said(call("Bash", line), rule("allow", pattern)) == "allow"
    assert said(call("Bash", line), rule("allow", "Bash(mytool 'a) in /srv')")) == "allow"


def test_a_rule_says_in_which_folder_it_is_good() -> None:
    words = describe("Bash(npm run build) in /srv/app")
    assert words == "exactly this shell command: npm run build; in the folder /srv/app"


@settings(derandomize=True, max_examples=300, deadline=None)
@given(
    words=st.lists(st.text("ab -*'\"\\\\$`;|&<>(){}[]!#~=\n\té", max_size=5), max_size=4),
    more=st.sampled_from(["; ls", " | ls", "\nls", " x", " $(ls)", " > x", " &", "'", "\\"]),
)
def test_a_rule_for_a_whole_command_covers_that_and_nothing_else(
    words: list[str], more: str
) -> None:
    line = shlex.join(["mytool", *words])
    pattern = derive(call("Bash", line))

    if pattern is not None:
        own = on_card(pattern)
        assert said(call("Bash", line), own) == "allow"
        assert said(call("Bash", line + more), own) is None


@pytest.mark.parametrize(
    "asked",
    [
        *(
            call("Bash", line)
            for line in [
                "rm -rf build",
                "bash",
                "python",
                "python -c 'x'",
                "node -e x",
                "perl -ne x",
                "sed -i s/a/b/ x",
                "awk x",
                "curl https://example.org",
                "ssh host",
                "./run.sh",
                "python tool.py",
                "python3 ./tool.py --check",
                "node build.js",
                "perl a.pl",
                "deno run x.ts",
                "java -jar x.jar",
                f"{CWD}/run.sh",
                f"python {CWD}/tool.py",
                f"python /usr/..{CWD}/tool.py",
                "git -c a=b log",
                "git log --output=x",
                "git config a b",
                "find . -delete",
                "find . -exec x",
                "chmod 777 x",
                "git status; ls",
                "git status > x",
                "echo $HOME",
                "echo 'two\nlines'",
                "echo " + "x" * 2000,
                "",
            ]
        ),
        call("Bash", "npm run build", cwd=""),
        call("Bash", "npm run build", cwd="/"),
        call("Bash", "npm run build", cwd="app"),
        call("Bash", "npm run build", cwd="/srv/a (old)"),
        call("Edit", ".git/config"),
        call("Edit", ".env"),
        call("Edit", "a*b"),
        call("Edit", "src/a.py", cwd=""),
        call("Write", "~/x"),
        call("WebFetch", "https://a@b.org/"),
        call("WebFetch", "http://169.254.169.254/latest"),
        call("WebFetch", "http://localhost/"),
        call("WebFetch", "http://0x7f.0x0.0x0.0x1/"),
        call("WebFetch", "http://127.0x1/"),
        call("WebFetch", "http://169.254.0xa9.254/"),
        call("WebFetch", "http://1.0X7F/"),
        call("WebFetch", "http://localhost.localdomain/"),
        call("WebFetch", "http://metadata.google.internal/x"),
        call("WebFetch", "http://printer.local/"),
        call("WebFetch", "http://a.localhost/"),
        call("WebFetch", "http://router.home.arpa/"),
        call("WebFetch", "http://nas.lan/"),
        call("Task"),
        call("shell"),
        call("mcp__x__*"),
        call("mcp__github"),
    ],
)
def test_no_rule_is_offered_for_what_is_doubtful_or_dangerous(asked: ToolCall) -> None:
    assert derive(asked) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "git status",
        "Bash(",
        "Bash()",
        "Bash(git status; ls)",
        "Bash(git $X)",
        "Bash(git* status)",
        "Bash(* status)",
        "Bash(git*)",
        "Bash(git 'x)",
        "Bash(ls) in srv",
        "Bash(ls) in /srv/../x",
        "Bash(ls) in /srv/*",
        "Bash in /srv",
        "Edit(x) in /srv",
        "Edit(~/x)",
        "Edit(../x)",
        "Edit(src/../x)",
        "Edit(src/)",
        "Edit(a**b)",
        "Edit()",
        "WebFetch(docs.python.org)",
        "WebFetch(domain:)",
        "WebFetch(domain:*)",
        "WebFetch(domain:a/b)",
        "Task(x)",
        "mcp__*__x",
        "Bash(" + "x" * 2000 + ")",
    ],
)
def test_what_is_no_pattern_is_refused_with_words(pattern: str) -> None:
    with pytest.raises(PatternProblem, match=r"\w+ \w+"):
        read_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("Bash(mytool x *)", "shell commands that begin with: mytool x"),
        ("Bash(git push)", "exactly this shell command: git push"),
        ("Bash(git tag 'a b')", "exactly this shell command: git tag 'a b'"),
        ("Edit(src/**)", "changing files: src/** (Edit)"),
        ("WebFetch(domain:a.org)", "fetching pages of a.org"),
        ("mcp__jira__create", "every call of the tool create of the MCP server jira"),
        ("Read", "every call of Read"),
    ],
)
def test_a_pattern_is_said_in_plain_words(pattern: str, words: str) -> None:
    assert describe(pattern) == words


def test_the_words_for_a_known_program_say_what_is_left_out() -> None:
    assert describe("Bash(git status *)") == (
        "shell commands that begin with: git status "
        "(but no options that run or write something else)"
    )


def test_the_words_for_a_rule_of_a_card_promised_more_than_its_star_lets_in() -> None:
    known = (
        "shell commands that begin with: git status (with options that are known to be harmless)"
    )

    assert describe("Bash(git status *)", origin=Origin.CARD) == known
    assert describe("Bash(git status)", origin=Origin.CARD).endswith("command: git status")


def test_a_denied_server_is_denied_with_all_its_tools() -> None:
    denied = rule("deny", "mcp__jira")

    assert said(ToolCall("claude", "mcp__jira__create", {}, CWD), denied) == "deny"
    assert said(ToolCall("claude", "mcp__jirax__create", {}, CWD), denied) is None


def test_what_a_denial_covers_leaves_nothing_out() -> None:
    assert "but no options" in describe("Bash(git push *)")
    assert "but no options" not in describe("Bash(git push *)", Effect.DENY)


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("bash(git status *)", "did you mean Bash?"),
        ("Bash(git status *", "a bracket that is not closed"),
        ("Grep(x)", "write Grep alone for all its calls"),
    ],
)
def test_a_pattern_that_cannot_be_read_says_what_is_wrong(pattern: str, advice: str) -> None:
    with pytest.raises(PatternProblem, match=re.escape(advice)):
        read_pattern(pattern)


def several(*paths: str) -> ToolCall:
    return ToolCall("codex", "MultiEdit", {"paths": list(paths)}, CWD)


def test_a_file_was_looked_up_again_for_every_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []
    monkeypatch.setattr("pynchy.permissions.links.os", _Disk(looked_up))
    rules = [rule("deny", f"Edit(infra{number}/**)") for number in range(30)]

    assert said(several("/a/b/c", "/a/b/d"), *rules) is None

    assert sorted(looked_up) == sorted({*looked_up})
    assert {"/a/b/c", "/a/b/d"} <= {*looked_up}


class _Disk:
    """The disk, with every name that is looked up there; `links` are on it."""

    def __init__(
        self,
        looked_up: list[str],
        links: dict[str, str] | None = None,
        error: int = errno.ENOENT,
    ) -> None:
        self._error = error
        self._looked_up = looked_up
        self._links = links or {}

    def readlink(self, path: str) -> str:
        self._looked_up.append(path)
        if path in self._links:
            return self._links[path]
        raise OSError(self._error, "none")


@pytest.mark.parametrize("error", [errno.EACCES, errno.EIO, errno.ELOOP, errno.ESTALE])
def test_a_path_that_could_not_be_looked_up_was_taken_for_no_link(
    monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    monkeypatch.setattr("pynchy.permissions.links.os", _Disk([], error=error))
    protected = Protected(("/srv/pynchy",))

    assert said(call("Read", "/a/b"), rule("allow", "Read(/a/**)")) is None
    assert said(call("Read", "/a/b"), rule("deny", "Read(/a/**)")) == "deny"
    assert said(call("Bash", "cat a"), rule("allow", "Bash(cat *)"), protected=protected) is None


@pytest.mark.parametrize("error", [errno.EINVAL, errno.ENOENT, errno.ENOTDIR])
def test_what_is_no_link_or_not_there_is_allowed_as_it_is_written(
    monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    monkeypatch.setattr("pynchy.permissions.links.os", _Disk([], error=error))

    assert said(call("Read", "/a/b"), rule("allow", "Read(/a/**)")) == "allow"


@pytest.mark.parametrize(("word", "effect"), [("é" * 200, "allow"), ("a/" * 2_200, None)])
def test_a_long_text_is_no_file_but_a_long_path_may_be_one(word: str, effect: str | None) -> None:
    protected = Protected(("/srv/pynchy",))
    asked = call("Bash", f"echo '{word}'")

    assert said(asked, rule("allow", "Bash(echo *)"), protected=protected) == effect


def test_a_call_with_thousands_of_paths_cost_seconds_to_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up: list[str] = []
    monkeypatch.setattr("pynchy.permissions.links.os", _Disk(looked_up))
    many = several(*(f"/{'a/' * 30}{n}/b/c/d/e/f/g" for n in range(3_000)))

    decided = judge([rule("allow", "Edit"), rule("deny", "Edit(infra/**)")], many, "s1", NOW)

    assert decided.effect is Effect.ASK
    assert decided.because.words == "it names more files than rules look at"
    assert len(looked_up) <= MAX_STEPS


def test_a_denied_file_behind_many_others_is_never_allowed() -> None:
    padding = [f"/{'a/' * 60}{n}" for n in range(1_500)]
    rules = (rule("allow", "MultiEdit"), rule("deny", "Edit(infra/**)"))

    assert said(several(f"{CWD}/infra/x", *padding), *rules) == "deny"
    assert said(several(*padding, f"{CWD}/infra/x"), *rules) is None


def test_links_that_lead_to_links_without_end_cost_no_more_than_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up: list[str] = []
    # Each names all of the next level: followed to the end, there are millions.
    links = {f"/l{level}": f"/l{level + 1}/../" * 300 for level in range(30)}
    monkeypatch.setattr("pynchy.permissions.links.os", _Disk(looked_up, links))
    rules = [rule("allow", "Read(/**)"), rule("deny", "Read(/l0)")]

    assert said(call("Read", "/l1/x"), *rules) is None
    assert said(call("Read", "/l0"), *rules) == "deny"
    assert len(looked_up) <= 2 * MAX_STEPS


def test_a_link_in_a_circle_is_asked(tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(tmp_path / "there")
    (tmp_path / "there").symlink_to(tmp_path / "here")

    assert said(call("Read", f"{tmp_path}/here/x"), rule("allow", f"Read({tmp_path}/**)")) is None


def test_a_thousand_words_in_a_deep_folder_cost_seconds_to_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up: list[str] = []
    monkeypatch.setattr("pynchy.permissions.links.os", _Disk(looked_up))
    words = " ".join(f"w{number}" for number in range(800))
    protected = Protected(("/srv/pynchy",))
    deep = "/" + "/".join(["x"] * 90)

    asked = call("Bash", f"echo {words}", deep)
    assert said(asked, rule("allow", "Bash(echo *)"), protected=protected) == "allow"

    assert len(looked_up) < 90 + 2 * 800


def test_a_command_with_more_paths_than_are_looked_at_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pynchy.permissions.links.os", _Disk([]))
    protected = Protected(("/srv/pynchy",))
    asked = call("Bash", f"echo --x={'a/' * 2_400}")

    decided = judge([rule("allow", "Bash(echo *)")], asked, "s1", NOW, protected)

    assert (decided.effect, decided.rules) == (Effect.ASK, ())
    assert decided.because.words == "it names more files than rules look at"


@given(
    glob=st.lists(st.sampled_from(["a", "b", "**", "*", "a*"]), min_size=1, max_size=6),
    path=st.lists(st.sampled_from(["a", "b", "ab", "c"]), min_size=1, max_size=7),
)
@settings(max_examples=300)
def test_a_denied_glob_means_what_an_allowed_one_means(glob: list[str], path: list[str]) -> None:
    pattern, asked = f"Edit(/{'/'.join(glob)})", call("Edit", "/no-such-" + "/".join(path))
    pattern = pattern.replace("(/", "(/no-such-", 1) if glob[0] not in {"**", "*"} else pattern

    allowed = said(asked, rule("allow", pattern))
    denied = said(asked, rule("deny", pattern))

    assert (allowed is None) == (denied is None)
