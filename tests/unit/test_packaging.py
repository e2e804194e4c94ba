"""What `pip install pynchy` brings."""

import re
import subprocess
import sys
import tomllib
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

import agent_runner
from pynchy.cli.help import PAGES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    return ZipFile(path)


def test_the_wheel_has_both_sides(wheel: ZipFile) -> None:
    names = set(wheel.namelist())

    for package in ("src/pynchy", "container/agent_runner/src/agent_runner"):
        files = [path for path in (ROOT / package).rglob("*") if path.is_file()]
        written = [path for path in files if "__pycache__" not in path.parts]
        assert {str(path.relative_to((ROOT / package).parent)) for path in written} <= names


def test_the_wheel_needs_nothing_that_no_index_has(wheel: ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    needed = message_from_bytes(wheel.read(name)).get_all("Requires-Dist") or []

    assert needed
    assert not [one for one in needed if "agent" in one or "@" in one]


def test_both_distributions_of_the_agents_side_are_of_one_version() -> None:
    versions = {
        tomllib.loads((ROOT / path).read_text())["project"]["version"]
        for path in ("pyproject.toml", "container/agent_runner/pyproject.toml")
    }

    assert versions == {agent_runner.__version__}


def texts() -> dict[str, str]:
    """Return every file that the programs print from, by its path."""
    folders = [ROOT / "src", ROOT / "container" / "agent_runner" / "src"]
    kinds = {".py", ".toml", ".html", ".js"}
    paths = [p for folder in folders for p in folder.rglob("*") if p.suffix in kinds]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def test_every_page_that_a_message_names_is_in_the_wheel(wheel: ZipFile) -> None:
    named = {
        page
        for text in texts().values()
        for page in re.findall(r"pynchy docs ([a-z]+(?:-[a-z]+)*)", text)
    }
    shipped = {name for name in wheel.namelist() if name.startswith("pynchy/docs/")}

    assert {"inbox", "slack", "whatsapp", "sandboxes"} <= named <= set(PAGES)
    assert shipped == {f"pynchy/docs/{page}.md" for page in PAGES}


def test_the_commands_print_every_page_but_those_for_who_works_on_the_code() -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}

    assert pages - set(PAGES) == {"architecture", "benchmarks"}


def test_no_message_names_a_page_that_an_installation_does_not_have() -> None:
    assert [path for path, text in texts().items() if re.search(r"docs/[a-z]+\.md", text)] == []


def anchors(page: Path) -> set[str]:
    """Return what a link to a heading of the page may end in, as GitHub makes it of them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {title.replace(" ", "-") for title in plain}


def test_every_link_between_pages_leads_somewhere() -> None:
    dead = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if "://" in link or (target.exists() and (not anchor or anchor in anchors(target))):
                continue
            dead.append(f"{page.name}: {link}")

    assert dead == []
