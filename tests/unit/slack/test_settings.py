"""Slack is used only where it is configured, and its secrets stay where they are."""

import subprocess
import sys
from pathlib import Path

import pytest

from pynchy.channels.loading import make_channels
from pynchy.channels.slack.channel import Secrets
from pynchy.config import Settings, SlackChannelSettings
from pynchy.config.loading import read_settings
from pynchy.errors import ConfigError
from pynchy.host import without_secrets

TOKENS = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
DATA = Path()
SLACK = Settings(channels={"slack": SlackChannelSettings()})


def test_without_a_table_there_is_no_slack() -> None:
    assert set(make_channels(Settings(), TOKENS, DATA)) == {"local", "web"}


def test_a_table_makes_the_channel() -> None:
    assert set(make_channels(SLACK, TOKENS, DATA)) == {"local", "slack", "web"}


@pytest.mark.parametrize("name", TOKENS)
def test_a_missing_token_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        make_channels(SLACK, TOKENS | {name: " "}, DATA)


def test_http_needs_the_signing_secret_and_no_app_token() -> None:
    http = Settings(channels={"slack": SlackChannelSettings(mode="http")})
    token = {"SLACK_BOT_TOKEN": "xoxb-1"}

    assert "slack" in make_channels(http, token | {"SLACK_SIGNING_SECRET": "s"}, DATA)
    with pytest.raises(ConfigError, match="SLACK_SIGNING_SECRET"):
        make_channels(http, TOKENS, DATA)


def test_without_the_libraries_it_is_said_what_to_install() -> None:
    code = (
        "import sys; sys.modules['slack_bolt'] = None\n"
        "from pynchy.channels.loading import make_channels\n"
        "from pynchy.config import Settings, SlackChannelSettings\n"
        "try: make_channels(Settings(channels={'slack': SlackChannelSettings()}), {}, None)\n"
        "except Exception as exc: print(type(exc).__name__, exc)\n"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert said.stdout.startswith("ConfigError")
    assert "pip install '.[slack]'" in said.stdout


def test_the_libraries_are_not_loaded_for_others() -> None:
    code = (
        "import sys, pynchy.host; print({'slack_sdk', 'slack_bolt', 'aiohttp'} & set(sys.modules))"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert said.stdout == "set()\n"


def test_resumed_agents_do_not_see_the_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*TOKENS, "MY_TOKEN", "SLACK_SIGNING_SECRET"):
        monkeypatch.setenv(name, "secret")
    table = SlackChannelSettings.model_validate({"bot_token_env": "MY_TOKEN"})
    settings = Settings(channels={"slack": table})

    seen = without_secrets(settings)

    assert "PATH" in seen
    assert {"MY_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"}.isdisjoint(seen)
    assert "SLACK_BOT_TOKEN" in seen


def test_secrets_are_in_no_repr() -> None:
    assert "x" not in repr(Secrets("x", "x", "x")).replace("Secrets", "")


@pytest.mark.parametrize(
    "line",
    [
        'api_url = "slack.com"',
        'api_url = "https://slack.com/api"',
        'mode = "carrier pigeon"',
        "ping_interval = 0",
        "thread_per_session = 1",
        'bot_token_env = ""',
        'bot_token = "xoxb-1"',
        "http_port = 70000",
    ],
)
def test_settings_that_could_not_work_are_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "pynchy.toml"
    file.write_text(f"[channels.slack]\n{line}\n")

    with pytest.raises(ConfigError) as caught:
        read_settings(file)
    assert "xoxb" not in str(caught.value)
