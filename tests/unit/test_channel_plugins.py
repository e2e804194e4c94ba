"""Channels come by entry point, the built-in ones too; what is wrong with one stops only itself."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest
from click.testing import CliRunner, Result
from tests.unit.plugin_support import BROKEN, WORKS, put, use

from pynchy.bridge.answer import AnswerService
from pynchy.channels import plugins
from pynchy.channels.base import ChannelContext, ChannelReplies
from pynchy.channels.loading import examine_channels, load_settings, make_channels
from pynchy.channels.plugins import BUILT_IN, load_plugin
from pynchy.cli import cli
from pynchy.config import KNOWN_CHANNELS, GroupSettings, Settings
from pynchy.errors import ChannelUnavailable, ConfigError, NotAllowed
from pynchy.findings import Status
from pynchy.host import without_secrets
from pynchy.model import CardRef, CardState, GroupName, Reply
from pynchy.testing import FakeChannel, make_pending

ROOT = Path(__file__).parents[2]
TOY_GROUP = '[groups.g]\nchannels = ["toy", "local"]\n'
IN_A_BOX = 'chat = { toy = "box" }\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that Python looks into."""
    folder = tmp_path / "packages"
    folder.mkdir()
    use(monkeypatch, folder)
    return folder


@pytest.fixture
def toy(place: Path) -> None:
    put(place, "toy", WORKS)


def read(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "pynchy.toml"
    file.write_text(text)
    return load_settings(file)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    return str(caught.value)


def pynchy(*words: str) -> Result:
    return CliRunner().invoke(cli, words, prog_name="pynchy")


def test_the_built_in_channels_are_declared_as_entry_points() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["entry-points"][plugins.ENTRY_POINTS] == BUILT_IN


def test_the_built_in_channels_come_through_the_same_door() -> None:
    loaded = {name: load_plugin(name) for name in BUILT_IN}

    assert {name: plugin and plugin.settings() for name, plugin in loaded.items()} == KNOWN_CHANNELS
    assert all(plugin and plugin.name == name for name, plugin in loaded.items())


def test_a_package_brings_a_channel(toy: None, tmp_path: Path) -> None:
    del toy
    settings = read(tmp_path, f'[channels.toy]\ncolour = "blue"\n{TOY_GROUP}{IN_A_BOX}')

    made = make_channels(settings, {}, tmp_path)
    found = list(examine_channels(ChannelContext(settings, {}, tmp_path)))

    assert made["toy"].name == "toy"
    assert ("toy", "blue") in {(finding.check, finding.detail) for finding in found}


def test_an_unknown_channel_is_refused_by_the_names_of_those_that_are_there(
    toy: None, tmp_path: Path
) -> None:
    del toy
    told = refusal(tmp_path, "[channels.toi]\n")

    assert 'unknown channel "toi"' in told
    assert 'did you mean "toy"?' in told
    assert "allowed: desktop, local, slack, toy, web, whatsapp" in told


def test_a_table_without_a_channel_makes_no_local_one(tmp_path: Path) -> None:
    nobody = Settings(channels={"ghost": KNOWN_CHANNELS["local"]()})

    with pytest.raises(ConfigError, match="ghost"):
        make_channels(nobody, {}, tmp_path)


def test_its_own_settings_and_addresses_are_checked_in_the_file(toy: None, tmp_path: Path) -> None:
    del toy
    wrong = 'chat = { toy = "bag" }\nallowed_users = { toy = ["kid", "cat"] }\n'

    assert 'unknown setting "color"' in refusal(tmp_path, '[channels.toy]\ncolor = "x"\n')
    told = refusal(tmp_path, f"[channels.toy]\n{TOY_GROUP}{wrong}")

    assert "pynchy.toml:4:16: groups.g.chat.toy must be a box" in told
    assert "pynchy.toml:5:33: groups.g.allowed_users.toy must be a kid" in told
    assert '| chat = { toy = "bag" }\n    |                ^^^^^' in told


def test_a_group_that_does_not_say_where_it_asks_is_a_mistake_in_the_file(
    toy: None, tmp_path: Path
) -> None:
    del toy
    told = refusal(tmp_path, f"[channels.toy]\n{TOY_GROUP}")

    assert "pynchy.toml:3:12: groups.g asks in toy and does not say where" in told


@pytest.mark.parametrize(
    ("channel", "line", "told"),
    [
        ("slack", 'chat = { slack = "#general" }', "the id of a channel"),
        ("slack", 'allowed_users = { slack = ["ana"] }', "a member ID"),
        ("whatsapp", 'chat = { whatsapp = "the team" }', "a phone number"),
        ("whatsapp", 'allowed_users = { whatsapp = ["Ana"] }', "a phone number"),
    ],
)
def test_an_address_that_cannot_be_one_is_a_mistake_in_the_file(
    tmp_path: Path, channel: str, line: str, told: str
) -> None:
    text = f'[channels.{channel}]\n[groups.g]\nchannels = ["{channel}"]\n{line}\n'

    assert re.search(
        rf"pynchy\.toml:4:\d+: groups\.g\..* must be .*{told}", refusal(tmp_path, text)
    )


def test_the_built_in_channels_are_found_without_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "installed", Mock(side_effect=AssertionError("searched")))
    text = '[channels.whatsapp]\n[channels.slack]\n[groups.g]\nchannels = ["slack"]\n'

    assert "slack" in read(tmp_path, text).channels
    assert pynchy("slack", "--help").exit_code == 0


