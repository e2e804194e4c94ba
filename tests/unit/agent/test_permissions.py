"""What becomes of a permission between the program that waits for it and the mailbox."""

import queue
import shutil

from tests.unit.agent.conftest import Mailbox
from tests.waiting import DEADLINE_SECONDS

from agent_runner import asking
from agent_runner.cores.base import PermissionWanted
from agent_runner.permissions import PermissionAsker, RunningAgent


def test_a_yes_is_told_once_where_it_cannot_be_written_down_that_it_was(mailbox: Mailbox) -> None:
    given = {"command": "ls"}
    yes = {"question": "", "selected": ["Allow once"], "values": ["approve"], "text": None}
    request_id = asking.request_id_of("s1", "/permission/c1", given)
    mailbox.respond(request_id, answers=[yes])
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    told: list[str] = []

    def send(text: str) -> bool:
        shutil.rmtree(mailbox.tasks)
        told.append(text)
        return True

    agent = RunningAgent("claude", "s1", "dev", "", "lease")
    asker = PermissionAsker(asking.Mailbox.open(mailbox.path), agent, said.put)
    wanted = PermissionWanted("q1", "c1", "Bash", given, lambda verdict: str(verdict.is_allowed))
    asker.ask(wanted, send)

    assert "cannot be written down" in said.get(timeout=DEADLINE_SECONDS)
    assert told == ["True"]
