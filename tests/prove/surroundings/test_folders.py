"""Folders that are removed or replaced under a running host, one by one and all at once."""

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, MailboxAgent, Runs
from tests.prove.conftest import IS_SAMPLE
from tests.prove.surroundings.support import (
    complains,
    doctor_says,
    is_well,
    logged,
    problems,
    serves,
)
from tests.waiting import until

from agent_runner.asking import Asker, Question, Request

AGENT_FOLDERS = ("tasks", "responses", "input")
BROKEN = b'{"v": 1, "type": "ask_user:ask", "request_id": "%s"}'
HOST_FOLDERS = ("pending_questions", "outcomes", "history", "rejected")


@pytest.fixture
async def host(start_host: StartHost) -> Host:
    """A host of the test's own, for what touches every group."""
    return await start_host()


def remove(path: Path, beside: Path) -> None:
    """Remove a folder at once: the host may put something into one that is being emptied."""
    gone = beside / "removed"
    path.rename(gone)
    shutil.rmtree(gone)


FOLDERS = ("tasks", "pending_questions") if IS_SAMPLE else (*AGENT_FOLDERS, *HOST_FOLDERS)


@pytest.mark.parametrize("name", FOLDERS)
async def test_a_group_whose_folder_vanishes_can_ask_and_be_answered_again(
    shared_host: Host, group: str, name: str
) -> None:
    folder, broken = shared_host.group(group), f"broken-{name}"
    agent = MailboxAgent(folder)
    asked = agent.ask("Before?")
    await shared_host.state(asked, "open")

    remove(folder / name, shared_host.data)
    if name in AGENT_FOLDERS:
        await until((folder / name).is_dir, f"{name} made again")
    assert shared_host.answer(asked, "Yes").status == 200
    again = MailboxAgent(shared_host.group(group))
    again.write(f"{broken}.json", BROKEN % broken.encode())
    refused = await again.responded(broken)

    assert agent.take(asked)
    assert (await shared_host.closed(asked))["delivered"] == "live"
    assert "questions" in refused["error"]
    await until(
        lambda: not (agent.tasks / f"{broken}.json").exists(), "the refused file to be gone"
    )
    await serves(shared_host, group)
    await is_well(shared_host)


async def test_a_group_that_is_removed_and_comes_back_can_ask_again(
    shared_host: Host, group: str
) -> None:
    await serves(shared_host, group)
    remove(shared_host.group(group), shared_host.data)
    await serves(shared_host, group)
    await is_well(shared_host)


async def test_a_group_that_is_removed_while_it_waits_is_told_of_and_its_answer_is_kept(
    shared_host: Host, group: str
) -> None:
    agent = MailboxAgent(shared_host.group(group))
    asked = agent.ask("Deploy?")
    await shared_host.state(asked, "open")
    remove(shared_host.group(group), shared_host.data)

    await complains(shared_host, group, "gone")
    await doctor_says(shared_host, group, "gone")
    await serves(shared_host)
    assert shared_host.answer(asked, "Yes").status == 200

    back = MailboxAgent(shared_host.group(group))
    assert (await back.receive(asked))["answers"][0]["selected"] == ["Yes"]
    await shared_host.closed(asked)
    await is_well(shared_host)


async def test_a_waiting_agent_whose_group_is_removed_still_gets_its_answer(
    shared_host: Host, group: str
) -> None:
    await serves(shared_host, group)
    async with Asker(shared_host.group(group)) as asker:
        call = asyncio.create_task(asker.ask(Request((Question("Deploy?"),))))
        [question] = await shared_host.listed(group=group)
        remove(shared_host.group(group), shared_host.data)
        assert shared_host.answer(question["request_id"], "here it is").status == 200
        result = await call

    assert result.answers[0].text == "here it is"
    await shared_host.closed(question["request_id"])


async def test_a_swept_question_of_a_removed_group_ends_as_undeliverable(
    shared_host: Host, group: str
) -> None:
    agent = MailboxAgent(shared_host.group(group))
    asked = agent.ask("Deploy?")
    await shared_host.state(asked, "open")
    remove(shared_host.group(group), shared_host.data)

    code, out, err = await shared_host.cli("sweep")

    assert code == 0, (out, err)
    assert (await shared_host.closed(asked))["ending"]["outcome"] == "undeliverable"
    await is_well(shared_host)


