"""The HTTP interface as a browser, a script and an attacker meet it; one host for each folder."""

import asyncio
import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, Json, MailboxAgent


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic abc"}, {"Cookie": "token=x"}],
)
async def test_without_the_token_nothing_is_told(
    shared_host: Host, headers: dict[str, str]
) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask()
    await shared_host.state(request_id, "open")

    paths = ["/api/pending", "/api/history", "/api/events", f"/api/questions/{request_id}", "/x"]
    replies = [shared_host.http("GET", path, headers=headers) for path in paths]
    body = {"values": ["1"], "by": "mallory"}
    replies += [
        shared_host.http("POST", f"/api/questions/{request_id}/{verb}", body, headers)
        for verb in ("answer", "decline", "retry")
    ]

    assert {reply.status for reply in replies} == {401}
    assert all("token" in reply.body["error"] for reply in replies)
    assert shared_host.question(request_id)["state"] == "open"


async def test_health_is_open_to_everybody_and_tells_no_question(host: Host) -> None:
    MailboxAgent(host.group("team")).ask("A secret plan?")
    await host.listed()

    reply = host.http("GET", "/healthz", headers={})

    assert reply.status == 200
    assert reply.body == {"status": "ok", "open": 1}
    assert host.http("GET", "/healthz").body == {"status": "ok", "open": 1, "problems": []}


@pytest.mark.parametrize("name", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example"])
async def test_a_foreign_host_name_is_refused_even_with_the_token(
    shared_host: Host, name: str
) -> None:
    headers = {"Authorization": f"Bearer {shared_host.token()}", "Host": name}

    assert shared_host.http("GET", "/api/pending", headers=headers).status == 421
    assert shared_host.http("GET", "/healthz", headers={"Host": name}).status == 421


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_that_is_too_large_is_refused(shared_host: Host, *, declared: bool) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask()
    await shared_host.state(request_id, "open")
    headers = {"Authorization": f"Bearer {shared_host.token()}"}
    address = urlsplit(shared_host.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    payload = json.dumps({"values": ["x" * 400_000]}).encode()
    path = f"/api/questions/{request_id}/answer"

    try:
        if declared:
            connection.request("POST", path, payload, headers)
        else:
            chunks = [payload[i : i + 65_536] for i in range(0, len(payload), 65_536)]
            connection.request("POST", path, iter(chunks), headers, encode_chunked=True)
        status = connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        status = 413  # it hung up on us in the midst of it
    finally:
        connection.close()

    assert status == 413
    assert shared_host.question(request_id)["state"] == "open"


async def test_a_second_answer_is_told_who_answered_what(shared_host: Host) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask()
    await shared_host.state(request_id, "open")

    first = shared_host.answer(request_id, "Yes", by="ana")
    second = shared_host.answer(request_id, "No", by="ben")

    assert first.status == 200
    assert second.status == 409
    assert second.body["outcome"] == "answered"
    assert second.body["answered_by"] == "ana"
    assert second.body["channel"] == "local"
    assert "Yes" in second.body["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"values": ["9"]}, 422),
        ({"values": []}, 422),
        ({"values": [""]}, 422),
        ({"values": ["1", "2"]}, 422),
        ({"values": "1"}, 422),
        ({"answers": [{"selected": ["Perhaps"]}]}, 422),
        ({"values": ["1"], "question": 2}, 422),
        ({"values": ["1"], "surprise": 1}, 422),
        ({"values": ["1"], "answers": [{"selected": ["No"]}]}, 422),
        (b"not json", 422),
        (b"", 422),
        ([], 422),
    ],
)
async def test_what_is_no_answer_leaves_the_question_open(
    shared_host: Host, body: object, status: int
) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask()
    await shared_host.state(request_id, "open")

    reply = shared_host.http("POST", f"/api/questions/{request_id}/answer", body)

    assert reply.status == status
    assert reply.body["error"]
    assert shared_host.question(request_id)["state"] == "open"


@pytest.mark.parametrize(
    ("path", "name", "words"),
    [
        ("/api/questions/ID/answer", "vals", "vals: unknown; did you mean values?"),
        ("/api/questions/ID/answer", "zzz", "zzz: unknown; there are by, group, values, answers"),
        ("/api/questions/ID/decline", "raeson", "raeson: unknown; did you mean reason?"),
        ("/api/sweep", "dryRun", "dryRun: unknown; did you mean dry_run?"),
        ("/api/sessions", "promt", "promt: unknown; did you mean prompt?"),
        ("/api/groups/team/remove", "forced", "forced: unknown; did you mean force?"),
    ],
)
async def test_a_misspelt_field_is_told_which_one_was_meant(
    shared_host: Host, path: str, name: str, words: str
) -> None:
    request_id = MailboxAgent(shared_host.group("team")).ask()
    await shared_host.state(request_id, "open")

    reply = shared_host.http("POST", path.replace("ID", request_id), {name: ["1"]})

    assert reply.status == 422
    assert reply.body["error"].startswith(words)
    assert shared_host.question(request_id)["state"] == "open"


async def test_an_unknown_question_is_not_found(shared_host: Host) -> None:
    for target in ("nope", "..%2f..%2ftoken", "a" * 300):
        assert shared_host.http("GET", f"/api/questions/{target}").status == 404
        assert shared_host.answer(target, "1").status == 404


async def test_a_history_that_makes_no_sense_is_refused_in_words(shared_host: Host) -> None:
    limit = shared_host.http("GET", "/api/history?limit=abc")
    outcome = shared_host.http("GET", "/api/history?outcome=lost")
    too_many = shared_host.http("GET", "/api/history?limit=1000000")

    assert (limit.status, limit.body["error"]) == (400, "limit is a number from 1 to 1000")
    assert outcome.status == 400
    assert outcome.body["error"].startswith("outcome is one of answered, declined")
    assert too_many.status == 200


async def test_several_questions_are_answered_together_or_one_by_one(shared_host: Host) -> None:
    agent = MailboxAgent(shared_host.group("team"))
    questions = [
        {"question": "Deploy?", "options": ["Yes", "No"]},
        {"question": "Where?", "options": ["a", "b", "c"], "multiSelect": True},
        {"question": "Why?"},
    ]
    together = agent.ask(questions=questions)
    apart = agent.ask(questions=questions)
    for request_id in (together, apart):
        await shared_host.state(request_id, "open")

    assert shared_host.answer(together, "1", "a, 3", "because").status == 200
    for number, value in ((3, "no idea"), (1, "no")):
        body = {"values": [value], "question": number, "by": f"person {number}"}
        reply = shared_host.http("POST", f"/api/questions/{apart}/answer", body)
        assert reply.status == 202
        assert reply.body["state"] == "open"
    body = {"values": ["2"], "question": 2, "by": "person 2"}
    assert shared_host.http("POST", f"/api/questions/{apart}/answer", body).status == 200

    first, second = await agent.receive(together), await agent.receive(apart)
    assert [(a["selected"], a["text"]) for a in first["answers"]] == [
        (["Yes"], None),
        (["a", "c"], None),
        ([], "because"),
    ]
    assert [(a["selected"], a["text"]) for a in second["answers"]] == [
        (["No"], None),
        (["b"], None),
        ([], "no idea"),
    ]


@contextmanager
def event_stream(host: Host, last_id: int | None) -> Iterator[Iterator[Json]]:
    """Read the live stream, from after that event on."""
    address = urlsplit(host.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    headers = {"Authorization": f"Bearer {host.token()}"}
    if last_id is not None:
        headers["Last-Event-ID"] = str(last_id)
    connection.request("GET", "/api/events", headers=headers)
    reply = connection.getresponse()
    assert reply.status == 200

    def events() -> Iterator[Json]:
        while line := reply.readline():
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))

    try:
        yield events()
    finally:
        reply.close()
        connection.close()


