"""What a person reads when the settings are wrong."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pynchy.config import ChannelSettings
from pynchy.config.loading import read_settings
from pynchy.errors import ConfigError

TOP = """\
= allowed: answer_ttl, channels, groups, http, lease_ttl, max_open_per_group,
      max_open_size_per_group, max_resumes, receipt_grace, report_to_phux, request_burst,
      requests_per_second, retention, send_timeout, show_patience, sources, wait_timeout"""


class _Chatty(ChannelSettings):
    bot_token: str
    chat_names: tuple[str, ...] = ()


CHANNELS: dict[str, type[ChannelSettings]] = {"local": ChannelSettings, "chatty": _Chatty}

# The text of a file, and all that is said about it.
EXACT = {
    "a misspelt setting": (
        '# mine\nwait_timout = "45m"\n',
        f"""\
pynchy.toml:2:1: unknown setting "wait_timout"
  2 | wait_timout = "45m"
    | ^^^^^^^^^^^
    = did you mean "wait_timeout"?
    {TOP}""",
    ),
    "a setting below the wrong table": (
        '[http]\nanswer_ttl = "1d"\n',
        """\
pynchy.toml:2:1: unknown setting "answer_ttl" in [http]
  2 | answer_ttl = "1d"
    | ^^^^^^^^^^
    = it belongs above the first [table]
    = allowed: allowed_hosts, host, port, public_url""",
    ),
    "a setting above its table": (
        "port = 1\n",
        f"""\
pynchy.toml:1:1: unknown setting "port"
  1 | port = 1
    | ^^^^
    = it belongs in [http]
    {TOP}""",
    ),
    "a source without a group": (
        "[sources.codex]\n",
        """\
