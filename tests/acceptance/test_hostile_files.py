"""An agent that is no friend writes into its mailbox: nothing is followed, nobody is stopped."""

import asyncio
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json, MailboxAgent
from tests.waiting import until

SECRET = "the plans of another folder"  # noqa: S105 - a text to look for
ASK = {"v": 1, "type": "ask_user:ask", "questions": [{"question": "Deploy?"}]}


@pytest.fixture(scope="module")
def agents(shared_host: Host) -> list[MailboxAgent]:
    """Agents of many groups that the host knows already: a known group is heard at once."""
    agents = [MailboxAgent(shared_host.group(f"group-{number}")) for number in range(80)]
    ready = [agent.mailbox / "input" / "host.json" for agent in agents]
    asyncio.run(until(lambda: all(path.exists() for path in ready), "the host to greet them"))
    return agents


@pytest.fixture
def agent(agents: list[MailboxAgent]) -> MailboxAgent:
    """An agent in a group of this test's own."""
    return agents.pop()


def rejected(agent: MailboxAgent, name: str) -> list[Json]:
    folder = agent.mailbox / "rejected"
    paths = folder.glob("*.json") if folder.is_dir() else ()
    found = [json.loads(path.read_bytes()) for path in paths]
    return [each for each in found if each["name"] == name]


async def is_rejected(agent: MailboxAgent, name: str) -> Json:
    """Wait until the file was put aside, and return the reason."""
    [record] = await until(lambda: rejected(agent, name), f"{name} in rejected/")
    await until(lambda: not os.path.lexists(agent.tasks / name), f"{name} to be gone")
    found: Json = record
    return found


async def still_serves(host: Host, agent: MailboxAgent) -> None:
    """This group and another one get their answers as if nothing had been."""
    for each in (agent, MailboxAgent(host.group("bystander"))):
        request_id = each.ask("Are you there?")
        await host.state(request_id, "open")
        assert host.answer(request_id, "1").status == 200
        response = await each.receive(request_id)
        assert response["answers"][0]["selected"] == ["Yes"]


