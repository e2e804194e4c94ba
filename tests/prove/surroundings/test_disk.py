"""A disk that is full, without inodes, or read-only: nothing acknowledged is lost."""

import asyncio

from tests.acceptance.support import Host, MailboxAgent, Runs
from tests.prove.surroundings.conftest import Disk
from tests.prove.surroundings.support import complains, doctor_says, is_well, logged, serves
from tests.waiting import until

from agent_runner.asking import Asker, Outcome, Question, Request


async def host_on(disk: Disk, settings: str = "") -> Host:
    host = Host(disk.path / "data", settings)
    host.log = disk.path.parent / "host.log"
    return await host.start()


async def test_a_full_disk_refuses_answers_keeps_questions_and_goes_on_when_there_is_room(
    disk: Disk,
) -> None:
    host = await host_on(disk)
    try:
        agent = MailboxAgent(host.group("team"))
        asked = agent.ask("Deploy?")
        late = agent.ask("And this one?")
        await host.listed(2)
        assert host.answer(late, "No").status == 200
        await agent.receive(late)
        await host.closed(late)
        disk.fill()

        refused = host.answer(asked, "Yes")
        await complains(host, "full")
        await doctor_says(host, "disk", "free")
        assert refused.status == 503, refused
        assert "No space left" in refused.body["error"]
        assert agent.response(asked) is None
        assert host.question(asked)["state"] == "open"
        assert host.question(late)["state"] == "closed"

        disk.free()
        await is_well(host)
        assert host.answer(asked, "Yes").status == 200
        assert (await agent.receive(asked))["answers"][0]["selected"] == ["Yes"]
        await host.closed(asked)
        await serves(host)
        assert host.kinds(asked).count("answered") == 1
        numbers = [event["seq"] for event in host.events()]
        assert numbers == sorted(set(numbers))
        assert logged(host, "No space left")
    finally:
        host.kill()


async def test_an_answer_acknowledged_just_before_the_disk_is_full_arrives_once_there_is_room(
    disk: Disk,
) -> None:
    """The outcome is on the disk, the response does not fit: it follows, also after a crash."""
    host = await host_on(disk)
    try:
        agent = MailboxAgent(host.group("team"))
        asked = [agent.ask(f"Number {n}?") for n in range(30)]
        await host.listed(30)
        filling = asyncio.create_task(asyncio.to_thread(disk.fill))
        replies = [await asyncio.to_thread(host.answer, i, "Yes") for i in asked]
        await filling
        host.kill()
        disk.free()
        await host.start()

        acknowledged = [i for i, reply in zip(asked, replies, strict=True) if reply.status == 200]
        for request_id in acknowledged:
            assert (await agent.receive(request_id))["outcome"] == "answered"
            await host.closed(request_id)
        for request_id in set(asked) - set(acknowledged):
            if host.question(request_id)["state"] == "open":
                assert host.answer(request_id, "No").status == 200
            assert (await agent.receive(request_id))["outcome"] == "answered"
        await serves(host)
    finally:
        host.kill()


async def test_an_agent_is_told_that_its_question_could_not_be_written(disk: Disk) -> None:
    host = await host_on(disk)
    try:
        await serves(host, "team")
        async with Asker(host.group("team")) as asker:
            early = asyncio.create_task(asker.ask(Request((Question("Early?"),))))
            [question] = await host.listed()
            disk.fill()
            failed = await asker.ask(Request((Question("Deploy?" * 2_000),)))
            assert failed.outcome is Outcome.ERROR
            assert "No space left" in (failed.error or "")
            disk.free()
            await is_well(host)
            assert host.answer(question["request_id"], "here").status == 200
            assert (await early).answers[0].text == "here"
    finally:
        host.kill()


async def test_a_question_that_cannot_be_recorded_stays_in_the_mailbox_until_it_can(
    disk: Disk,
) -> None:
    host = await host_on(disk)
    try:
        agent = MailboxAgent(host.group("team"))
        await serves(host, "team")
        waiting = agent.tasks / ".prepared"
        body = agent.mailbox / "tasks" / "q1.json"
        agent.ask("Prepared", request_id="q1")
        await host.state("q1", "open")
        assert host.decline("q1").status == 200
        await agent.receive("q1")
        text = b'{"v": 1, "type": "ask_user:ask", "request_id": "q2", "questions": [%s]}'
        waiting.write_bytes(text % (b'{"question": "%s"}' % (b"Why? " * 1_000)))
        disk.fill()
        waiting.rename(body.with_name("q2.json"))
        await complains(host, "full")
        await until(lambda: logged(host, "request.failed"), "a line in the log")
        assert body.with_name("q2.json").exists()

        disk.free()
        await host.state("q2", "open")
        assert host.answer("q2", "because").status == 200
        assert (await agent.receive("q2"))["answers"][0]["text"] == "because"
        await is_well(host)
    finally:
        host.kill()


async def test_a_read_only_disk_refuses_answers_says_so_and_goes_on_when_it_can_be_written(
    disk: Disk,
) -> None:
    host = await host_on(disk)
    try:
        agent = MailboxAgent(host.group("team"))
        asked = agent.ask("Deploy?")
        await host.listed()
        disk.lock()

        refused = host.answer(asked, "Yes")
        await complains(host, "read-only")
        await doctor_says(host, "ead-only")
        assert refused.status == 503, refused
        assert "Read-only" in refused.body["error"]
        code, out, err = await host.cli("answer", asked, "Yes")
        assert code not in {0, 4}, (out, err)
        assert "Read-only" in err
        assert [p["request_id"] for p in host.pending()] == [asked]

        disk.unlock()
        await is_well(host)
        assert host.answer(asked, "Yes").status == 200
        await agent.receive(asked)
        await host.closed(asked)
        await serves(host)
        await until(lambda: logged(host, "ead-only"), "a line in the log")
    finally:
        host.kill()


async def test_a_session_is_resumed_when_the_disk_has_room_again(disk: Disk, runs: Runs) -> None:
    host = await host_on(disk, runs.launcher("acknowledge", backoff="1s"))
    try:
        agent = MailboxAgent(host.group("team"))
        asked = agent.ask("Deploy?")
        await host.listed()
        agent.die()
        (agent.tasks / f"{agent.lease}.lease").unlink()
        (disk.path / "sliver").write_bytes(bytes(4096 * 3))
        disk.fill()
        (disk.path / "sliver").unlink()
        reply = host.answer(asked, "Yes")
        disk.free()

        if reply.status != 200:
            reply = host.answer(asked, "Yes")
        assert reply.status in {200, 409}, reply
        assert (await host.closed(asked))["delivered"] == "late"
        assert len(runs.succeeded()) == 1
        await is_well(host)
    finally:
        host.kill()


async def test_a_host_does_not_start_on_a_disk_that_it_cannot_write_and_says_what_to_do(
    disk: Disk,
) -> None:
    host = await host_on(disk)
    await serves(host)
    assert await host.stop() == 0
    disk.lock()

    code, out, err = await host.cli("serve", "--port", "0")

    assert (code, out) == (1, ""), (code, out, err)
    assert "Read-only" in err
    assert "--data-dir" in err
    assert "Traceback" not in err
    disk.unlock()
    disk.fill()
    code, out, err = await host.cli("serve", "--port", "0")
    assert (code, out) == (1, ""), (code, out, err)
    assert "No space left" in err
    assert "Traceback" not in err
    disk.free()
    await host.start()
    await serves(host)
    host.kill()
