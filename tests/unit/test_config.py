"""What settings mean: defaults, kinds of value, channels, the example and the page about them."""

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pynchy.config import (
    KINDS,
    KNOWN_CHANNELS,
    ChannelSettings,
    CodexSourceSettings,
    GroupSettings,
    LauncherSettings,
    OpenCodeSourceSettings,
    PhuxSourceSettings,
    Settings,
    SlackChannelSettings,
    example_settings,
)
from pynchy.config.loading import fields_of, read_settings
from pynchy.config.values import parse_duration, parse_size
from pynchy.errors import ConfigError

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def _names() -> Iterator[str]:
    for loc, _ in fields_of(Settings):
        yield ".".join(map(str, loc))
        if loc == ("channels",):
            for channel, model in KNOWN_CHANNELS.items():
                yield from (".".join(map(str, n)) for n, _ in fields_of(model, (*loc, channel)))


SETTING_NAMES = list(_names())


class _Chatty(ChannelSettings):
    nickname: str = "pynchy"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pynchy.toml"


def _uncommented(text: str) -> str:
    return re.sub(r"^#(?=[a-z\[])", "", text, flags=re.MULTILINE)


def test_without_a_file_everything_has_its_default() -> None:
    settings = read_settings(None)

    assert settings == Settings()
    assert settings.wait_timeout == timedelta(minutes=30)
    assert settings.answer_ttl == timedelta(days=7)
    assert settings.retention.history_size == 268_435_456
    assert settings.http.port == 8765
    assert set(settings.channels) == {"local", "web"}


def test_an_empty_file_means_the_defaults(file: Path) -> None:
    file.write_text("")

    assert read_settings(file) == Settings()


def test_a_full_file_is_read(file: Path) -> None:
    file.write_text(
        """
        wait_timeout = "1h30m"
        [channels.local]
        [groups.web-team]
        channels = ["local"]
        allowed_users = { local = ["ana", "ben"] }
        agent_uid = 1000
        [groups.web-team.launcher]
        command = ["agent", "{initial}", "{{{group}}}"]
        cwd = "/srv"
        timeout = 90
        """
    )

    settings = read_settings(file)

    group = settings.group("web-team")
    assert settings.wait_timeout == timedelta(minutes=90)
    assert group.allowed_users == {"local": ("ana", "ben")}
    assert group.launcher is not None
    assert group.launcher.cwd == Path("/srv")
    assert group.launcher.timeout == timedelta(seconds=90)
    assert group.launcher.argv({"initial": "/i.json", "group": "web"}) == [
        "agent",
        "/i.json",
        "{web}",
    ]


def test_a_group_without_a_table_has_the_defaults() -> None:
    assert Settings().group("anything") == GroupSettings()
    assert GroupSettings().channels == ("local",)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Settings().max_resumes = 5


def test_a_home_folder_is_filled_in() -> None:
    launcher = LauncherSettings(command=("agent",), cwd=Path("~/agent"))

    assert launcher.cwd == Path.home() / "agent"


def test_a_file_from_windows_is_read(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbfwait_timeout = "5m"\r\n[http]\r\nport = 1\r\n')

    settings = read_settings(file)

    assert (settings.wait_timeout, settings.http.port) == (timedelta(minutes=5), 1)


def test_a_channel_table_is_checked_against_the_model_of_its_adapter(file: Path) -> None:
    file.write_text('[channels.chatty]\nnickname = "p"\n[groups.a]\nchannels = ["chatty"]\n')

    settings = read_settings(file, {"chatty": _Chatty})

    assert settings.channels["chatty"] == _Chatty(nickname="p")
    assert "local" in settings.channels


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30m", 1800),
        ("7d", 604_800),
        ("90s", 90),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        (" 2h ", 7200),
        ("500ms", 0.5),
        ("1.5h", 5400),
        ("1d2h3m4s5ms", 93_784.005),
        ("0s", 0),
        (45, 45),
        (0.25, 0.25),
        (timedelta(seconds=3), 3),
    ],
)
def test_a_duration_is_what_it_says(written: object, seconds: float) -> None:
    assert parse_duration(written) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "30",
        "m",
        "30 min",
        "30M",
        "-5m",
        "m30",
        "30m1h",
        "3651d",
        "9" * 400 + "d",
        "٣m",
        -1,
        True,
        float("nan"),
        float("inf"),
        10**400,
        [],
        {},
        None,
    ],
)
def test_what_is_no_duration_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_duration(written)


