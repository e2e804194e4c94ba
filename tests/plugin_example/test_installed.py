"""The example as pynchy finds it: one folder, one entry point, and no word of it in pynchy."""

import subprocess
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.acceptance.support import PYNCHY, Host
from tests.slack.support import Workplace
from tests.waiting import until

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SETTINGS = """
[channels.postbox]
folder = "{folder}"

[groups.team]
channels = ["postbox"]
chat = {{ postbox = "team" }}
allowed_users = {{ postbox = ["ana"] }}
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what pip leaves of a package, where Python finds it."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    metadata = tmp_path / "site" / "pynchy_postbox-1.0.dist-info"
    metadata.mkdir(parents=True)
    told = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(told)
    [(group, entries)] = project["entry-points"].items()
    lines = [f"{name} = {target}" for name, target in entries.items()]
    (metadata / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}:{HERE}")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    (tmp_path / "postbox").mkdir()
    host = Host(tmp_path / "data", SETTINGS.format(folder=tmp_path / "postbox"))
    host.by_command = True  # one that is forked has looked for packages already
    await host.start()
    yield host
    host.kill()


def pynchy(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PYNCHY, *words], capture_output=True, text=True, check=False)


async def test_a_question_is_answered_in_the_postbox(host: Host, tmp_path: Path) -> None:
    team = Workplace(host, "team")
    asked = await team.ask()
    await host.state(asked.request_id, "open")
    [card] = (tmp_path / "postbox/team/cards").glob("*.txt")
    listed = pynchy("postbox", "--config", host.config).stdout
    assert f"team/cards/{card.name}: team asks · #{team.short_id(asked)}" in listed

    for user in ("eve", "ana"):
        home = tmp_path / "postbox/team/people" / user
        home.mkdir(parents=True)
        (home / "draft").write_text(f"Re: {card.name}\nyes\n")
        (home / "draft").rename(home / "1.txt")
        await until((home / "done/1.txt").exists, f"the reply of {user} to be judged")

    assert await asked.answer() == (("Yes",), None)
    told = (tmp_path / "postbox/team/people/eve/told/1.txt").read_text()
    assert "not on the list" in told
    await until(lambda: "Yes by ana" in card.read_text(), "the card to be settled")
    await team.close()


async def test_doctor_looks_at_it(host: Host, tmp_path: Path) -> None:
    arguments = ("doctor", "--config", host.config, "--data-dir", host.data)
    assert f"postbox: {tmp_path / 'postbox'} is there" in pynchy(*arguments).stdout

    (tmp_path / "postbox").rmdir()

    told = pynchy(*arguments).stdout
    assert f"mkdir -p {tmp_path / 'postbox'}" in told
    assert "no channel is up: postbox" in told


def test_help_lists_its_command() -> None:
    assert "  postbox   List its cards." in pynchy("--help").stdout
    assert "pynchy postbox" in pynchy("postbox", "--help").stdout


def test_its_settings_are_explained_as_all_others_are(tmp_path: Path) -> None:
    file = tmp_path / "pynchy.toml"
    file.write_text(SETTINGS.format(folder="box").replace('["ana"]', '["Ana B."]'))
    relative = pynchy("serve", "--config", file).stderr
    file.write_text(file.read_text().replace('"box"', '"/box"'))
    nobody = pynchy("serve", "--config", file).stderr
    file.write_text(file.read_text().replace("[channels.postbox]", "[channels.postbux]"))
    unknown = pynchy("serve", "--config", file).stderr

    assert 'channels.postbox.folder must be an absolute path, such as "/srv/postbox"' in relative
    assert "pynchy.toml:8:30: groups.team.allowed_users.postbox must be the name of a" in nobody
    assert '["Ana B."] }\n    |                              ^^^^^^^^\n' in nobody
    assert 'did you mean "postbox"?' in unknown
    assert "allowed: desktop, local, postbox, slack, web, whatsapp" in unknown


def test_pynchy_does_not_know_it() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert "postbox" not in path.read_text()
