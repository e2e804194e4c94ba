"""A scripted model on loopback, for whoever tests an agent program without an account.

    with ModelStandIn([[AskUser("Deploy?", "Yes", "No")], [Say("Done.")]]) as model:
        ... start the program with its base URL set to model.url ...
        model.requests[1].body      # what the program sent when it had the answer

It speaks the three dialects that agent programs use, told apart by the path: Anthropic's Messages,
OpenAI's Responses and OpenAI's chat completions, all streamed. It is as strict as the real ones
where programs go wrong: a request without a key, or with a tool call that has no result, gets
400 and is listed in `model.refused`.
"""

from tests.standins.models.script import (
    AskUser,
    BreakOff,
    CallTool,
    CheckAnswer,
    Part,
    Refuse,
    Say,
    Turn,
    load_script,
)
from tests.standins.models.server import Exchange, ModelStandIn

__all__ = [
    "AskUser",
    "BreakOff",
    "CallTool",
    "CheckAnswer",
    "Exchange",
    "ModelStandIn",
    "Part",
    "Refuse",
    "Say",
    "Turn",
    "load_script",
]
