"""Each program in a bubblewrap box that lets it reach its model, and nothing else."""

from urllib.parse import urlsplit

from tests.agents.support import GROUP, Stage
from tests.agents.test_agents import ASK, DONE, PROMPT, QUESTION


async def test_a_boxed_agent_asks_is_killed_and_comes_back_in_a_box_with_the_answer(
    stage: Stage,
) -> None:
    stage.launcher = {
        "kind": "bubblewrap",
        "home": str(stage.home),
        "workspace": str(stage.work),
        "read": [str(stage.program.bin.parents[1])],
        "network": "proxy",
        "proxy": urlsplit(stage.model.url).netloc,
    }
    await stage.open([ASK], DONE)
    code, out, err = await stage.host.cli("run", GROUP, PROMPT)
    assert code == 0, err
    [question] = await stage.asked()
    await stage.resumable()

    stage.kill_agents()
    stage.host.answer(question["short_id"], "2")
    first, second = await stage.requests(2)
    ended = await stage.session(out.strip(), "ended")

    assert PROMPT in first.text
    assert QUESTION in second.text
    assert "Staff" in second.text
    assert not ended["failed"], stage.logs()
    assert (await stage.host.closed(question["request_id"]))["delivered"] == "late"
