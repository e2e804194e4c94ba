"""Making the app, and the look whether it works."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.standins.slack import Fault, SlackStandIn
from tests.unit.cli.support import Run

from pynchy.channels.slack.setup import SCOPES, manifest


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SlackStandIn]:
    with SlackStandIn() as slack:
        slack.workspace.add_channel("C1", "U1")
        monkeypatch.setenv("SLACK_BOT_TOKEN", slack.bot_token)
        monkeypatch.setenv("SLACK_APP_TOKEN", slack.app_token)
        (tmp_path / "pynchy.toml").write_text(
            f'[channels.slack]\napi_url = "{slack.url}"\n'
            '[groups.g1]\nchannels = ["slack"]\nchat = { slack = "C1" }\n'
            'allowed_users = { slack = ["U1"] }\n'
        )
        yield slack


def check(run: Run, *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    result = run("slack", "check", "--json", *arguments)
    return result.exit_code, {found["check"]: found for found in json.loads(result.stdout)}


def test_the_manifest_is_in_the_link(run: Run) -> None:
    printed = run("slack", "manifest")
    (link,) = [line for line in printed.stdout.splitlines() if line.startswith("https://")]

    made = parse_qs(urlsplit(link).query)["manifest_json"][0]

    assert json.loads(made) == manifest()
    assert json.loads(run("slack", "manifest", "--json").stdout) == manifest()


def test_over_http_the_manifest_has_the_address_and_no_socket() -> None:
    settings = manifest("https://p.example/slack/events")["settings"]

    assert settings["interactivity"]["request_url"] == "https://p.example/slack/events"
    assert settings["socket_mode_enabled"] is False


def test_all_is_well(run: Run, slack: SlackStandIn) -> None:
    code, found = check(run)

    assert code == 0
    assert {f["status"] for f in found.values()} == {"ok"}
    assert slack.messages("C1") == []


def test_a_test_card_is_posted_on_request(run: Run, slack: SlackStandIn) -> None:
    code, _ = check(run, "--post")

    assert code == 0
    assert len(slack.messages("C1")) == 1


def test_a_wrong_bot_token_is_named(
    run: Run,
    slack: SlackStandIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert slack.url
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-wrong")

    code, found = check(run)

    assert code == 1
    assert "SLACK_BOT_TOKEN" in found["slack bot token"]["fix"]
    assert "xoxb-wrong" not in json.dumps(found)


def test_a_wrong_app_token_is_named(
    run: Run,
    slack: SlackStandIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert slack.url
    monkeypatch.setenv("SLACK_APP_TOKEN", "xapp-wrong")

    code, found = check(run)

    assert code == 1
    assert "SLACK_APP_TOKEN" in found["slack app token"]["fix"]


def test_a_missing_scope_is_named(run: Run, slack: SlackStandIn) -> None:
    slack.workspace.scopes.discard("reactions:write")

    code, found = check(run)

    assert code == 1
    assert "reactions:write" in found["slack scopes"]["detail"]
    assert "reactions:write" in SCOPES


def test_a_channel_without_the_bot_is_a_problem_for_doctor_too(
    run: Run,
    slack: SlackStandIn,
    tmp_path: Path,
) -> None:
    file = tmp_path / "pynchy.toml"
    file.write_text(file.read_text().replace('"C1"', '"C404"'))
    assert slack.url

    code, found = check(run)
    doctor = {f["check"]: f["status"] for f in json.loads(run("doctor", "--json").stdout)}

    assert code == 1
    assert "invite" in found["slack chat of g1"]["fix"]
    assert doctor["slack chat of g1"] == "problem"
    assert doctor["slack bot token"] == "ok"


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        ("missing_scope", "reinstall"),
        ("not_in_channel", "/invite"),
        ("is_archived", "another channel"),
        ("restricted_action", "may post there"),
    ],
)
def test_each_refusal_of_a_chat_says_what_to_do(
    run: Run, slack: SlackStandIn, error: str, fix: str
) -> None:
    slack.fail("conversations.info", Fault(error=error))

    code, found = check(run)

    assert code == 1
    assert fix in found["slack chat of g1"]["fix"]
    assert ("/invite" in found["slack chat of g1"]["fix"]) is (error == "not_in_channel")


def test_without_a_table_it_is_said_how_to_begin(run: Run) -> None:
    result = run("slack", "check")

    assert result.exit_code == 1
    assert "pynchy docs slack" in result.stderr


def test_what_is_wrong_is_told_without_asking_slack(
    run: Run, slack: SlackStandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", slack.app_token)
    monkeypatch.setenv("SLACK_APP_TOKEN", slack.bot_token)
    config = tmp_path / "pynchy.toml"
    config.write_text(config.read_text().replace('{ slack = "C1" }', "{}"))

    code, found = check(run)

    assert code == 1
    assert "xoxb-" in found["slack bot token"]["fix"]
    assert "xapp-" in found["slack app token"]["fix"]
    assert "the id and not the name" in found["slack chat of g1"]["fix"]
    assert "slack scopes" not in found


def test_a_slack_that_cannot_be_reached_is_no_fault_of_the_token(
    run: Run, slack: SlackStandIn, tmp_path: Path
) -> None:
    config = tmp_path / "pynchy.toml"
    config.write_text(config.read_text().replace(slack.url, "http://127.0.0.1:9/api/"))

    code, found = check(run)

    assert code == 1
    assert set(found) == {"slack"}
    assert "http://127.0.0.1:9/api/ can be reached" in found["slack"]["fix"]