pynchy.toml:1:10: [sources.codex] needs "group"
  1 | [sources.codex]
    |          ^^^^^
    = group must be the name of a group, such as "web-team\"""",
    ),
    "a source for a group without a table": (
        '[groups.web-team]\n[sources.codex]\ngroup = "web-tem"\n',
        """\
pynchy.toml:3:9: sources.codex.group names a group that has no table: "web-tem"
  3 | group = "web-tem"
    |         ^^^^^^^^^
    = did you mean "web-team"?
    = add its table: [groups.web-tem]""",
    ),
    "a source that forwards nothing": (
        '[groups.web]\n[sources.codex]\ngroup = "web"\nforward = []\n',
        """\
pynchy.toml:4:11: sources.codex.forward must be a list of one or both of "permission" and "question"
  4 | forward = []
    |           ^^""",
    ),
    "a wrong type": (
        '[groups.web]\nchannels = "local"',
        """\
pynchy.toml:2:12: groups.web.channels must be a list of one or more channel names, \
such as ["local"]; this is a string
  2 | channels = "local"
    |            ^^^^^^^""",
    ),
    "a wrong type within a list": (
        '[groups]\nweb.channels = [\n  "local",  # here\n  true,\n]',
        """\
pynchy.toml:4:3: groups.web.channels must be a list of one or more channel names, \
such as ["local"]; this is true or false
  4 |   true,
    |   ^^^^""",
    ),
    "a number out of range": (
        "http = { port = 70000 }",
        """\
pynchy.toml:1:17: http.port must be a whole number from 0 to 65535
  1 | http = { port = 70000 }
    |                 ^^^^^""",
    ),
    "a duration that is none": (
        'lease_ttl = "30 minutes"',
        """\
pynchy.toml:1:13: lease_ttl must be a duration above 0 and up to 3650d, \
such as "90s", "30m", "1h30m", "7d", "500ms" or a number of seconds
  1 | lease_ttl = "30 minutes"
    |             ^^^^^^^^^^^^""",
    ),
    "clocks that contradict each other": (
        'wait_timeout = "2h"\nanswer_ttl = "1h"',
        """\
pynchy.toml:2:14: answer_ttl is shorter than wait_timeout: \
the question would expire while the agent still waits for its answer
  2 | answer_ttl = "1h"
    |              ^^^^
    = allowed: an answer_ttl that is as long as wait_timeout, or longer""",
    ),
    "an unknown channel": (
        "[channels.chaty]",
        """\
pynchy.toml:1:11: unknown channel "chaty"
  1 | [channels.chaty]
    |           ^^^^^
    = did you mean "chatty"?
    = allowed: chatty, local""",
    ),
    "a channel without its table": (
        '[groups.web]\nchannels = ["local", "chatty"]',
        """\
pynchy.toml:2:22: groups.web.channels names a channel that is not configured
  2 | channels = ["local", "chatty"]
    |                      ^^^^^^^^
    = add its table: [channels.chatty]
    = allowed: local, web""",
    ),
    "a misspelt channel that has no table either": (
        '[groups.web]\nchannels = ["chaty"]',
        """\
pynchy.toml:2:13: groups.web.channels names a channel that is not configured
  2 | channels = ["chaty"]
    |             ^^^^^^^
    = did you mean "chatty"?
    = and add its table: [channels.chatty]
    = allowed: local, web""",
    ),
    "a misspelt channel among the users": (
        '[groups.web]\nallowed_users = { locl = ["ana"] }',
        """\
pynchy.toml:2:19: groups.web.allowed_users names a channel that is not configured
  2 | allowed_users = { locl = ["ana"] }
    |                   ^^^^
    = did you mean "local"?
    = allowed: local, web""",
    ),
    "an unknown placeholder": (
        '[groups.web.launcher]\ncommand = ["agent", "{sesion_id}"]',
        """\
pynchy.toml:2:21: groups.web.launcher.command has an unknown placeholder
  2 | command = ["agent", "{sesion_id}"]
    |                     ^^^^^^^^^^^^^
    = did you mean {session_id}?
    = allowed: {initial}, {session_id}, {request_id}, {group}, {ipc_dir}; \
a literal brace is doubled""",
    ),
    "a launcher without a command": (
        "[groups.web.launcher]\nattempts = 1",
        """\
pynchy.toml:1:13: [groups.web.launcher] needs "command"
  1 | [groups.web.launcher]
    |             ^^^^^^^^
    = command must be a list of strings that is not empty, such as ["agent", "{initial}"]""",
    ),
    "a process without an agent": (
        '[groups.web.launcher]\nkind = "process"',
        """\
pynchy.toml:1:13: [groups.web.launcher] needs "agent"
  1 | [groups.web.launcher]
    |             ^^^^^^^^
    = agent must be "acp", "claude", "codex" or "opencode\"""",
    ),
    "an agent that speaks ACP without its program": (
        '[groups.web.launcher]\nkind = "process"\nagent = "acp"',
        """\
pynchy.toml:3:9: agent = "acp" needs "acp_command", the program that speaks ACP
  3 | agent = "acp"
    |         ^^^^^
    = acp_command must be a list of strings that is not empty, such as ["gemini", "--acp"]""",
    ),
    "an agent without its kind": (
        '[groups.web.launcher]\nagent = "claude"',
        """\
pynchy.toml:1:13: [groups.web.launcher] needs "command"
  1 | [groups.web.launcher]
    |             ^^^^^^^^
    = command must be a list of strings that is not empty, such as ["agent", "{initial}"]

pynchy.toml:2:1: groups.web.launcher.agent is only for kind = "process", "bubblewrap" or "docker"
  2 | agent = "claude"
    | ^^^^^
    = add kind = "process", "bubblewrap" or "docker", or remove agent""",
    ),
    "a command in a process": (
        '[groups.web.launcher]\nkind = "process"\nagent = "codex"\ncommand = ["x"]',
        """\
pynchy.toml:4:1: groups.web.launcher.command is only for kind = "command"
  4 | command = ["x"]
    | ^^^^^^^
    = add kind = "command", or remove command""",
    ),
    "an unknown agent": (
        '[groups.web.launcher]\nkind = "process"\nagent = "gpt"',
        """\
pynchy.toml:3:9: groups.web.launcher.agent must be "acp", "claude", "codex" or "opencode"
  3 | agent = "gpt"
    |         ^^^^^""",
    ),
    "an unknown kind of launcher": (
        '[groups.web.launcher]\nkind = "jail"',
        """\
pynchy.toml:2:8: groups.web.launcher.kind must be "command", "process", "bubblewrap" or "docker"
  2 | kind = "jail"
    |        ^^^^^^""",
    ),
    "a working folder for a box": (
        '[groups.web.launcher]\nkind = "bubblewrap"\nagent = "codex"\ncwd = "/srv"',
        """\
pynchy.toml:4:1: groups.web.launcher.cwd is only for kind = "command" or "process"
  4 | cwd = "/srv"
    | ^^^
    = add kind = "command" or "process", or remove cwd
    = a box has a workspace in its place""",
    ),
    "a network that needs an address": (
        '[groups.web.launcher]\nkind = "docker"\nagent = "codex"\nnetwork = "proxy"',
        """\
pynchy.toml:4:1: groups.web.launcher: network = "proxy" and a proxy go together
  4 | network = "proxy"
    | ^^^^^^^
    = such as network = "proxy" with proxy = "127.0.0.1:8080\"""",
    ),
    "a bridge without an engine": (
        '[groups.web.launcher]\nkind = "bubblewrap"\nagent = "codex"\nnetwork = "bridge"',
        """\
pynchy.toml:4:11: groups.web.launcher.network = "bridge" is only for kind = "docker"
  4 | network = "bridge"
    |           ^^^^^^^^
    = allowed: "none", "proxy" or "host\"""",
    ),
    "a proxy without a port": (
        '[groups.web.launcher]\nkind = "docker"\nagent = "codex"\nproxy = "localhost:80"',
        """\
pynchy.toml:4:9: groups.web.launcher.proxy must be an address with a port from 1024 on, \
such as "127.0.0.1:8080"
  4 | proxy = "localhost:80"
    |         ^^^^^^^^^^^^^^""",
    ),
    "a group name with a dot": (
        '[groups.web.team]\nchannels = ["local"]',
        """\
pynchy.toml:1:13: unknown setting "team" in [groups.web]
  1 | [groups.web.team]
    |             ^^^^
    = a group name with a dot in it needs quotes: [groups."web.team"]
    = allowed: agent_uid, allowed_users, approvals_needed, approvers, ask_with, channels, chat,
      desk_answers, launcher, park_after, permissions, self_chat, wait""",
    ),
    "an approver who may not answer": (
        '[channels.chatty]\nbot_token = "x"\n[groups.g]\nallowed_users = { chatty = ["ben"] }\n\
approvers = { chatty = ["ben", "bob"] }',
        """\
pynchy.toml:5:32: approvers names "bob", who is not in allowed_users.chatty
  5 | approvers = { chatty = ["ben", "bob"] }
    |                                ^^^^^
    = who may approve must be able to answer""",
    ),
    "approvers in a channel that is not there": (
        "[groups.web]\napprovers = { chatt = [] }",
        """\
pynchy.toml:2:15: groups.web.approvers names a channel that is not configured
  2 | approvers = { chatt = [] }
    |               ^^^^^
    = did you mean "chatty"?
    = and add its table: [channels.chatty]
    = allowed: local, web""",
    ),
    "no approval is needed": (
        "[groups.web]\napprovals_needed = 0",
        """\
pynchy.toml:2:20: groups.web.approvals_needed must be a whole number from 1 to 1000000000
  2 | approvals_needed = 0
    |                    ^""",
    ),
    "parking without anything that resumes": (
        '[groups.web]\nwait = "park"',
        """\
pynchy.toml:2:8: wait = "park" needs a launcher: nothing could resume a parked agent
  2 | wait = "park"
    |        ^^^^^^
    = add [groups.web.launcher], or remove wait""",
    ),
    "parking an agent that cannot": (
        '[groups.web]\nwait = "park"\nlauncher = { kind = "process", agent = "codex" }',
        """\
pynchy.toml:2:8: wait = "park" is only for agent = "claude"
  2 | wait = "park"
    |        ^^^^^^
    = codex cannot: remove wait""",
    ),
    "a built-in tool of another agent": (
        '[groups.w]\nask_with = "AskUserQuestion"\nlauncher.kind="process"\nlauncher.agent="codex"',
        """\
pynchy.toml:2:12: ask_with = "AskUserQuestion" is only for agent = "claude"
  2 | ask_with = "AskUserQuestion"
    |            ^^^^^^^^^^^^^^^^^
    = codex cannot: remove ask_with""",
    ),
    "the desk of an agent in a box": (
        '[groups.w]\ndesk_answers = true\nlauncher.kind="bubblewrap"\nlauncher.agent="claude"',
        """\
pynchy.toml:2:16: desk_answers is not for an agent in a box
  2 | desk_answers = true
    |                ^^^^
    = what is answered at its terminal would come through the agent's own hands
    = remove desk_answers, or kind = "bubblewrap\"""",
    ),
    "a group name that cannot be a folder": (
        '[groups."../x"]',
        """\
pynchy.toml:1:9: groups has a group name that cannot be used
  1 | [groups."../x"]
    |         ^^^^^^
    = allowed: 1 to 64 letters, digits, "_", "." and "-", with a letter or digit first""",
    ),
    "text without quotes": (
        "wait_timeout = 30m",
        """\
pynchy.toml:1:18: not TOML: Expected newline or end of document after a statement
  1 | wait_timeout = 30m
    |                  ^
    = text needs quotes, such as "30m\"""",
    ),
    "a string without an end": (
        'a = 1\nb = """\ntext\n',
        """\
pynchy.toml:2:5: not TOML: Unterminated string
  2 | b = \"\"\"
    |     ^^^""",
    ),
    "a setting that is set twice": (
        "max_resumes = 1\nmax_resumes = 2\n\n[http]",
        """\
pynchy.toml:2:15: not TOML: Cannot overwrite a value
  2 | max_resumes = 2
    |               ^
    = it is already set above""",
    ),
    "two problems": (
        '[http]\nport = "1"\nhost = 2',
        """\
pynchy.toml:2:8: http.port must be a whole number from 0 to 65535; this is a string
  2 | port = "1"
    |        ^^^

pynchy.toml:3:8: http.host must be an address, such as "127.0.0.1"; this is a whole number
  3 | host = 2
    |        ^""",
    ),
    "a table that is none": (
        "retention = 7",
        """\
pynchy.toml:1:13: retention must be a table, [retention]; this is a whole number
  1 | retention = 7
    |             ^""",
    ),
    "wide characters before the place": (
        'http = { "日本" = 1 }',
        """\
pynchy.toml:1:10: unknown setting "日本" in [http]
  1 | http = { "日本" = 1 }
    |          ^^^^^^
    = allowed: allowed_hosts, host, port, public_url""",
    ),
    "a secret of the wrong type": (
        "[channels.chatty]\nbot_token = 12345 # old\nchat_names = 7",
        """\
pynchy.toml:2:13: channels.chatty.bot_token must be a string; this is a whole number
  2 | bot_token = *** # old
    |             ^^^

pynchy.toml:3:14: channels.chatty.chat_names must be a list; this is a whole number
  3 | chat_names = 7
    |              ^""",
    ),
}


