"""The routes of groups, which there are and removing one, and of the rules that they have.

A removed group loses its mailbox. What it asked stays in history, and in the event log.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pynchy import wire
from pynchy.calls import ToolCall
from pynchy.config import LOCAL
from pynchy.errors import (
    AlreadyOver,
    GroupKept,
    NotUndelivered,
    UnknownGroup,
    UnknownQuestion,
)
from pynchy.events import Event, EventKind
from pynchy.http.bodies import Body, Name, json_response
from pynchy.http.context import HttpContext
from pynchy.misspelling import no_such_group, similar_group
from pynchy.model import GroupName, PendingQuestion, Reply, State
from pynchy.permissions.origins import misspelt_tools
from pynchy.permissions.rules import describe
from pynchy.rule import Rule
from pynchy.session import SessionState

_REASON = "its group was removed"
_SETTLE_SECONDS = 10.0


class RemoveBody(Body):
    """Remove a group; by force, what it still asks is declined first."""

    force: bool = False


def group_routes(context: HttpContext) -> list[Route]:
    """Return the routes, for the application."""
    routes = _GroupRoutes(context)
    return [
        Route("/api/groups", routes.listed),
        Route("/api/groups/{name}/remove", routes.remove, methods=["POST"]),
    ]


class _GroupRoutes:
    def __init__(self, context: HttpContext) -> None:
        self._context = context

    async def listed(self, _request: Request) -> Response:
        joined = set(await asyncio.to_thread(self._context.groups))
        names = sorted({*self._context.settings.groups, *joined})
        known = self._context.session_context.tracker.sessions()
        sessions = Counter(s.group for s in known if s.state is not SessionState.ENDED)
        near = await asyncio.to_thread(self._near, names)
        return json_response(
            [
                {
                    **self._view(GroupName(name), sessions),
                    "did_you_mean": near[name],
                    "has_mailbox": name in joined,
                }
                for name in names
            ]
        )

    def _near(self, names: list[str]) -> dict[str, str | None]:
        """Return which group of the settings each may be meant for. It takes its time."""
        return {name: similar_group(name, self._context.settings.groups) for name in names}

    def _view(self, name: GroupName, sessions: Counter[GroupName]) -> dict[str, Any]:
        settings = self._context.settings
        group, asked = settings.group(name), self._open(name)
        return {
            "name": name,
            "in_settings": name in settings.groups,
            "channels": list(group.channels),
            "chat": dict(group.chat),
            "waiting": sum(p.state.waits_for_person for p in asked),
            "undelivered": sum(p.state is State.UNDELIVERED for p in asked),
            "sessions": sessions[name],
        }

    async def remove(self, request: Request) -> Response:
        body = RemoveBody.model_validate_json(await request.body() or b"{}")
        name = await self._removable(request.path_params["name"])
        declined = 0
        if body.force:
            declined = await self._decline_all(name, body.by)
        else:
            await self._check_idle(name)
        dismissed = await self._settle(name, body.by)
        # A group that joins under the name again must not be trusted as this one was.
        removed = await self._context.rules.forget_group(
            name, body.by, lambda: self._context.remove_group(name)
        )
        if not removed:
            raise GroupKept(f"group {name} is still there: it has just asked something")
        ledger = self._context.ledger
        ledger.publish(Event(EventKind.GROUP_REMOVED, ledger.now(), name, by=body.by))
        return json_response({"name": name, "declined": declined, "dismissed": dismissed})

    async def _removable(self, name: str) -> GroupName:
        """Return the group. Raise UnknownGroup, or GroupKept if the settings have it."""
        settings = self._context.settings.groups
        if name in settings:
            raise GroupKept(
                f"group {name} is in the settings: take [groups.{name}] out of the file, restart "
                "pynchy serve, and remove the group then"
            )
        joined = await asyncio.to_thread(self._context.groups)
        if name not in joined:
            raise UnknownGroup(no_such_group(name, joined))
        return GroupName(name)

    async def _check_idle(self, name: GroupName) -> None:
        """Raise GroupKept if somebody still waits for an answer, or works."""
        asked = self._undelivered(name)
        waiting = sum(p.state.waits_for_person for p in asked)
        busy = [f"{waiting} open question(s)"] if waiting else []
        if len(asked) > waiting:
            busy.append(f"{len(asked) - waiting} answer(s) that have not arrived")
        live = await self._context.live_runners()
        if here := sum(runner.group == name for runner in live):
            busy.append(f"{here} agent(s) connected or at work")
        if busy:
            raise GroupKept(
                f"group {name} has {', '.join(busy)}; see pynchy pending and pynchy sessions. "
                "--force declines what is open, dismisses what did not arrive, and removes it"
            )

    async def _decline_all(self, name: GroupName, by: str) -> int:
        """Decline what waits for a person. Return how many questions that were."""
        declined = 0
        for pending in [p for p in self._open(name) if p.ending is None]:
            with suppress(AlreadyOver):  # somebody else was first
                reply = Reply(pending.request_id, by, LOCAL, group=name)
                await self._context.answers.decline(reply, _REASON)
                declined += 1
        return declined

    async def _settle(self, name: GroupName, by: str) -> int:
        """Wait until no answer is on its way to the group, and dismiss what nobody takes.

        Return how many answers were dismissed. Raise GroupKept if an agent still has to take one.
        Cards that do not show yet how it ended are seen to without the group.
        """
        ledger, loop, dismissed = self._context.ledger, asyncio.get_running_loop(), 0
        grace = self._context.settings.receipt_grace.total_seconds()
        until = loop.time() + grace + _SETTLE_SECONDS
        while asked := self._undelivered(name):
            pending = asked[0]
            version = ledger.version(pending.key)
            if loop.time() > until:
                raise GroupKept(
                    f"group {name} is still there: an answer is on its way to its agent "
                    f"({pending.short_id}); end the agent, and try again"
                )
            if pending.state is State.UNDELIVERED:
                with suppress(NotUndelivered, UnknownQuestion):  # it is going just now
                    await self._context.delivery.dismiss(pending, by)
                    dismissed += 1
            else:
                await ledger.changed(pending.key, version, 1.0)
        return dismissed

    def _open(self, name: GroupName) -> list[PendingQuestion]:
        return self._context.ledger.index.in_group(name)

    def _undelivered(self, name: GroupName) -> list[PendingQuestion]:
        """Return what waits for a person, or on its way back to an agent."""
        return [p for p in self._open(name) if p.delivered is None]


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
    covered = describe(rule.pattern, rule.effect, rule.origin)
    return {**wire.rule_view(rule), "covers": covered}