def _symlink(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def _hard_link(path: Path, secret: Path) -> None:
    path.hardlink_to(secret)


def _fifo(path: Path, _secret: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path, _secret: Path) -> None:
    path.mkdir()
    (path / "deeper").mkdir()
    (path / "deeper" / "file").write_text("x")


def _dangling(path: Path, secret: Path) -> None:
    path.symlink_to(secret / "nowhere")


def _loop(path: Path, _secret: Path) -> None:
    path.symlink_to(path)


def _device(path: Path, _secret: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a device")
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this container forbids devices")


@pytest.mark.parametrize(
    "make",
    [_symlink, _hard_link, _fifo, _folder, _dangling, _loop, _device],
    ids=lambda m: m.__name__,
)
async def test_what_is_no_plain_file_is_not_read(
    shared_host: Host, agent: MailboxAgent, tmp_path: Path, make: Callable[[Path, Path], None]
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(json.dumps(ASK | {"request_id": "trap", "title": SECRET}))
    make(agent.tasks / "trap.json", secret)

    record = await is_rejected(agent, "trap.json")

    assert record["reason"]
    assert record["content"] == ""
    assert secret.exists()
    response = agent.response("trap")
    assert response is not None
    assert response["error"]
    everything = [p.read_text() for p in agent.mailbox.rglob("*.json") if p.is_file()]
    assert not any(SECRET in text for text in everything)
    await still_serves(shared_host, agent)


async def test_a_folder_of_the_mailbox_that_is_a_link_is_not_followed(
    shared_host: Host, agent: MailboxAgent, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    mailbox = shared_host.group("linked")
    mailbox.mkdir()
    (mailbox / "tasks").symlink_to(outside)
    (outside / "trap.json").write_text(json.dumps(ASK | {"request_id": "trap"}))

    await still_serves(shared_host, agent)

    assert (outside / "trap.json").exists()
    assert os.listdir(outside) == ["trap.json"]
    problems = shared_host.http("GET", "/healthz").body["problems"]
    assert any("linked" in problem for problem in problems)


NESTED = b'{"v":1,"type":"ask_user:ask","request_id":"bad","questions":' + b"[" * 2000 + b"]" * 2000


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x" * 1024 * 1024, "larger"),
        (NESTED + b"}", ""),
        (
            json.dumps(ASK | {"request_id": "bad", "title": [[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]}),
            "deep",
        ),
        (b"{", "JSON"),
        (b"", "JSON"),
        (b"\xff\xfe\x00", "JSON"),
        (b"null", "object"),
        (b"[1, 2]", "object"),
        (json.dumps(ASK | {"request_id": "bad", "v": 2}), "v:"),
        (json.dumps(ASK | {"request_id": "bad", "v": True}), "v:"),
        (json.dumps(ASK | {"request_id": "bad", "v": "1"}), "v:"),
        (json.dumps(ASK | {"request_id": "bad", "type": "ask_user:shout"}), "type"),
        (json.dumps(ASK | {"request_id": "bad", "type": "rm -rf"}), "type"),
        (json.dumps(ASK | {"request_id": "bad", "type": 7}), "type"),
        (json.dumps(ASK | {"request_id": "bad", "questions": []}), "questions"),
        (json.dumps(ASK | {"request_id": "bad", "questions": [{}]}), "questions"),
        (json.dumps(ASK | {"request_id": "bad", "questions": ["Deploy?"]}), "questions"),
        (json.dumps(ASK | {"request_id": "bad", "questions": ASK["questions"] * 5}), "questions"),
        (json.dumps(ASK | {"request_id": "bad", "wait_seconds": "soon"}), "wait_seconds"),
        (json.dumps(ASK | {"request_id": "bad", "wait_seconds": -1}), "wait_seconds"),
        (json.dumps(ASK | {"request_id": "bad", "wait_seconds": 1e300}), "wait_seconds"),
        ('{"v":1,"type":"ask_user:ask","request_id":"bad","wait_seconds":NaN}', ""),
        (json.dumps(ASK | {"request_id": "bad", "lease": "../../token"}), "lease"),
        (json.dumps(ASK | {"request_id": "bad", "urgency": "now!"}), "urgency"),
        (json.dumps(ASK | {"request_id": "bad", "session_id": 5}), "session_id"),
    ],
)
async def test_a_request_that_makes_no_sense_gets_an_error_at_once_and_is_kept_with_the_reason(
    shared_host: Host, agent: MailboxAgent, content: bytes | str, reason: str
) -> None:
    agent.write("bad.json", content if isinstance(content, bytes) else content.encode())

    response = await agent.responded("bad")
    record = await is_rejected(agent, "bad.json")

    assert reason in response["error"]
    assert response["request_id"] == "bad"
    assert record["reason"] == response["error"]
    assert shared_host.http("GET", "/api/questions/bad").status == 404
    assert "rejected" in shared_host.kinds("bad")


@pytest.mark.parametrize(
    "request_id",
    ["../x", "../../token", "", ".hidden", "a/b", "a" * 65, "a\n", "ä", 5, None, ["x"]],
)
async def test_an_id_that_is_no_id_names_no_file(
    shared_host: Host, agent: MailboxAgent, request_id: object
) -> None:
    before = sorted(path.name for path in shared_host.data.iterdir())

    agent.write("named.json", json.dumps(ASK | {"request_id": request_id}).encode())
    record = await is_rejected(agent, "named.json")

    assert "request_id" in record["reason"]
    assert list((agent.mailbox / "responses").iterdir()) == []
    assert sorted(path.name for path in shared_host.data.iterdir()) == before


async def test_the_name_of_the_file_is_not_the_id(shared_host: Host, agent: MailboxAgent) -> None:
    agent.write("other name.json", json.dumps(ASK | {"request_id": "inside"}).encode())

    await shared_host.state("inside", "open")

    await until(lambda: not (agent.tasks / "other name.json").exists(), "the request to be taken")


async def test_the_same_question_twice_is_one_question(
    shared_host: Host, agent: MailboxAgent
) -> None:
    request_id = agent.ask("Deploy?")
    question = await shared_host.state(request_id, "open")

    agent.ask("Deploy?", request_id=request_id)
    await until(lambda: not (agent.tasks / f"{request_id}.json").exists(), "the copy to be gone")

    assert shared_host.question(request_id)["short_id"] == question["short_id"]
    assert shared_host.kinds(request_id).count("asked") == 1
    assert agent.response(request_id) is None
    shared_host.answer(request_id, "1")
    assert (await agent.receive(request_id))["outcome"] == "answered"
    agent.ask("Deploy?", request_id=request_id)
    await until(lambda: not (agent.tasks / f"{request_id}.json").exists(), "the copy to be gone")
    await shared_host.closed(request_id)
    assert shared_host.kinds(request_id).count("asked") == 1


@pytest.mark.parametrize("other", ["another question", "broken"])
async def test_another_question_under_a_known_id_is_refused_and_the_first_one_lives(
    shared_host: Host, agent: MailboxAgent, other: str
) -> None:
    request_id = agent.ask("Deploy?")
    await shared_host.state(request_id, "open")

    if other == "broken":
        agent.write(f"{request_id}.json", b"{")
    else:
        agent.ask("Delete everything?", request_id=request_id)
    await is_rejected(agent, f"{request_id}.json")

    assert agent.response(request_id) is None
    question = shared_host.question(request_id)
    assert question["questions"][0]["question"] == "Deploy?"
    shared_host.answer(request_id, "1")
    response = await agent.receive(request_id)
    assert response["answers"][0]["question"] == "Deploy?"


async def test_an_agent_cannot_end_a_question_of_another_group(
    shared_host: Host, agent: MailboxAgent
) -> None:
    request_id = agent.ask("Deploy?")
    await shared_host.state(request_id, "open")
    other = MailboxAgent(shared_host.group("intruder"))

    other.tell("withdraw", request_id)
    other.tell("cancel", request_id)
    await until(lambda: not list(other.tasks.glob("*.json")), "the requests to be taken")

    question = shared_host.question(request_id)
    assert question["state"] == "open"
    assert question["call_waits"]


async def test_the_same_id_in_two_groups_is_two_questions(
    shared_host: Host, agent: MailboxAgent
) -> None:
    other = MailboxAgent(shared_host.group("namesake"))
    request_id = agent.ask("Mine?")
    other.ask("Theirs?", request_id=request_id)

    def both() -> dict[str, str]:
        found = [p for p in shared_host.pending() if p["request_id"] == request_id]
        return {p["group"]: p["short_id"] for p in found} if len(found) == 2 else {}

    short_ids = await until(both, "both questions")
    assert shared_host.answer(request_id, "1").status == 409
    assert shared_host.answer(short_ids[agent.mailbox.name], "mine").status == 200
    assert shared_host.answer(short_ids["namesake"], "theirs").status == 200

    assert (await agent.receive(request_id))["answers"][0]["text"] == "mine"
    assert (await other.receive(request_id))["answers"][0]["text"] == "theirs"


async def test_a_forged_receipt_and_a_forged_response_cannot_answer(
    shared_host: Host, agent: MailboxAgent
) -> None:
    request_id = agent.ask("Deploy?")
    await shared_host.state(request_id, "open")
    forged = json.dumps({"v": 1, "request_id": request_id, "outcome": "answered", "answers": []})

    agent.write(f"{request_id}.outcome.json", forged.encode())
    agent.write(f"{request_id}.received", b'{"v": 1, "by": "host", "claim": "x"}')
    await is_rejected(agent, f"{request_id}.outcome.json")

    assert shared_host.question(request_id)["ending"] is None
    assert shared_host.answer(request_id, "1").status == 200


async def test_names_that_are_no_group_are_left_alone(
    shared_host: Host, agent: MailboxAgent, tmp_path: Path
) -> None:
    ipc = shared_host.data / "ipc"
    (ipc / "a b").mkdir()
    (ipc / "stray file").write_text("x")
    (ipc / "link").symlink_to(tmp_path)
    (ipc / ("x" * 100)).mkdir()

    await still_serves(shared_host, agent)

    assert list((ipc / "a b").iterdir()) == []
    assert os.listdir(tmp_path) == []


async def test_a_flood_of_junk_does_not_stop_the_other_groups(shared_host: Host) -> None:
    noisy = MailboxAgent(shared_host.group("noisy"))
    for number in range(600):
        noisy.write(f"junk-{number}.json", b"{")

    other = MailboxAgent(shared_host.group("quiet"))
    request_id = other.ask("Are you there?")
    await shared_host.state(request_id, "open")
    assert shared_host.answer(request_id, "1").status == 200
    await other.receive(request_id)

    assert len(list((noisy.mailbox / "rejected").iterdir())) <= 200


async def test_a_group_whose_folder_vanishes_stops_nobody(
    shared_host: Host, agent: MailboxAgent
) -> None:
    vanishing = MailboxAgent(shared_host.group("vanishing"))
    request_id = vanishing.ask("Deploy?")
    await shared_host.state(request_id, "open")

    vanishing.mailbox.joinpath("tasks").rename(vanishing.mailbox / "elsewhere")
    await still_serves(shared_host, agent)

    assert shared_host.answer(request_id, "1").status == 200


async def test_thousands_of_leases_of_one_group_keep_nobody_waiting(
    start_host: StartHost,
) -> None:
    host = await start_host()
    agent = MailboxAgent(host.group("crowd"))
    ready = agent.mailbox / "input" / "host.json"
    await until(ready.exists, "the host to greet the group")
    for number in range(3_000):
        (agent.tasks / f"lease-{number}.lease").write_text('{"v": 1, "session_id": "s"}')

    agents = [host.http("GET", "/api/agents") for _ in range(3)]
    problems = host.http("GET", "/healthz").body["problems"]

    assert [reply.status for reply in agents] == [200] * 3
    assert any("crowd has more than 2,000 lease files" in problem for problem in problems)
    await still_serves(host, agent)
    assert await host.stop() == 0


async def test_a_host_whose_lock_is_removed_stops_and_leaves_the_folder_to_the_next(
    start_host: StartHost,
) -> None:
    first = await start_host()
    (first.data / "host.lock").unlink()
    second = Host(first.data)
    await second.start()

    assert first.process is not None
    process = first.process
    await until(lambda: process.poll() is not None, "the end of the first host")

    assert process.returncode != 0
    assert "host.lock was removed" in first.log.read_text()
    assert second.http("GET", "/healthz").status == 200
    agent = MailboxAgent(second.group("team"))
    request_id = agent.ask()
    await second.state(request_id, "open")
    assert second.answer(request_id, "1").status == 200
    assert (await agent.receive(request_id))["outcome"] == "answered"
    assert await second.stop() == 0


async def test_a_host_whose_folder_is_moved_stops(start_host: StartHost) -> None:
    host = await start_host()

    host.data.rename(host.data.with_name("moved"))
    process = host.process
    assert process is not None
    await until(lambda: process.poll() is not None, "the end of the host")

    assert process.returncode != 0
    assert "the folder was moved" in host.log.read_text()


async def test_a_full_folder_of_one_group_kept_the_deadlines_of_all_waiting(
    start_host: StartHost,
) -> None:
    host = await start_host()
    enemy, bystander = (MailboxAgent(host.group(name)) for name in ("enemy", "bystander"))
    for each in (enemy, bystander):
        await host.state(each.ask("Are you there?"), "open")
    assert await host.stop() == 0
    for number in range(4_000):
        (enemy.tasks / "x.lease" / str(number)).mkdir(parents=True)

    await host.start()
    asked = [{"question": "Go on?", "default": "yes"}]
    response = await bystander.responded(bystander.ask(questions=asked, wait_seconds=1))

    assert response["outcome"] == "defaulted"
    assert sum(len(folders) for _, folders, _ in os.walk(enemy.tasks)) > 1_000