async def test_the_event_stream_resumes_where_it_was_left_without_a_gap(host: Host) -> None:
    agent = MailboxAgent(host.group("team"))

    async def ask_and_answer() -> None:
        request_id = agent.ask()
        await host.listed()
        host.answer(request_id, "1")
        await agent.receive(request_id)
        await host.closed(request_id)

    seen: list[Json] = []

    def read_some(last_id: int | None, kind: str, wanted: int) -> None:
        """Read until so many events of that kind were seen in all."""
        with event_stream(host, last_id) as events:
            while [event["type"] for event in seen].count(kind) < wanted:
                seen.append(next(events))

    await ask_and_answer()
    await asyncio.to_thread(read_some, 0, "shown", 1)
    await ask_and_answer()
    reading = asyncio.create_task(asyncio.to_thread(read_some, seen[-1]["seq"], "closed", 3))
    await ask_and_answer()
    await reading
    await host.restart()
    await ask_and_answer()
    await asyncio.to_thread(read_some, seen[-1]["seq"], "closed", 4)

    assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))
    assert seen == host.events()[: len(seen)]


async def test_events_never_hold_what_was_answered(shared_host: Host) -> None:
    agent = MailboxAgent(shared_host.group("team"))
    request_id = agent.ask()
    await shared_host.state(request_id, "open")

    shared_host.answer(request_id, "the launch code is 0000")
    await agent.receive(request_id)
    await shared_host.closed(request_id)

    assert "launch code" not in json.dumps(shared_host.events())
    assert "launch code" not in shared_host.log.read_text()
    assert shared_host.token() not in shared_host.log.read_text()


async def test_a_second_host_on_the_same_folder_refuses_to_start(shared_host: Host) -> None:
    code, out, err = await shared_host.cli("serve", "--port", "0")

    assert code != 0
    assert out == ""
    assert "another pynchy host" in err
    assert "Traceback" not in err
    assert shared_host.http("GET", "/healthz").status == 200


async def test_doctor_judges_the_settings_that_serve_was_started_with(
    start_host: StartHost,
) -> None:
    host = await start_host('[groups.boxed]\nchannels = ["web"]\n')

    _, out, _ = await host.cli("doctor")

    assert f"the host runs with {host.data.parent / 'pynchy.toml'}" in out
    assert "group boxed: asks in web" in out


async def test_a_host_that_is_told_to_stop_ends_well_and_says_that_it_is_gone(host: Host) -> None:
    request_id = MailboxAgent(host.group("team")).ask()
    await host.listed()
    with event_stream(host, None):
        code = await host.stop()

    assert code == 0
    assert not (host.data / "host.json").exists()
    await host.start()
    assert host.question(request_id)["state"] == "open"
