"""Find settings that are each allowed, but not together.

Runs on settings that pydantic has accepted, so everything here has its proper type.
"""

from collections.abc import Collection, Iterable, Iterator
from urllib.parse import urlsplit

from pynchy.config.errors import Loc, SettingProblem, allowed, did_you_mean, dotted
from pynchy.config.models import ACP, KINDS, GroupSettings, LauncherSettings, Settings, either
from pynchy.config.values import is_loopback


def contradictions(settings: Settings, known: Collection[str]) -> list[SettingProblem]:
    """Return everything that does not fit together."""
    return [
        *_clocks(settings),
        *_routes(settings, known),
        *_sources(settings),
        *(f for name, group in settings.groups.items() for f in _launcher(name, group.launcher)),
        *(f for name, group in settings.groups.items() for f in _waiting(name, group)),
        *(f for name, group in settings.groups.items() for f in _approvers(name, group)),
    ]


def _clocks(settings: Settings) -> Iterator[SettingProblem]:
    if settings.answer_ttl < settings.wait_timeout:
        written = "answer_ttl" in settings.model_fields_set
        yield SettingProblem(
            loc=("answer_ttl" if written else "wait_timeout",),
            message="answer_ttl is shorter than wait_timeout: "
            "the question would expire while the agent still waits for its answer",
            notes=("allowed: an answer_ttl that is as long as wait_timeout, or longer",),
        )


def _routes(settings: Settings, known: Collection[str]) -> Iterator[SettingProblem]:
    for loc, channel, at_key in _named_channels(settings):
        if channel not in settings.channels:
            field = loc[:-1]
            yield SettingProblem(
                loc=loc,
                message=f"{dotted(field)} names a channel that is not configured",
                notes=_advice(channel, settings.channels, known),
                at_key=at_key,
                channel=channel,
            )


def _sources(settings: Settings) -> Iterator[SettingProblem]:
    sources = settings.sources
    tables = {"codex": sources.codex, "opencode": sources.opencode, "phux": sources.phux}
    for name, table in tables.items():
        if table is not None and table.group not in settings.groups:
            yield SettingProblem(
                loc=("sources", name, "group"),
                message=f'sources.{name}.group names a group that has no table: "{table.group}"',
                notes=(
                    *did_you_mean(table.group, settings.groups),
                    f"add its table: [groups.{table.group}]",
                ),
            )
    opencode = settings.sources.opencode
    if opencode is not None and not opencode.urls and not opencode.discover:
        yield SettingProblem(
            loc=("sources", "opencode", "discover"),
            message="sources.opencode follows no server: urls is empty, and discover is false",
            notes=('name servers, such as urls = ["http://127.0.0.1:4096"]',),
        )
    for url in opencode.urls if opencode is not None else ():
        if url.startswith("http://") and not is_loopback(urlsplit(url).hostname or ""):
            yield SettingProblem(
                loc=("sources", "opencode", "urls"),
                message=f"sources.opencode.urls: {url} is on another machine, so it must be https",
                notes=("answers and the password would cross the network readable for others",),
            )


def _launcher(group: str, launcher: LauncherSettings | None) -> Iterator[SettingProblem]:
    if launcher is None:
        return
    table = ("groups", group, "launcher")
    yield from _foreign(table, launcher)
    needed = KINDS[launcher.kind][0]
    if not getattr(launcher, needed):
        told = LauncherSettings.model_fields[needed].description
        yield SettingProblem(
            loc=table,
            message=f'[{dotted(table)}] needs "{needed}"',
            notes=(f"{needed} must be {told}",),
            at_key=True,
        )
    if launcher.agent == ACP and not launcher.acp_command:
        told = LauncherSettings.model_fields["acp_command"].description
        yield SettingProblem(
            loc=(*table, "agent"),
            message=f'agent = "{ACP}" needs "acp_command", the program that speaks ACP',
            notes=(f"acp_command must be {told}",),
        )
    yield from _network(table, launcher)


