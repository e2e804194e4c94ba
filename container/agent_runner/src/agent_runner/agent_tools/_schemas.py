"""What the tools look like to a model. Plain data: nothing here is decided at run time."""

_OPTION = {
    "type": "object",
    "properties": {
        "label": {"type": "string", "description": "What the person picks; 1-5 words, unique."},
        "description": {"type": "string", "description": "What picking this means or leads to."},
        "preview": {
            "type": "string",
            "description": "Longer text to compare options by, such as a diff or a snippet.",
        },
    },
    "required": ["label"],
}

_QUESTION = {
    "type": "object",
    "properties": {
        "question": {
            "type": "string",
            "description": "The full question. The person may know nothing of your work: name the"
            " thing, the place and what depends on the answer.",
        },
        "header": {"type": "string", "description": "A very short label, such as 'Database'."},
        "options": {
            "type": "array",
            "description": "The choices. Leave out for a free-text answer; the person can"
            " write something else unless options_only is set, so add no 'Other'.",
            "items": {"anyOf": [_OPTION, {"type": "string"}]},
        },
        "multiSelect": {
            "type": "boolean",
            "default": False,
            "description": "Whether several options may be picked.",
        },
        "options_only": {
            "type": "boolean",
            "default": False,
            "description": "true: only an option is an answer, and the person cannot write"
            " something else. Needs options. Set it only where nothing else could be meant, such as"
            " a yes or no that a program acts on.",
        },
        "default": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "What to go on with if nobody answers in time: a label, a text or"
            " (multiSelect) a list of labels. Set it only for what is safe without a person.",
        },
    },
    "required": ["question"],
}

_REQUEST_ID = {
    "type": "string",
    "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
    "description": "The id that ask_user or request_approval returned.",
}

# What every call that asks a person can say of itself.
_ABOUT_CALL = {
    "task": {
        "type": "string",
        "description": "What you are working on, in a few words; shown to the person.",
    },
    "urgency": {
        "type": "string",
        "enum": ["low", "normal", "high"],
        "default": "normal",
        "description": "high only if work or a service stands still until the answer.",
    },
    "timeout": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Seconds to wait; usually 1800 if left out. People take minutes.",
    },
    "wait_for_response": {
        "type": "boolean",
        "default": True,
        "description": "false: ask, return the request_id at once and do other work.",
    },
}

ASK_USER = {
    "name": "ask_user",
    "title": "Ask a person",
    "description": (
        "Ask the person responsible, in the chat that they have open, and wait for the answer."
        " Use it when a human decision is needed: something irreversible or costly, a choice of"
        " taste or policy, missing access or facts that you cannot find out. Do not use it for"
        " what you can look up or safely try.\n\n"
        "The call blocks until someone answers or `timeout` is over. A timeout does not end the"
        " question: you get its request_id, and the answer comes with a later tool result, by"
        " check_answer, or to this session when it is resumed. Silence is not consent: do not go"
        " on as if the answer were yes. A default is used only if every question has one, and you"
        " are told that nobody answered.\n\n"
        "Put questions that belong together into one call; independent ones may be asked in"
        " parallel calls."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": _QUESTION,
                "description": "One to four questions, shown and answered together.",
            },
            "title": {"type": "string", "description": "A line above the questions."},
            **_ABOUT_CALL,
        },
        "required": ["questions"],
    },
    "annotations": {
        # Asking changes nothing, and clients run calls at the same time only where that is so.
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    },
}

REQUEST_APPROVAL = {
    "name": "request_approval",
    "title": "Ask for an approval",
    "description": (
        "Ask a person to approve one thing before you do it, and wait for their yes or no. Use it"
        " before what cannot be undone, costs money, or reaches other people: a deploy, a"
        " deletion, a message in somebody's name. Use ask_user where there is more to choose than"
        " yes or no.\n\n"
        "Do it only if the result says that it is approved, and only what you described: for"
        " anything else ask again. The person may add words, which you must follow. The call"
        " blocks until someone decides or `timeout` is over. A timeout does not end the request:"
        " you get its request_id, and the decision comes with a later tool result, by"
        " check_answer, or to this session when it is resumed. Silence is not consent, and there"
        " is no default."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "description": "What you want to do, in one sentence that names the thing and the"
                " place, such as 'Deploy 2.1 to production?'.",
            },
            "details": {
                "type": "string",
                "description": "What the person needs to know to decide: why, what it changes, how"
                " it could be undone. The person may know nothing of your work.",
            },
            "preview": {
                "type": "string",
                "description": "Exactly what would be done, such as a diff, a command or the text"
                " of a message; shown as it is.",
            },
            "risk": {
                "type": "string",
                "enum": ["low", "medium", "high"],
                "description": "How bad it would be if it went wrong.",
            },
            **_ABOUT_CALL,
        },
        "required": ["action"],
    },
    "annotations": ASK_USER["annotations"],
}

CHECK_ANSWER = {
    "name": "check_answer",
    "title": "Look for an answer",
    "description": (
        "Take up a question again that ask_user or request_approval left open: returns the answer"
        " if it has come, else says that the question is still open."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "request_id": _REQUEST_ID,
            "timeout": {
                "type": "number",
                "minimum": 0,
                "default": 0,
                "description": "Seconds to wait for the answer if it is not there yet.",
            },
        },
        "required": ["request_id"],
    },
    "annotations": {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": True,
    },
}

WITHDRAW_QUESTION = {
    "name": "withdraw_question",
    "title": "Withdraw a question",
    "description": (
        "Take back a question whose answer you no longer need, so that nobody spends time on it."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {"request_id": _REQUEST_ID},
        "required": ["request_id"],
    },
    "annotations": {"destructiveHint": False, "idempotentHint": True, "openWorldHint": True},
}

PERMISSIONS = {
    "name": "permissions",
    "title": "Ask for a permission",
    "description": "For the agent program alone: asks a person for a permission.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}

TOOLS = (ASK_USER, CHECK_ANSWER, WITHDRAW_QUESTION, REQUEST_APPROVAL)

INSTRUCTIONS = (
    "ask_user puts a question to the person responsible for this work and waits for the answer;"
    " request_approval asks them to approve one thing before you do it."
    " Nobody watches this session: what you only write into the conversation is not seen."
    " Silence is never consent."
)
