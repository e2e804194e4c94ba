"""Groups: which there are, removing one, and names that were misspelt."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.support import Host, Run, until

from pynchy.config import Settings
from pynchy.data_dir import SettingsSource
from pynchy.ipc.mailbox import Mailbox, Mailboxes, is_removed
from pynchy.model import GroupName

SETTINGS = """
[groups.web-team]
chat = { local = "here" }
[groups.nightly]
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host whose settings name two groups."""
    path = tmp_path / "pynchy.toml"
    path.write_text(SETTINGS)
    groups = {"web-team": {"chat": {"local": "here"}}, "nightly": {}}
    settings = Settings.model_validate({"http": {"port": 0}, "groups": groups})
    host = Host(tmp_path / "data", settings, SettingsSource.of(path))
    host.start()
    yield host
    host.stop()


def listed(run: Run) -> dict[str, dict[str, Any]]:
    return {view["name"]: view for view in json.loads(run("groups", "--json").stdout)}


def test_groups_are_listed_with_where_they_come_from(host: Host, run: Run) -> None:
    host.ask("Why?", group="other")
    host.ask("Why?", group="web-team")

    found = listed(run)

    assert list(found) == ["nightly", "other", "web-team"]
    assert [view["in_settings"] for view in found.values()] == [True, False, True]
    assert found["web-team"]["chat"] == {"local": "here"}
    assert [view["waiting"] for view in found.values()] == [0, 1, 1]
    line = next(row for row in run("groups").stdout.splitlines() if row.startswith("web"))
    assert line.split("\t") == ["web-team", "settings", "local (here)", "1", "0", "0"]


def test_a_misspelt_group_is_marked_in_the_list_and_in_doctor(host: Host, run: Run) -> None:
    host.ask("Why?", group="web-taem")

    assert listed(run)["web-taem"]["did_you_mean"] == "web-team"
    assert "did you mean web-team?" in run("groups").stderr
    findings = json.loads(run("doctor", "--json").stdout)
    [doubt] = [f for f in findings if f["check"] == "group web-taem" and f["status"] != "ok"]
    assert "did you mean web-team?" in doubt["detail"]


@pytest.mark.parametrize(
    "command",
    [
        ["ask", "Why?", "--timeout", "0.01", "--group", "web-taem"],
        ["history", "--group", "web-taem"],
        ["connect", "claude", "--dry-run", "--group", "web-taem"],
        ["run", "web-taem", "Mend it"],
    ],
)
@pytest.mark.usefixtures("host")
def test_a_misspelt_group_is_not_taken_in_silence(run: Run, command: list[str]) -> None:
    assert "did you mean web-team?" in run(*command).output


@pytest.mark.usefixtures("host")
def test_a_group_of_the_settings_is_not_doubted(run: Run) -> None:
    asked = run("ask", "Why?", "--timeout", "0.01", "--group", "nightly")

    assert "did you mean" not in asked.output


def test_a_group_that_was_removed_is_gone_and_its_history_is_kept(host: Host, run: Run) -> None:
    view = host.reply(host.ask("Why?", group="web-taem"), "answer", "ana", values=["So"])
    host.take(view)

    result = run("groups", "remove", "web-taem")

    assert (result.exit_code, "web-taem" in listed(run)) == (0, False)
    assert "history is kept" in result.stdout
    assert "Why?" in run("history", "--group", "web-taem").stdout
    assert "group_removed" in run("events").stdout
    assert not (host.data.ipc / "web-taem" / "tasks").exists()


def test_a_removed_group_stays_removed_when_the_host_starts_again(host: Host, run: Run) -> None:
    host.take(host.reply(host.ask("Why?", group="other"), "answer", "ana", values=["So"]))
    assert run("groups", "remove", "other").exit_code == 0

    host.stop()
    host.start()
    host.ask("Is it up?", group="web-team")

    assert "other" not in listed(run)
    assert not (host.data.ipc / "other" / "tasks").exists()


def test_a_removed_group_comes_back_when_somebody_asks_in_it(host: Host, run: Run) -> None:
    host.take(host.reply(host.ask("Why?", group="other"), "answer", "ana", values=["So"]))
    assert run("groups", "remove", "other").exit_code == 0

    host.ask("Once more?", group="other")

    assert listed(run)["other"]["waiting"] == 1
    until((host.data.ipc / "other" / "input" / "host.json").exists)


def test_a_group_that_still_asks_is_kept_unless_forced(host: Host, run: Run) -> None:
    short_id = host.ask("Why?", group="other")

    refused = run("groups", "remove", "other")
    still = listed(run)["other"]["waiting"]
    forced = run("groups", "remove", "other", "--force")

    assert (refused.exit_code, still) == (1, 1)
    assert "1 open question" in refused.stderr
    assert "--force" in refused.stderr
    assert (forced.exit_code, "other" in listed(run)) == (0, False), forced.output
    assert "1 declined" in forced.stdout
    ending = host.client.question(short_id)["ending"]
    assert (ending["outcome"], ending["reason"]) == ("declined", "its group was removed")


def test_what_a_removal_by_force_dismisses_it_dismisses_once(host: Host, run: Run) -> None:
    short_id = host.ask("Why?", group="other")
    view = host.reply(short_id, "answer", "ana", values=["So"])
    until(lambda: host.client.question(short_id)["state"] == "undelivered")

    forced = run("groups", "remove", "other", "--force")

    assert "1 dismissed" in forced.stdout
    events = [json.loads(line) for line in run("events", "--json").stdout.splitlines()]
    about = [e["type"] for e in events if e.get("request_id") == view["request_id"]]
    assert about.count("dismissed") == 1


def test_a_group_whose_agent_works_is_kept(host: Host, run: Run) -> None:
    host.take(host.reply(host.ask("Why?", group="other"), "answer", "ana", values=["So"]))
    (host.data.ipc / "other" / "tasks" / "a1.lease").write_text("{}")

    refused = run("groups", "remove", "other")

    assert refused.exit_code == 1
    assert "1 agent" in refused.stderr


def test_a_group_of_the_settings_is_not_removed(host: Host, run: Run) -> None:
    host.ask("Why?", group="web-team")

    refused = run("groups", "remove", "web-team", "--force")

    assert refused.exit_code == 1
    assert "take [groups.web-team] out of the file" in refused.stderr
    assert listed(run)["web-team"]["waiting"] == 1


def test_a_group_that_is_not_there_cannot_be_removed(host: Host, run: Run) -> None:
    host.ask("Why?", group="other")

    refused = run("groups", "remove", "othre")

    assert refused.exit_code == 1
    assert "did you mean other?" in refused.stderr


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    mailbox = Mailbox(tmp_path, GroupName("other"))
    mailbox.make()
    return mailbox


@pytest.mark.parametrize("is_back", [False, True])
@pytest.mark.parametrize("unread", [False, True])
def test_a_removal_that_a_crash_cut_short_is_finished_or_undone(
    mailbox: Mailbox, *, unread: bool, is_back: bool
) -> None:
    if unread:
        (mailbox.path / "tasks" / "q1.json").write_text("{}")
    (mailbox.path / "removed").touch()
    (mailbox.path / "tasks").rename(mailbox.path / ".removed-tasks")
    if is_back:
        mailbox.make()

    Mailboxes(mailbox.path.parent, lambda _: None).finish_removals()

    assert (mailbox.path / "tasks" / "q1.json").exists() is unread
    assert is_removed(mailbox.path) is not (unread or is_back)
    assert not (mailbox.path / ".removed-tasks").exists()
    if not unread and is_back:
        assert mailbox.remove()


def test_a_request_that_nobody_has_read_is_not_removed_with_its_group(mailbox: Mailbox) -> None:
    (mailbox.path / "tasks" / "q1.json").write_text("{}")

    assert not mailbox.remove()
    assert (mailbox.path / "tasks" / "q1.json").exists()
    assert not is_removed(mailbox.path)