def _foreign(table: Loc, launcher: LauncherSettings) -> Iterator[SettingProblem]:
    """Find the settings that belong to other kinds of launcher."""
    for name in sorted(launcher.model_fields_set):
        kinds = [kind for kind, names in KINDS.items() if name in names]
        if kinds and launcher.kind not in kinds:
            where = either(kinds)
            yield SettingProblem(
                loc=(*table, name),
                message=f"{dotted((*table, name))} is only for kind = {where}",
                notes=(f"add kind = {where}, or remove {name}", *_instead(name, launcher)),
                at_key=True,
            )


def _instead(name: str, launcher: LauncherSettings) -> tuple[str, ...]:
    is_place = name == "cwd" and launcher.is_box
    return ("a box has a workspace in its place",) if is_place else ()


def _network(table: Loc, launcher: LauncherSettings) -> Iterator[SettingProblem]:
    if launcher.network == "bridge" and launcher.kind == "bubblewrap":
        yield SettingProblem(
            loc=(*table, "network"),
            message=f'{dotted((*table, "network"))} = "bridge" is only for kind = "docker"',
            notes=('allowed: "none", "proxy" or "host"',),
        )
    if (launcher.network == "proxy") != (launcher.proxy is not None):
        yield SettingProblem(
            loc=(*table, "network" if launcher.proxy is None else "proxy"),
            message=f'{dotted(table)}: network = "proxy" and a proxy go together',
            notes=('such as network = "proxy" with proxy = "127.0.0.1:8080"',),
            at_key=True,
        )


def _waiting(name: str, group: GroupSettings) -> Iterator[SettingProblem]:
    """Find ways to ask and to wait that the group's agent, or its launcher, does not have."""
    table, agent = ("groups", name), group.launcher.agent if group.launcher else None
    chosen = {"wait": group.wait == "park", "ask_with": group.ask_with == "AskUserQuestion"}
    for setting in [setting for setting, is_chosen in chosen.items() if is_chosen]:
        value = getattr(group, setting)
        if agent not in {None, "claude"}:
            yield SettingProblem(
                loc=(*table, setting),
                message=f'{setting} = "{value}" is only for agent = "claude"',
                notes=(f"{agent} cannot: remove {setting}",),
            )
    if group.wait == "park" and group.launcher is None:
        yield SettingProblem(
            loc=(*table, "wait"),
            message='wait = "park" needs a launcher: nothing could resume a parked agent',
            notes=(f"add [groups.{name}.launcher], or remove wait",),
        )
    if group.desk_answers and group.launcher is not None and group.launcher.is_box:
        yield SettingProblem(
            loc=(*table, "desk_answers"),
            message="desk_answers is not for an agent in a box",
            notes=(
                "what is answered at its terminal would come through the agent's own hands",
                f'remove desk_answers, or kind = "{group.launcher.kind}"',
            ),
        )


def _approvers(name: str, group: GroupSettings) -> Iterator[SettingProblem]:
    """Find approvers who may not answer at all."""
    for channel, people in group.approvers.items():
        listed = group.allowed_users.get(channel, ())
        for index, person in enumerate(people):
            if person not in listed:
                yield SettingProblem(
                    loc=("groups", name, "approvers", channel, index),
                    message=f'approvers names "{person}", who is not in allowed_users.{channel}',
                    notes=(*did_you_mean(person, listed), "who may approve must be able to answer"),
                )


def _named_channels(settings: Settings) -> Iterator[tuple[Loc, str, bool]]:
    for name, group in settings.groups.items():
        for index, channel in enumerate(group.channels):
            yield ("groups", name, "channels", index), channel, False
        for channel in group.allowed_users:
            yield ("groups", name, "allowed_users", channel), channel, True
        for channel in group.approvers:
            yield ("groups", name, "approvers", channel), channel, True
        for channel in group.chat:
            yield ("groups", name, "chat", channel), channel, True


def _advice(channel: str, configured: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    if channel in known:
        return (f"add its table: [channels.{channel}]", allowed(configured))
    meant = did_you_mean(channel, {*configured, *known})
    # One that is meant and not configured yet is of no use without its table.
    missing = [name for name in {*known} - {*configured} if any(f'"{name}"' in m for m in meant)]
    tables = (f"and add its table: [channels.{name}]" for name in missing)
    return (*meant, *tables, allowed(configured))
