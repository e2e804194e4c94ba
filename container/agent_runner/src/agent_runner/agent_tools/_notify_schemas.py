"""What the tools of the notify profile look like to a model: OpenFlow's arguments. Plain data."""

from agent_runner.agent_tools._schemas import CHECK_ANSWER

_LINE = {"type": "string"}
_NAMES = {"type": "array", "items": {"type": "string"}}
_COUNT = {"type": "integer", "minimum": 0}
_AGENT = {"type": "string", "description": "Your name."}
_TELLS = {"destructiveHint": False, "idempotentHint": False, "openWorldHint": True}

ASK_ON_DESKTOP = {
    "name": "ask_user",
    "title": "Ask a person",
    "description": (
        "Ask the person with a notification that has a button for each option. With"
        ' wait_for_response the call ends with {"response": "accepted", "choice": label} when a'
        ' button is pressed, {"response": "dismissed", "choice": null} when the person closes it,'
        ' and {"response": "timeout", "choice": null, "request_id": id} when nobody has reacted:'
        " check_answer with that id has the answer later. Without it, the call ends at once with"
        ' {"sent": true, "message": text, "request_id": id}. Only accepted is an answer: neither'
        " silence nor a closed notification is consent, also where implied_choice says which"
        " option closing stood for."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "What you need, in a few words."},
            "question": {
                "type": "string",
                "description": "The question. The person may know nothing of your work.",
            },
            "options": {
                **_NAMES,
                "description": "The choices, best two or three: each is a button.",
            },
            "urgency": {
                "type": "string",
                "enum": ["low", "normal", "high"],
                "default": "normal",
                "description": "high stays on the screen until it is answered.",
            },
            "repo": {"type": "string", "description": "The repository that this is about."},
            "branch": {"type": "string", "description": "The branch that you work on."},
            "agent": _AGENT,
            "task": {"type": "string", "description": "What you are working on."},
            "action_label": {
                "type": "string",
                "description": "What the first button says; else the first option, or OK.",
            },
            "wait_for_response": {
                "type": "boolean",
                "default": False,
                "description": "true: wait for the person, and return what they did.",
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "default": 60,
                "description": "Seconds to wait, with wait_for_response.",
            },
        },
        "required": ["title", "question"],
    },
    "annotations": {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    },
}

NOTIFY_COMMIT = {
    "name": "notify_commit",
    "title": "Tell of a commit",
    "description": "Tell the person that you have made a commit. Nobody is asked anything.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "branch": _LINE,
            "message": {"type": "string", "description": "The commit's first line."},
            "files": _NAMES,
            "hash": {"type": "string", "description": "The short hash."},
            "agent": _AGENT,
        },
        "required": ["branch", "message"],
    },
    "annotations": _TELLS,
}

NOTIFY_MERGE = {
    "name": "notify_merge",
    "title": "Tell of a merge",
    "description": "Tell the person that a branch was merged into main. Nobody is asked anything.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "source_branch": _LINE,
            "commits_count": _COUNT,
            "files_count": _COUNT,
            "version": {"type": "string", "description": "The version's tag, if there is one."},
            "repo": _LINE,
            "agent": _AGENT,
        },
        "required": ["source_branch"],
    },
    "annotations": _TELLS,
}

NOTIFY_SYNC = {
    "name": "notify_sync",
    "title": "Tell of synchronised worktrees",
    "description": "Tell the person that worktrees were synchronised. Nobody is asked anything.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "worktrees": _NAMES,
            "source": {"type": "string", "default": "main"},
            "repo": _LINE,
            "conflicts": _NAMES,
        },
        "required": ["worktrees"],
    },
    "annotations": _TELLS,
}

NOTIFY_TOOLS = (ASK_ON_DESKTOP, NOTIFY_COMMIT, NOTIFY_MERGE, NOTIFY_SYNC, CHECK_ANSWER)

INSTRUCTIONS = (
    "ask_user shows the person a question with buttons, and with wait_for_response returns what"
    " they did. notify_commit, notify_merge and notify_sync tell them what you have done. Silence"
    " and a closed notification are never consent."
)
