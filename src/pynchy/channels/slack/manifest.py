"""What the Slack app must be allowed to do, as a manifest that Slack makes the app from."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

SCOPES = (
    "channels:history",
    "channels:read",
    "chat:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:write",
    "reactions:write",
    "users:read",
)
# Not app_mention: it would tell of the same message a second time.
EVENTS = ("message.channels", "message.groups", "message.im")
_NEW_APP = "https://api.slack.com/apps?new_app=1&manifest_json="


def manifest(request_url: str | None = None) -> dict[str, Any]:
    """Return the app's manifest: for Socket Mode, or for that public address."""
    url = {"request_url": request_url} if request_url else {}
    return {
        "display_information": {
            "name": "pynchy",
            "description": "Carries questions from AI agents to people, and the answers back.",
        },
        "features": {"bot_user": {"display_name": "pynchy", "always_online": True}},
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {**url, "bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True, **url},
            "org_deploy_enabled": False,
            "socket_mode_enabled": request_url is None,
            "token_rotation_enabled": False,
        },
    }


def new_app_link(made: dict[str, Any]) -> str:
    """Return the address that opens Slack's page for a new app with the manifest filled in."""
    return _NEW_APP + quote(json.dumps(made, separators=(",", ":")), safe="")