async def test_all_mailboxes_removed_and_what_was_open_can_still_be_answered(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("acknowledge"))
    agents = [MailboxAgent(host.group(f"team-{n}")) for n in range(3)]
    resumable = MailboxAgent(host.group("team"), session_id="s-9")
    asked = [agent.ask("Deploy?") for agent in agents]
    late = resumable.ask("Deploy?")
    await host.listed(4)
    resumable.die()

    remove(host.data / "ipc", host.data)
    await until((host.data / "ipc").is_dir, "ipc/ made again")
    for request_id in [*asked, late]:
        assert host.answer(request_id, "Yes").status == 200

    for agent, request_id in zip(agents, asked, strict=True):
        response = await until(lambda a=agent, i=request_id: a.response(i), "the response")
        assert response["outcome"] == "answered"
        assert agent.take(request_id)
        await host.closed(request_id)
    assert (await host.closed(late))["delivered"] == "late"
    [run] = runs.succeeded() and runs.started()
    assert run["session_id"] == "s-9"
    await serves(host, "fresh")
    await is_well(host)


async def test_a_new_group_is_noticed_at_once_after_all_mailboxes_were_replaced(host: Host) -> None:
    await serves(host, "team")
    (host.data / "ipc").rename(host.data / "old")
    await until((host.data / "ipc").is_dir, "ipc/ made again")
    await serves(host, "team")
    await serves(host, "fresh")
    await is_well(host)


async def test_an_answer_that_cannot_be_written_is_refused_in_words_not_with_a_bare_500(
    host: Host,
) -> None:
    agent = MailboxAgent(host.group("team"))
    asked = agent.ask("Deploy?")
    await host.state(asked, "open")
    outcomes = host.group("team") / "outcomes"
    outcomes.rmdir()
    outcomes.touch()

    refused = host.answer(asked, "Yes")
    code, _, err = await host.cli("answer", asked, "Yes")
    assert refused.status == 503, refused
    assert "Not a directory" in refused.body["error"]
    assert (code, "Not a directory" in err) == (1, True)
    assert logged(host, "Not a directory")
    assert host.question(asked)["state"] == "open"

    outcomes.unlink()
    assert host.answer(asked, "Yes").status == 200
    await agent.receive(asked)
    await host.closed(asked)


async def test_mailboxes_replaced_by_a_file_are_told_of_and_taken_up_again(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))
    asked = agent.ask("Deploy?")
    await host.state(asked, "open")
    ipc = host.data / "ipc"
    ipc.rename(host.data / "aside")
    ipc.touch()

    await complains(host, "mailboxes cannot be looked at")
    await doctor_says(host, "mailboxes cannot be looked at")
    assert host.answer(asked, "Yes").status == 503

    ipc.unlink()
    (host.data / "aside").rename(ipc)
    await is_well(host)
    assert host.answer(asked, "Yes").status == 200
    await agent.receive(asked)
    await serves(host, "team")
    assert problems(host) == []


async def test_a_second_host_on_the_same_folder_is_refused_and_the_first_goes_on(
    host: Host,
) -> None:
    before = (host.data / "host.json").read_bytes()

    code, out, err = await host.cli("serve", "--port", "0")

    assert (code, out) == (1, ""), err
    assert "another pynchy host" in err
    assert (host.data / "host.json").read_bytes() == before
    await serves(host)
    await is_well(host)


async def test_an_address_that_is_not_ours_is_told_without_a_traceback(
    start_host: StartHost,
) -> None:
    host = await start_host()
    assert await host.stop() == 0
    settings = host.data.parent / "far.toml"
    settings.write_text('[http]\nhost = "192.0.2.7"\n')

    code, out, err = await host.cli("serve", "--config", str(settings))

    assert (code, out) == (1, ""), err
    assert "192.0.2.7" in err
    assert "Traceback" not in err