def _complaint(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    Path("pynchy.toml").write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        read_settings(Path("pynchy.toml"), CHANNELS)
    return str(caught.value)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("text", "complaint"), EXACT.values(), ids=EXACT.keys())
def test_the_error_says_where_and_what_and_what_else(text: str, complaint: str) -> None:
    assert _complaint(text) == complaint


@pytest.mark.parametrize(
    "text",
    [
        '[channels.local]\nbot_token = "hunter2"',
        '[channels.local]\n"my password" = "hunter2"',
        '[channels.local]\nSECRETS = ["x", "hunter2"]',
        '[channels.local]\nx = { token = "hunter2", y = 1 }',
        '[channels.local]\ntoken = """\nhunter2\n"""',
        'bot_token = "hunter2',
        'bot_token = "hunt"hunter2"',
        "bot_token = hunter2",
        'bot_token = hunter2"',
        'bot_token = "x" hunter2',
        'tokens = [\n  "x",\n  "hunter2" "y"\n]',
        'tokens = [\n  "x" hunter2\n]',
        'tokens = { a "hunter2" }',
        'token = """\nx=\nhunter2',
        "token = '''\nx = 1\nhunter2",
        'token = "hunter2"\ntoken = "hunter2"',
        '[groups.a.launcher]\ncommand = ["a"]\nenv = { DATABASE = "hunter2", PORT = 80 }',
        '[groups.a.launcher]\ncommand = ["a"]\n[groups.a.launcher.env]\nA = ["hunter2"]',
        f"token = {'[' * 1000} hunter2",
        'bot token = "hunter2"',
        'bot_toen = "hunter2"',
        'my-pasword = "hunter2"',
        'env: { KEY = "hunter2" }',
        "password: hunter2",
        "API_KEY hunter2",
        '"api key" = "hunter2"',
        "= token = 'hunter2'",
    ],
)
def test_a_secret_is_never_shown(text: str) -> None:
    complaint = _complaint(text)

    assert "hunter2" not in complaint
    assert "pynchy.toml:" in complaint