@given(st.text() | st.integers() | st.floats() | st.booleans())
def test_reading_a_value_gives_a_value_or_a_value_error(written: object) -> None:
    for parse in (parse_duration, parse_size):
        try:
            parse(written)
        except ValueError:
            continue


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("256MiB", 268_435_456),
        ("10MB", 10_000_000),
        ("10 mb", 10_000_000),
        ("1.5KiB", 1536),
        ("7B", 7),
        ("1TiB", 2**40),
        (1024, 1024),
    ],
)
def test_a_size_is_what_it_says(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("written", ["", "10", "10M", "MB", "-1MB", 0, -1, True, 1.5, 2**63, []])
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_size(written)


@pytest.mark.parametrize(
    "setting",
    [
        "[groups.a]\nchannels = []",
        '[groups.a]\nchannels = ["local", "local"]',
        "[groups.a]\nagent_uid = -1",
        "[groups.a.launcher]\ncommand = []",
        '[groups.a.launcher]\ncommand = ["a\\u0000"]',
        '[groups.a.launcher]\ncommand = ["{initial!r}"]',
        '[groups.a.launcher]\ncommand = ["{initial:>9}"]',
        '[groups.a.launcher]\ncommand = ["{}"]',
        '[groups.a.launcher]\ncommand = ["a"]\nenv = { "A=B" = "c" }',
        '[groups.a.launcher]\ncommand = ["a"]\ncwd = "here"',
        '[groups.a.launcher]\ncommand = ["a"]\ncwd = "~nobody-of-that-name/x"',
        '[groups.".."]',
        '[groups."a/b"]',
        '[groups."a\\n"]',
        '[groups."-a"]',
        f"[groups.{'a' * 65}]",
        '[http]\nhost = ""',
        "lease_ttl = 0",
        "max_resumes = 0",
        "max_resumes = 2000000000",
        "requests_per_second = nan",
    ],
)
def test_what_could_not_work_is_refused(file: Path, setting: str) -> None:
    file.write_text(setting)

    with pytest.raises(ConfigError):
        read_settings(file)


def test_the_example_loads_as_it_is(file: Path) -> None:
    file.write_text(example_settings())

    assert read_settings(file) == Settings()


def test_the_example_shows_the_defaults(file: Path) -> None:
    file.write_text(_uncommented(example_settings()))

    settings = read_settings(file)

    group = settings.groups["example"]
    assert group.launcher is not None
    assert settings.channels["slack"] == SlackChannelSettings()
    assert settings.sources.codex is not None
    assert settings.sources.codex.model_copy(update={"home": None}) == CodexSourceSettings(
        group="example"
    )
    assert settings.sources.opencode == OpenCodeSourceSettings(group="example")
    assert settings.sources.phux is not None
    assert settings.sources.phux.model_copy(update={"socket": None}) == PhuxSourceSettings(
        group="example"
    )
    own = {"groups": {}, "channels": Settings().channels, "sources": Settings().sources}
    assert settings.model_copy(update=own) == Settings()
    assert group.model_copy(update={"launcher": None, "agent_uid": None}) == GroupSettings()
    assert group.launcher.model_copy(update={"cwd": None}) == LauncherSettings(
        command=group.launcher.command
    )


@pytest.mark.parametrize("name", SETTING_NAMES)
def test_every_setting_is_in_the_example(file: Path, name: str) -> None:
    file.write_text(_uncommented(example_settings()))
    found: object = read_settings(file)

    examples = {"example": "command", "claude": "process", "boxed": "bubblewrap"}
    examples["contained"] = "docker"
    setting = name.rpartition(".")[2]
    owner = next((group for group, kind in examples.items() if setting in KINDS[kind]), "example")
    for part in name.replace("groups.NAME", f"groups.{owner}").split("."):
        if isinstance(found, dict):
            found = found[part]
        else:
            assert part in getattr(found, "model_fields_set", ())
            found = getattr(found, part)


@pytest.mark.parametrize("name", SETTING_NAMES)
def test_every_setting_is_on_the_page_about_settings(name: str) -> None:
    assert f"\n| `{name}` |" in PAGE.read_text(encoding="utf-8")


def test_the_page_about_settings_has_no_setting_that_is_gone() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert rows == SETTING_NAMES


def test_the_page_about_settings_shows_the_true_errors(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    file.write_text('wait_timout = "45m"\n\n[http]\nport = "8765"\n')

    with pytest.raises(ConfigError) as caught:
        read_settings(Path("pynchy.toml"))

    assert f"```\n{caught.value}\n```" in PAGE.read_text(encoding="utf-8")


# In a process of its own: what there is is looked for when the settings are loaded.
NEW_AGENT = """
import agent_runner.cores, sys
agent_runner.cores.__path__.append(sys.argv[1])
from pathlib import Path
from click.testing import CliRunner
from pynchy.cli.sessions import run_command
from pynchy.config.loading import read_settings
from pynchy.http.sessions import RunBody
print(read_settings(Path(sys.argv[2])).groups["g"].launcher.agent)
print(RunBody(group="g", prompt="x", agent="gemini").agent)
print(CliRunner().invoke(run_command, ["--help"]).output)
"""


def test_an_agent_program_is_known_by_its_one_file(tmp_path: Path) -> None:
    (tmp_path / "cores").mkdir()
    (tmp_path / "cores/gemini.py").touch()
    settings = tmp_path / "pynchy.toml"
    settings.write_text('[groups.g.launcher]\nkind = "process"\nagent = "gemini"\n')

    command = [sys.executable, "-c", NEW_AGENT, tmp_path / "cores", settings]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)

    assert ran.stdout.split()[:2] == ["gemini", "gemini"], ran.stderr
    assert "[acp|claude|codex|gemini|opencode]" in ran.stdout
