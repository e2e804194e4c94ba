"""Sessions: started by a person, seen whoever started them, ended by person, cap or death."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json, MailboxAgent, Runs, agent_of
from tests.waiting import until


async def test_a_session_is_started_with_its_prompt_and_ends_when_its_runner_has(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("work"))

    code, out, err = await host.cli("run", "team", "Mend the roof\nand the door")
    session_id = out.strip()
    working = await host.session_is(session_id, "working")
    await until(runs.started, "the runner")
    runs.do("finish")
    ended = await host.session_is(session_id, "ended")

    assert (code, err) == (0, "")
    assert (working["group"], working["agent"], working["launched"]) == ("team", "claude", True)
    assert working["task"] == "Mend the roof"
    [run] = runs.started()
    prompt = "Mend the roof\nand the door"
    assert run["initial"] == {"v": 1, "session_id": session_id, "prompt": prompt}
    assert (run["session_id"], run["agent"]) == (session_id, "claude")
    assert run["environ"]["PYNCHY_SESSION_ID"] == session_id
    assert run["environ"]["PYNCHY_IPC_DIR"] == str(host.group("team"))
    assert run["environ"]["PYNCHY_AGENT"] == "claude"
    assert run["environ"]["PYNCHY_TASK"] == "Mend the roof"
    assert (ended["detail"], ended["failed"]) == ("finished", False)
    assert ended["since"] > working["since"]
    told = [e for e in host.events() if e.get("session_id") == session_id]
    kinds = [e["type"] for e in told]
    assert kinds == ["session_changed", "session_started", "session_finished", "session_changed"]
    assert [told[0]["state"], told[-1]["state"]] == ["working", "ended"]


async def test_a_session_that_asks_waits_on_you_and_works_again_with_the_answer(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("ask"))
    session_id = host.run()

    [question] = await host.listed()
    waiting = await host.session_is(session_id, "waiting")
    host.answer(question["short_id"], "1")
    await host.session_is(session_id, "working")
    await until(lambda: runs.lines("answered"), "the answer")
    runs.do("finish")
    await host.session_is(session_id, "ended")

    assert question["session_id"] == session_id
    assert (waiting["detail"], waiting["since"]) == (question["short_id"], waiting["since"])
    assert runs.lines("answered")[0]["answers"] == [["Yes"]]
    assert len(runs.started()) == 1


async def test_a_session_that_fails_says_why(start_host: StartHost, runs: Runs) -> None:
    host = await start_host(runs.process("fail"))

    session_id = host.run()
    ended = await host.session_is(session_id, "ended")

    assert ended["failed"]
    assert ended["detail"].startswith("failed: it broke (exit code 3; its output is in ")
    told = {e["type"]: e for e in host.events() if e.get("session_id") == session_id}  # the last
    assert told["session_failed"]["detail"] == "it broke"
    assert told["session_changed"]["state"] == "ended"


async def test_a_runner_that_cannot_be_started_is_a_session_that_has_ended(
    start_host: StartHost, runs: Runs, tmp_path: Path
) -> None:
    program = tmp_path / "not-for-running"
    program.write_text("")
    host = await start_host(runs.process("finish", runner=str(program)))

    code, out, err = await host.cli("run", "team", "Mend it")
    _, everything, _ = await host.cli("sessions", "--all", "--json")

    assert (code, out) == (1, "")
    assert f"could not start {program}: Permission denied" in err
    [session] = json.loads(everything)
    ended = await host.session_is(session["session_id"], "ended")
    assert ended["failed"]
    assert "could not start" in ended["detail"]


async def test_the_host_is_killed_while_a_session_runs_and_the_next_one_finds_it(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("work"))
    session_id = host.run()
    await until(runs.started, "the runner")
    before = await host.session_is(session_id, "working")

    await host.restart()
    found = host.session(session_id)
    runs.do("finish")
    ended = await host.session_is(session_id, "ended")

    assert found == before
    assert ended["detail"] == "finished"
    assert len(runs.started()) == len(runs.succeeded()) == 1


async def test_a_runner_that_ended_while_no_host_ran_is_known_to_have_ended(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("work"))
    session_id = host.run()
    [run] = await until(runs.started, "the runner")
    await host.session_is(session_id, "working")

    host.kill()
    os.kill(run["pid"], signal.SIGKILL)
    await until(lambda: not _is_alive(run["pid"]), "the runner's death")
    await host.start()
    ended = await host.session_is(session_id, "ended")

    assert ended["failed"]
    assert "exit code -9" in ended["detail"]


async def test_an_adopted_runner_is_stopped_by_a_person(start_host: StartHost, runs: Runs) -> None:
    host = await start_host(runs.process("work"))
    session_id = host.run()
    [run] = await until(runs.started, "the runner")
    await host.restart()

    code, out, err = await host.cli("stop", session_id[:8])

    assert (code, err) == (0, "")
    assert out == f"{session_id}: stopped\n"
    assert not _is_alive(run["pid"])
    ended = await host.session_is(session_id, "ended")
    assert ended["detail"] == "stopped"
    assert await host.cli("stop", session_id) == (
        4,
        "",
        f"pynchy: {session_id} has ended already: stopped\n",
    )


async def test_a_deaf_runner_is_killed_after_its_grace_and_that_is_said(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("hang", term_grace="300ms"))
    session_id = host.run()
    [run] = await until(lambda: runs.lines("deaf"), "the runner to be deaf")

    code, out, _ = await host.cli("stop", session_id)

    assert code == 0
    assert "killed after 0.3 s" in out
    assert len(runs.lines("asked to end")) == 1
    assert not _is_alive(run["pid"])


async def test_a_runner_is_ended_at_its_cap(start_host: StartHost, runs: Runs) -> None:
    host = await start_host(runs.process("work", timeout="1s", term_grace="300ms"))

    session_id = host.run()
    ended = await host.session_is(session_id, "ended")

    assert ended["failed"]
    assert "cap of 1 s" in ended["detail"]
    [run] = runs.started()
    assert not _is_alive(run["pid"])


async def test_stopping_a_runner_that_is_being_given_an_answer_keeps_the_answer(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("wait"))
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await host.listed()
    agent.die()
    host.answer(request_id, "1")
    await until(runs.started, "the runner")

    code, _, _ = await host.cli("stop", "session-1")
    undelivered = await host.state(request_id, "undelivered")

    assert code == 0
    assert "stopped" in undelivered["delivery_error"]
    assert len(runs.started()) == 1
    runs.do("exit-0")
    assert host.retry(request_id).status == 200
    assert (await host.closed(request_id))["delivered"] == "late"


async def test_a_session_is_stopped_while_its_next_start_waits_for_its_time(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.launcher("fail", attempts=3, backoff="10m"))
    agent = MailboxAgent(host.group("team"))
    request_id = agent.ask()
    await host.listed()
    agent.die()
    host.answer(request_id, "1")
    await until(lambda: "resume_failed" in host.kinds(request_id), "the first failure")

    code, out, err = await host.cli("stop", "session-1")
    undelivered = await host.state(request_id, "undelivered")

    assert (code, err) == (0, "")
    assert "stopped before its runner was started again" in out
    assert "stopped" in undelivered["delivery_error"]
    assert len(runs.started()) == 1
    runs.do("exit-0")
    assert host.retry(request_id).status == 200
    assert (await host.closed(request_id))["delivered"] == "late"


async def test_a_session_is_stopped_while_others_are_before_it(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host("max_resumes = 1\n" + runs.launcher("wait"))
    asked = []
    for name in ("first", "second"):
        agent = MailboxAgent(host.group("team"), name)
        asked.append(agent.ask())
        await host.listed(1)
        agent.die()
        host.answer(asked[-1], "1")
        await until(runs.started, "the first runner")

    halting = asyncio.create_task(host.cli("stop", "second"))
    await until(lambda: "session_stopped" in [e["type"] for e in host.events()], "the stop")
    runs.do("exit-0")
    code, _, _ = await halting
    await host.closed(asked[0])

    assert code == 0
    assert (await host.state(asked[1], "undelivered"))["delivered"] is None
    assert [run["initial"]["session_id"] for run in runs.started()] == ["first"]


async def test_a_session_is_resumed_with_the_agent_and_place_that_it_began_with(
    start_host: StartHost, runs: Runs, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    home = f'env = {{ HOME = "{tmp_path}" }}\n'
    host = await start_host(runs.process("ask", cwd=str(place)) + home)
    session_id = host.run(agent="codex")
    [question] = await host.listed()
    [first] = runs.started()
    os.kill(first["pid"], signal.SIGKILL)
    host.kill()
    host.configure(runs.process("finish"))  # neither folder nor home are said any more
    await host.start()

    host.answer(question["short_id"], "2")
    closed = await host.closed(question["request_id"])

    assert closed["delivered"] == "late"
    [_, second] = runs.started()
    assert second["initial"]["request_id"] == question["request_id"]
    for name in ("session_id", "agent", "cwd"):
        assert second[name] == first[name]
    assert second["environ"]["HOME"] == str(tmp_path)
    assert second["agent"] == "codex"
    await host.session_is(session_id, "ended")


async def test_a_session_is_resumed_with_the_agent_that_the_settings_named_when_it_began(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("ask", agent="codex"))
    host.run()
    [question] = await host.listed()
    [first] = runs.started()
    os.kill(first["pid"], signal.SIGKILL)
    host.kill()
    host.configure(runs.process("finish", agent="claude"))
    await host.start()

    host.answer(question["short_id"], "2")
    await host.closed(question["request_id"])

    assert [run["agent"] for run in runs.started()] == ["codex", "codex"]


async def test_an_agent_is_not_told_where_the_host_keeps_its_data(
    start_host: StartHost, runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYNCHY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PYNCHY_CONFIG", str(tmp_path / "data/pynchy.toml"))
    host = await start_host(runs.process("finish"))
    await host.session_is(host.run(), "ended")

    [run] = runs.started()

    ours = {name for name in run["environ"] if name.startswith("PYNCHY_")}
    told = {"PYNCHY_IPC_DIR", "PYNCHY_SESSION_ID", "PYNCHY_AGENT", "PYNCHY_TASK"}
    assert ours == {*told, "PYNCHY_JOB"}
    assert "/" not in run["environ"]["PYNCHY_JOB"]


async def test_a_session_is_stopped_though_another_group_uses_its_id(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("work"))
    session_id = host.run()
    await until(runs.started, "the runner")
    other = MailboxAgent(host.group("other"), session_id)
    other.ask()
    await host.listed()

    not_ours = await host.cli("stop", f"other/{session_id}")
    code, out, err = await host.cli("stop", session_id)

    assert not_ours[0] == 1
    assert (code, out, err) == (0, f"{session_id}: stopped\n", "")


async def test_the_session_that_asked_is_resumed_while_a_newer_one_of_the_group_runs(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("finish"))
    old = MailboxAgent(host.group("team"), "old")
    request_id = old.ask()
    await host.listed()
    old.die()
    new = MailboxAgent(host.group("team"), "new")
    other = new.ask("Something else?")
    await host.listed(2)

    host.answer(request_id, "1")
    closed = await host.closed(request_id)

    assert closed["delivered"] == "late"
    [run] = runs.started()
    assert run["session_id"] == run["initial"]["session_id"] == "old"
    assert host.question(other)["state"] == "open"
    assert (await host.session_is("new", "waiting"))["launched"] is False


async def test_two_late_answers_of_one_session_have_one_runner_at_a_time(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("work"))
    agent = MailboxAgent(host.group("team"))
    ids = [agent.ask(f"Question {n}?") for n in range(2)]
    await host.listed(2)
    agent.die()

    for request_id in ids:
        host.answer(request_id, "1")
    await until(runs.started, "the first runner")
    await until(lambda: any(p["state"] == "held" for p in host.pending()), "the other to be held")
    assert len(runs.started()) == 1
    runs.do("finish")
    for request_id in ids:
        assert (await host.closed(request_id))["delivered"] == "late"

    assert len(runs.started()) == 2
    pids = [run["pid"] for run in runs.started()]
    assert pids[0] != pids[1]


async def test_groups_take_turns_at_being_resumed(start_host: StartHost, runs: Runs) -> None:
    tables = [runs.launcher("wait", group=group) for group in ("busy", "quiet")]
    host = await start_host("max_resumes = 1\n" + "".join(tables))
    asked = {}
    for group, count in (("busy", 4), ("quiet", 1)):
        for number in range(count):
            agent = MailboxAgent(host.group(group), f"{group}-{number}")
            asked[agent.ask()] = group
            agent.die()
    await host.listed(5)

    for request_id in asked:  # the quiet group's is the last of all
        host.answer(request_id, "1")
    await until(runs.started, "the first runner")
    runs.do("exit-0")
    for request_id in asked:
        await host.closed(request_id)

    order = [run["initial"]["session_id"].partition("-")[0] for run in runs.started()]
    assert len(order) == 5
    assert order.index("quiet") <= 2


async def test_a_session_is_one_agent_before_it_asks_and_with_several_leases(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("work"))
    session_id = host.run()
    await until(runs.started, "the runner")

    def counted() -> tuple[int, list[str]]:
        agents = host.http("GET", "/api/agents").body
        count = host.http("GET", "/api/status").body["agents"]
        return count, [agent["session_id"] for agent in agents]

    before = counted()
    beside = [MailboxAgent(host.group("team"), session_id) for _ in range(2)]
    during = counted()
    beside[0].ask()
    await host.listed()

    assert before == during == counted() == (1, [session_id])


async def test_a_session_whose_id_ends_like_a_route_can_be_looked_at(host: Host) -> None:
    agent = MailboxAgent(host.group("team"), "job/log")
    agent.ask()
    await host.listed()

    reply = host.http("GET", "/api/sessions/job/log")

    assert reply.status == 200
    assert reply.body["session_id"] == "job/log"


async def test_an_agent_that_pynchy_did_not_start_is_seen_when_it_asks(host: Host) -> None:
    async with agent_of(host, PYNCHY_SESSION_ID="mine", PYNCHY_AGENT="Ada") as agent:
        call = agent.asking("Deploy?")
        [question] = await host.listed()
        waiting = await host.session_is("mine", "waiting")
        stop = await host.cli("stop", "mine")
        host.answer(question["short_id"], "1")
        await call
        working = await host.session_is("mine", "working")
    ended = await host.session_is("mine", "ended")

    assert (waiting["agent"], waiting["launched"]) == ("Ada", False)
    assert stop[0] == 1
    assert "has not started" in stop[2]
    assert working["since"] <= ended["since"]
    assert ended["detail"] == "its process is gone"


async def test_an_agent_that_dies_without_a_word_has_ended(host: Host) -> None:
    async with agent_of(host, PYNCHY_SESSION_ID="mine") as agent:
        call = agent.asking("Deploy?")
        [question] = await host.listed()
        host.answer(question["short_id"], "1")
        await call
        await host.session_is("mine", "working")
        agent.signal(signal.SIGKILL)
        await host.session_is("mine", "ended")

    # The host is killed: what it has told a moment before may have to be found out again.
    await host.restart()
    await host.session_is("mine", "ended")


async def test_what_waits_is_known_after_a_restart_with_its_time(host: Host) -> None:
    agent = MailboxAgent(host.group("team"), "mine")
    agent.ask()
    await host.listed()
    before = await host.session_is("mine", "waiting")

    await host.restart()

    assert await host.session_is("mine", "waiting") == before


async def test_a_person_sees_what_is_running_and_what_has_ended(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("finish"))
    session_id = host.run()
    await host.session_is(session_id, "ended")
    agent = MailboxAgent(host.group("other"), "mine")
    agent.ask()
    [question] = await host.listed()
    await host.session_is("mine", "waiting")

    code, running, _ = await host.cli("sessions")
    _, everything, _ = await host.cli("sessions", "--all")
    _, as_json, _ = await host.cli("sessions", "--json")

    assert code == 0
    [line] = running.splitlines()
    fields = line.split("\t")
    assert fields[:4] == ["other", "-", "mine", "waiting on you"]
    assert fields[5] == f"pynchy answer {question['short_id']}"
    assert {row.split("\t")[2] for row in everything.splitlines()} == {session_id, "mine"}
    assert [s["session_id"] for s in json.loads(as_json)] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "nobody", "Hi"), 1, "no group is called nobody; known groups: plain, team"),
        (("run", "plain", "Hi"), 1, "group plain has no launcher"),
        (("run", "own", "Hi", "--agent", "codex"), 1, "no agent can be chosen"),
        (("run", "bare", "Hi"), 1, "the agent program codex is not on the PATH that the agent"),
        (("run", "team", "  "), 2, "a prompt is needed"),
        (("run", "team", "Hi", "--agent", "gpt"), 2, "Invalid value"),
        (("stop", "0000"), 1, "no session has the id 0000"),
    ],
)
async def test_what_cannot_be_done_is_said_with_an_exit_code(
    start_host: StartHost, runs: Runs, arguments: tuple[str, ...], code: int, said: str
) -> None:
    others = {
        "own": runs.launcher("exit-0", group="own"),
        "bare": '[groups.bare.launcher]\nkind = "process"\nagent = "codex"\nenv.PATH = "/none"\n',
    }
    more = "".join(table for name, table in others.items() if name in arguments)
    host = await start_host(runs.process("finish") + more + "[groups.plain]\n")

    exit_code, out, err = await host.cli(*arguments)

    assert (exit_code, out) == (code, "")
    assert said in err
    assert runs.started() == []


@pytest.mark.parametrize("command", [["run", "team", "Hi"], ["sessions"], ["stop", "mine"]])
async def test_without_a_host_that_is_said(tmp_path: Path, command: list[str]) -> None:
    code, _, err = await Host(tmp_path / "data").cli(*command)

    assert code == 5
    assert "pynchy serve" in err


async def test_following_prints_what_is_printed_and_what_happens_until_the_end(
    start_host: StartHost, runs: Runs
) -> None:
    host = await start_host(runs.process("finish"))

    code, out, err = await host.cli("run", "team", "Mend it", "--follow")
    runs.do("fail")
    failed, _, why = await host.cli("run", "team", "Mend it", "--follow")
    _, lines, _ = await host.cli("run", "team", "Mend it", "--follow", "--json")

    assert code == 0
    assert out == "hello from claude\n"
    assert "session_started" in err
    assert "Ended: finished" in err
    assert failed == 1
    assert "it broke" in why
    pieces: list[Json] = [json.loads(line) for line in lines.splitlines()]
    assert {"output", "session_started", "session_failed"} <= {piece["type"] for piece in pieces}
    [output] = [piece for piece in pieces if piece["type"] == "output"]
    assert output["text"] == "hello from claude\n"


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