def test_a_hidden_secret_leaves_the_caret_where_it_belongs() -> None:
    text = '[groups.a.launcher]\ncommand = ["a"]\nenv = { KEY = "hunter2", PORT = 80 }'

    assert _complaint(text).splitlines()[1:] == [
        "  3 | env = { KEY = ***, PORT = *** }",
        "    |                           ^^^",
    ]


def test_a_missing_secret_is_asked_for_by_name() -> None:
    assert '[channels.chatty] needs "bot_token"' in _complaint("[channels.chatty]")


def test_text_that_a_terminal_would_act_on_is_not_shown() -> None:
    complaint = _complaint('"a\\u001b[31m\\u202e" = 1\n"b\u202e" = 1')

    assert all(char.isprintable() or char == "\n" for char in complaint)


def test_of_a_long_line_only_the_place_is_shown() -> None:
    complaint = _complaint(f"http = {{ {' ' * 5000}port = 'x' {' ' * 5000} }}")

    line, carets = complaint.splitlines()[1:3]
    assert len(line) < 120
    assert line[carets.index("^") :].startswith("'x'")


def test_of_very_many_problems_the_rest_is_counted() -> None:
    complaint = _complaint("".join(f"a{number} = 1\n" for number in range(60)))

    assert complaint.count("unknown setting") == 50
    assert complaint.endswith("\n\nand 10 more")


