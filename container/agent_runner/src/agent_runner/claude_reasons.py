"""Why Claude Code stopped at a call, as it says itself: for its core, and for the host's hook.

It is text from the agent's side: bounded here, and only ever shown. What is not understood is shown
as it came.
"""

import json

from agent_runner.asking import WhyAsked
from agent_runner.asking.wire import whole
from agent_runner.cores.base import Fields, items_of, text_of

LONGEST = 300
MAX_SUGGESTIONS = 5
_RULES = frozenset({"addRules", "replaceRules"})


def read_why(told: Fields) -> WhyAsked | None:
    """Return why, from its request for a permission or the payload of its hook; None: not told."""
    suggested = [text for one in items_of(told, "permission_suggestions") for text in _said(one)]
    if len(suggested) > MAX_SUGGESTIONS:
        left = len(suggested) - MAX_SUGGESTIONS + 1
        suggested = [*suggested[: MAX_SUGGESTIONS - 1], f"and {left} more"]
    why = WhyAsked(
        _cut(text_of(told, "decision_reason")),
        _cut(text_of(told, "blocked_path")),
        tuple(_cut(text) for text in suggested),
    )
    return None if why == WhyAsked() else why


def _said(suggestion: Fields) -> list[str]:
    """Return what it suggests to allow, each as people write it."""
    kind, behaviour = text_of(suggestion, "type"), text_of(suggestion, "behavior")
    folders = suggestion.get("directories")
    if kind in _RULES and behaviour == "allow":
        return [_pattern(rule) for rule in items_of(suggestion, "rules")]
    if kind == "addDirectories" and isinstance(folders, list):
        return [f"the folder {folder}" for folder in folders if isinstance(folder, str)]
    if kind == "setMode" and text_of(suggestion, "mode"):
        return [f"its mode {text_of(suggestion, 'mode')}"]
    return [json.dumps(suggestion, ensure_ascii=False)]


def _pattern(rule: Fields) -> str:
    tool, content = text_of(rule, "toolName"), text_of(rule, "ruleContent")
    return f"{tool}({content})" if content else tool


def _cut(text: str) -> str:
    shown = whole(text).strip()
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
