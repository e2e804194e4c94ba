"""A host that may open no more files: it says so a few times, and goes on when it can."""

import resource
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

from tests.acceptance.conftest import StartHost
from tests.acceptance.support import Host, MailboxAgent
from tests.waiting import until

# Fewer than any process holds open: nothing more can be opened.
NO_MORE = 3
MANY = 100
REFUSED = "socket.accept() out of system resource"


def limit(host: Host, soft: int) -> int:
    """Let the host have so many descriptors at most. Return how many it could have before."""
    assert host.process is not None
    before, hard = resource.prlimit(host.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(host.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
    return before


async def test_a_host_without_descriptors_does_not_flood_its_log_with_tracebacks(
    start_host: StartHost,
) -> None:
    host = await start_host()
    agent = MailboxAgent(host.group("team"))
    await host.state(agent.ask("Are you there?"), "open")
    address = urlsplit(host.url)
    usual = limit(host, NO_MORE)

    with ExitStack() as stack:
        for _ in range(MANY):
            where = (address.hostname or "", address.port or 0)
            stack.enter_context(socket.create_connection(where))
            agent.ask("And now?")
        # It tries to take them in once a second, and tells it five times a minute.
        await until(lambda: host.log.read_text().count(REFUSED) >= 5, "five refusals")
        told = host.log.read_text()
        limit(host, usual)

    assert told.count("Traceback (most recent call last)") <= 20
    assert len(told.splitlines()) < 500
    assert "Too many open files" in told
    await host.listed(MANY + 1, "team")