def test_a_byte_that_is_not_utf8_is_pointed_at() -> None:
    assert _complaint(b'a = 1\r\nb = "\xc3\xa9\xff"\r\n') == dedent(
        """\
        pynchy.toml:2:7: is not UTF-8 text here
          2 | b = "é\N{REPLACEMENT CHARACTER}"
            |       ^
            = save the file as UTF-8"""
    )


def test_a_number_without_end_is_pointed_at() -> None:
    assert _complaint(f"a = 1\nb = {'1' * 5000}").startswith(
        "pynchy.toml:2:5: this number has too many digits\n"
    )


def test_lists_nested_without_end_are_pointed_at() -> None:
    assert _complaint(f"a = 1\nb = {'[' * 5000}").startswith(
        "pynchy.toml:2:5: lists or tables are nested too deeply\n"
    )


def test_a_huge_file_is_refused_unread() -> None:
    assert _complaint(b"#" * 10_000_000) == (
        "pynchy.toml: is larger than 1024 KiB: is it a settings file?"
    )


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder, not a settings file"):
        read_settings(tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        read_settings(tmp_path / "none.toml")


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_settings(Path("a\0b"))


def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pynchy.toml"
    file.touch(mode=0o000)

    with (
        as_an_ordinary_user(),
        pytest.raises(ConfigError, match="cannot be read: Permission denied"),
    ):
        read_settings(file)


@contextmanager
def as_an_ordinary_user() -> Iterator[None]:
    """Root can read everything, so be somebody else for the moment."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


_FRAGMENTS = st.sampled_from(
    [
        "[",
        "]",
        "[[",
        "]]",
        "{",
        "}",
        "=",
        ".",
        ",",
        "\n",
        " ",
        "#",
        '"',
        "'",
        '"""',
        "'''",
        "\\",
        "http",
        "port",
        "groups",
        "a",
        "channels",
        "launcher",
        "command",
        "env",
        "token",
        "1",
        "-",
        '"local"',
        '"30m"',
        "true",
        "1.5",
        "1979-05-27",
        "inf",
        "\r\n",
        "\x00",
        "é",
        "\ud7ff",
        "wait_timeout = ",
        "[groups.a]\n",
        "[channels.local]\n",
        "[groups.a.launcher]\n",
    ]
)


