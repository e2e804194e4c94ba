"""The routes of rules: which there are, what they say of a call, and revoking one."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pynchy import wire
from pynchy.calls import ToolCall
from pynchy.errors import UnknownGroup
from pynchy.http.bodies import Body, Name, json_response
from pynchy.http.context import HttpContext
from pynchy.misspelling import no_such_group
from pynchy.permissions.rules import describe
from pynchy.permissions.settings_rules import misspelt_tools
from pynchy.rule import Rule


class RevokeBody(Body):
    """Let a rule count no more."""


class TrialBody(Body):
    """A call that nobody makes, to hear what the rules would say of it."""

    group: Name
    tool: Name
    input: Annotated[dict[str, Any], Field(default={})]
    cwd: Annotated[str, Field(max_length=4_096)] = ""


def rule_routes(context: HttpContext) -> list[Route]:
    """Return the routes, for the application."""
    routes = _RuleRoutes(context)
    return [
        Route("/api/rules", routes.listed),
        Route("/api/rules/problems", routes.problems),
        Route("/api/rules/test", routes.test, methods=["POST"]),
        Route("/api/rules/{id:path}/revoke", routes.revoke, methods=["POST"]),
    ]


class _RuleRoutes:
    def __init__(self, context: HttpContext) -> None:
        self._context = context

    async def listed(self, request: Request) -> Response:
        rules = self._context.rules.rules(request.query_params.get("group") or None)
        # Patterns are parsed to be described, which is not for the loop.
        return json_response(await asyncio.to_thread(lambda: [_view(rule) for rule in rules]))

    async def problems(self, _request: Request) -> Response:
        """Say why no rule allows anything just now, if so, and what may be wrong in some."""
        settings = self._context.settings
        doubts = await asyncio.to_thread(lambda: [words for _, words in misspelt_tools(settings)])
        problem = await self._context.rules.look()
        return json_response({"problem": problem, "warnings": doubts})

    async def test(self, request: Request) -> Response:
        """Say what the rules would say of a call; nothing is counted."""
        body = TrialBody.model_validate_json(await request.body() or b"{}")
        if wire.depth_of(body.input) > wire.MAX_DEPTH:
            raise HTTPException(422, f"input: at most {wire.MAX_DEPTH} levels are taken")
        known = {*self._context.settings.groups, *await asyncio.to_thread(self._context.groups)}
        if body.group not in known:
            raise UnknownGroup(no_such_group(body.group, known))
        call = ToolCall("", body.tool, body.input, body.cwd)
        said = await self._context.rules.foresee(call, body.group, session_id="")
        return json_response(
            {
                "effect": said.effect,
                "because": said.because.describe(),
                "rules": [_view(rule) for rule in said.rules],
            }
        )

    async def revoke(self, request: Request) -> Response:
        body = RevokeBody.model_validate_json(await request.body() or b"{}")
        rule = await self._context.rules.revoke(request.path_params["id"], body.by)
        return json_response(_view(rule))


def _view(rule: Rule) -> dict[str, Any]:
    return {**wire.rule_view(rule), "covers": describe(rule.pattern, rule.effect)}