@pytest.mark.parametrize("words", [["mcp", "--help"], ["status", "--line"], ["--help"]])
def test_nothing_of_a_channel_is_loaded_for_others(words: list[str], tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pynchy.__main__ import main\n"
        f"sys.argv = ['pynchy', *{words!r}]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('\\n', sorted({'slack_bolt', 'slack_sdk', 'neonize', 'importlib.metadata', "
        "'pynchy.channels.base', 'pydantic'} & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYNCHY_DATA_DIR": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        check=True,
        text=True,
    )

    assert done.stdout.splitlines()[-1].strip() == "[]"


def test_a_plugin_that_cannot_be_imported_stops_only_itself(place: Path, tmp_path: Path) -> None:
    put(place, "broken", BROKEN)
    settings = read(
        tmp_path, '[channels.broken]\ncolour = "red"\n[groups.g]\nchannels = ["broken"]\n'
    )

    made = make_channels(settings, {}, tmp_path)
    found = list(examine_channels(ChannelContext(settings, {}, tmp_path)))

    assert set(made) == {"local", "web", "broken"}
    assert "a_library_that_nobody_has" in str(made["broken"].problem())
    assert made["local"].problem() is None
    [told] = [finding for finding in found if finding.check == "channel broken"]
    assert told.status is Status.PROBLEM
    assert "a_library_that_nobody_has" in told.detail


async def test_a_channel_that_could_not_be_made_shows_nothing_and_says_why(
    toy: None, tmp_path: Path
) -> None:
    del toy
    made = make_channels(read(tmp_path, '[channels.toy]\ncolour = "none"\n'), {}, tmp_path)

    with pytest.raises(ChannelUnavailable, match="no colour"):
        await made["toy"].send_ask_user("", "q1", (), card=Mock())  # type: ignore[arg-type]
    assert "no colour" in str(made["toy"].problem())


def test_agents_see_no_variable_that_a_broken_channel_names(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place, "broken", BROKEN)
    monkeypatch.setenv("TOY_TOKEN", "secret")

    assert "TOY_TOKEN" in without_secrets(Settings())
    settings = read(tmp_path, '[channels.broken]\ntoken_env = "TOY_TOKEN"\n')
    assert "TOY_TOKEN" not in without_secrets(settings)


@pytest.mark.parametrize("code", ["PLUGIN = 1", WORKS.replace('name = "toy"', 'name = "other"')])
def test_what_is_no_plugin_of_that_name_is_not_used(place: Path, tmp_path: Path, code: str) -> None:
    put(place, "toy", code)

    made = make_channels(read(tmp_path, "[channels.toy]\n"), {}, tmp_path)

    assert "is no ChannelPlugin of it" in str(made["toy"].problem())


def test_of_two_packages_with_one_name_none_is_chosen(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place, "toy", WORKS)
    put(tmp_path / "others", "toy", WORKS)
    use(monkeypatch, tmp_path / "others")

    made = make_channels(read(tmp_path, "[channels.toy]\n"), {}, tmp_path)

    assert "several packages" in str(made["toy"].problem())


def test_no_package_gets_the_name_of_a_built_in_channel(place: Path, tmp_path: Path) -> None:
    put(place, "local", WORKS.replace('"toy"', '"local"'))

    made = make_channels(Settings(), {}, tmp_path)
    found = list(examine_channels(ChannelContext(Settings(), {}, tmp_path)))

    assert type(made["local"]).__module__ == "pynchy.channels.base"
    assert [(f.check, f.status) for f in found] == [("channel local", Status.WARNING)]


def test_its_commands_are_listed_and_none_of_pynchys_is_replaced(toy: None) -> None:
    del toy
    listed = pynchy("--help").stdout

    assert "  toy       Play." in listed
    assert "!" not in listed.partition("Commands of channels")[2]
    assert "Run the host" in pynchy("serve", "--help").stdout
    assert "Did you mean toy?" in pynchy("toi").stderr


def test_a_command_that_cannot_be_loaded_says_so(toy: None, place: Path) -> None:
    del toy
    put(place, "broken", BROKEN)

    assert "the command toy cannot be loaded" in pynchy("toy").stderr
    assert "a_library_that_nobody_has" in pynchy("broken").stderr
    assert "a_library_that_nobody_has" in pynchy("--help").stdout


async def test_no_channel_can_say_that_it_needs_no_list_of_people() -> None:
    pending = make_pending(cards=(CardRef("toy", "box", "m1", CardState.SHOWN),))
    ledger = Mock(find=AsyncMock(return_value=pending))
    channels = {"toy": FakeChannel("toy", checks_users=False), "local": FakeChannel("local")}
    settings = Settings(channels={}, groups={"g1": GroupSettings(channels=("local",))})
    desk = ChannelReplies("toy", AnswerService(ledger, channels, settings))

    for claimed in ("toy", "local"):
        reply = Reply(
            "q1", "Eve", claimed, ("1",), user_id="eve", chat="box", group=GroupName("g1")
        )
        with pytest.raises(NotAllowed, match="not on the list"):
            await desk.answer(reply)
        with pytest.raises(NotAllowed, match="not on the list"):
            await desk.decline(reply)


def test_no_two_classes_have_one_name() -> None:
    files = [
        path
        for path in (ROOT / "src/pynchy").rglob("*.py")
        if not path.relative_to(ROOT / "src/pynchy").parts[0].startswith("testing_")
    ]
    names = [
        n for path in files for n in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
    ]

    assert [name for name in names if names.count(name) > 1] == []


def test_doctor_tells_of_a_plugin_among_the_rest(
    toy: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del toy
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYNCHY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pynchy.toml").write_text(f"[channels.toy]\n{TOY_GROUP}{IN_A_BOX}")

    found = json.loads(pynchy("doctor", "--json").stdout)

    assert {"check": "toy", "status": "ok", "detail": "red", "fix": ""} in found
    assert any("nobody may answer in toy" in finding["detail"] for finding in found)