@given(st.text() | st.lists(_FRAGMENTS, max_size=30).map("".join))
@example('token = "')
@example("[[a]]\n[a.b]\n[[a.c]]\n[[a]]\n")
def test_whatever_the_file_holds_there_are_settings_or_a_config_error(text: str) -> None:
    Path("pynchy.toml").write_bytes(text.encode(errors="surrogatepass"))

    try:
        read_settings(Path("pynchy.toml"), CHANNELS)
    except ConfigError as error:
        assert "pynchy.toml:" in str(error)  # noqa: PT017  either way out is right


@given(st.binary())
def test_whatever_bytes_the_file_holds_there_are_settings_or_a_config_error(raw: bytes) -> None:
    Path("pynchy.toml").write_bytes(raw)

    try:
        read_settings(Path("pynchy.toml"), CHANNELS)
    except ConfigError as error:
        assert "pynchy.toml:" in str(error)  # noqa: PT017  either way out is right


def test_all_that_is_wrong_is_said_in_one_round(tmp_path: Path) -> None:
    path = tmp_path / "pynchy.toml"
    path.write_text(
        'answer_ttl = "1m"\nwiat = 3\n[groups.a]\nchannels = ["lcoal"]\n'
        '[groups.b]\nchanels = []\nwait = "park"\n[groups.c.launcher]\ncommand = 7\n'
    )

    with pytest.raises(ConfigError) as wrong:
        read_settings(path)

    told = str(wrong.value)
    assert [f":{line}:" in told for line in (1, 2, 4, 6, 7, 9)] == [True] * 6


def test_what_cannot_be_used_is_not_told_again_as_a_contradiction(tmp_path: Path) -> None:
    path = tmp_path / "pynchy.toml"
    path.write_text(
        'answer_ttl = "soon"\nwait_timeout = "30d"\n[channels.chatty]\n'
        '[groups.a]\nchannels = ["chatty"]\nwait = "park"\nlauncher = 7\n'
    )

    with pytest.raises(ConfigError) as wrong:
        read_settings(path, CHANNELS)

    told = str(wrong.value)
    assert told.count("pynchy.toml:") == 3
    assert "shorter than" not in told
    assert "not configured" not in told
    assert "needs a launcher" not in told


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[groups.a]\nchannels = ["local"\nchat = { local = "x" }\n', ":2:12:"),
        ('[groups.a]\nchannels = ["local"\n\n[http]\nport = 1\n', ":2:12:"),
        ('[groups.a]\nchannels = [\n  "local",\n  "web"\n[http]\n', ":2:12:"),
        ('[groups.a]\nchat = { local = "x"\n[http]\n', ":2:8:"),
    ],
)
def test_a_list_that_is_left_open_is_shown_where_it_begins(
    tmp_path: Path, text: str, place: str
) -> None:
    path = tmp_path / "pynchy.toml"
    path.write_text(text)

    with pytest.raises(ConfigError) as wrong:
        read_settings(path)

    assert place in str(wrong.value).splitlines()[0]
