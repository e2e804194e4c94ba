"""What a host in trouble says, and that it is well again afterwards."""

from tests.acceptance.support import Host, Json, MailboxAgent
from tests.waiting import until


def problems(host: Host) -> list[str]:
    """Return what /healthz complains of."""
    reply = host.http("GET", "/healthz")
    assert reply.status == 200, reply
    assert (reply.body["status"] == "degraded") == bool(reply.body["problems"])
    listed: list[str] = reply.body["problems"]
    return listed


async def complains(host: Host, *words: str) -> str:
    """Wait until /healthz has a problem with all of the words, and return it."""

    def look() -> str | None:
        found = [text for text in problems(host) if all(word in text for word in words)]
        return found[0] if found else None

    found: str = await until(look, f"a problem with {words}")
    return found


async def doctor_says(host: Host, *words: str) -> None:
    """Check that `pynchy doctor` tells of a problem with all of the words, and fails."""
    code, out, err = await host.cli("doctor")
    assert code == 1, (out, err)
    lines = [line for line in out.splitlines() if all(word in line for word in words)]
    assert lines, (words, out)


async def is_well(host: Host) -> None:
    """Wait until the host has nothing to complain of."""
    await until(lambda: not problems(host), f"a host without problems: {problems(host)}")


def logged(host: Host, *words: str) -> bool:
    """Say whether a line of the log has all of the words."""
    return any(
        all(word in line for word in words)
        for line in host.log.read_text(errors="replace").splitlines()
    )


async def serves(host: Host, group: str = "afterwards") -> Json:
    """Check that a question is asked, answered and delivered live."""
    agent = MailboxAgent(host.group(group))
    request_id = agent.ask("Does it work again?")
    await host.state(request_id, "open")
    assert host.answer(request_id, "Yes").status == 200
    response = await agent.receive(request_id)
    assert response["answers"][0]["selected"] == ["Yes"]
    return await host.closed(request_id)
