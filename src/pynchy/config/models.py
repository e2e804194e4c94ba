"""The settings, as the rest of pynchy sees them.

Every setting has a default, so `Settings()` is what runs without a file. A field's description
is the phrase after "must be" in an error.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SerializeAsAny, field_validator

from pynchy.config.channels import (
    LOCAL,
    WEB,
    ChannelSettings,
    LocalChannelSettings,
    Table,
    WebChannelSettings,
)
from pynchy.config.values import (
    AGENTS,
    AgentName,
    Argument,
    ChannelNames,
    Count,
    Duration,
    FolderPath,
    GroupKey,
    Image,
    PerSecond,
    Port,
    PositiveDuration,
    ProxyAddress,
    ServerAddress,
    Size,
    Template,
    UserId,
    Variable,
    fill,
)

ACP = "acp"
_AGENT = ("agent", "runner", "args", "acp_command")
_BOX = (
    *("home", "workspace", "read", "write", "pass_env"),
    *("network", "proxy", "memory", "pids", "disk"),
)
# The settings that not every kind of launcher has, the one that it needs first.
KINDS: dict[str, tuple[str, ...]] = {
    "command": ("command", "cwd"),
    "process": (*_AGENT, "cwd"),
    "bubblewrap": (*_AGENT, *_BOX, "hide", "unix_sockets", "user_namespaces"),
    "docker": (*_AGENT, *_BOX, "image", "engine", "options"),
}
# The kinds that put the agent into a box of its own.
BOXES = ("bubblewrap", "docker")


def either(words: Sequence[str]) -> str:
    """Return `"a", "b" or "c"`."""
    *others, last = (f'"{word}"' for word in words)
    return f"{', '.join(others)} or {last}" if others else last


_A_FOLDER = 'an absolute path, such as "/srv/agent" or "~/agent"'
_FOLDERS = 'a list of absolute paths, such as ["/srv/data", "~/tools"]'


class RetentionSettings(Table):
    """How long, and up to what size, things that are over are kept."""

    history: PositiveDuration = timedelta(days=30)
    history_size: Size = 256 * 1024**2
    responses: PositiveDuration = timedelta(days=7)
    rejected: PositiveDuration = timedelta(days=7)
    rejected_files: Count = 200
    sessions: Count = 200
    audit_size: Size = 16 * 1024**2
    audit_files: Count = 8


class HttpSettings(Table):
    """Where the host listens, and under which names it may be called."""

    host: str = Field(
        default="127.0.0.1", min_length=1, description='an address, such as "127.0.0.1"'
    )
    port: Port = 8765
    allowed_hosts: tuple[str, ...] = Field(
        default=(), description='a list of host names, such as ["pynchy.example.org"]'
    )
    public_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s/?#@]+)?$",
        description='an address without a path, such as "https://pynchy.example.org"',
    )


class LauncherSettings(Table):
    """How an agent is started, and resumed when its process has ended.

    `checks` sees to it that a launcher has what its kind needs, and nothing of another kind.
    """

    kind: Literal["command", "process", "bubblewrap", "docker"] = Field(
        default="command", description=either(tuple(KINDS))
    )
    command: tuple[Template, ...] = Field(
        default=(),
        min_length=1,
        description='a list of strings that is not empty, such as ["agent", "{initial}"]',
    )
    agent: AgentName | None = Field(default=None, description=either(AGENTS))
    runner: Argument = Field(
        default="agent_runner", min_length=1, description='a program, such as "/opt/agent_runner"'
    )
    args: tuple[Argument, ...] = Field(
        default=(), description='a list of strings, such as ["--", "--model", "opus"]'
    )
    acp_command: tuple[Argument, ...] = Field(
        default=(),
        min_length=1,
        description='a list of strings that is not empty, such as ["gemini", "--acp"]',
    )
    env: dict[Variable, Argument] = Field(
        default={}, description='a table of strings, such as { LANG = "C.UTF-8" }'
    )
    cwd: FolderPath | None = Field(default=None, description=_A_FOLDER)
    home: FolderPath | None = Field(default=None, description=_A_FOLDER)
    workspace: FolderPath | None = Field(default=None, description=_A_FOLDER)
    read: tuple[FolderPath, ...] = Field(default=(), description=_FOLDERS)
    write: tuple[FolderPath, ...] = Field(default=(), description=_FOLDERS)
    hide: tuple[FolderPath, ...] = Field(default=(), description=_FOLDERS)
    pass_env: tuple[Variable, ...] = Field(
        default=(), description='a list of variables, such as ["ANTHROPIC_API_KEY"]'
    )
    network: Literal["none", "proxy", "bridge", "host"] = Field(
        default="none", description='"none", "proxy", "bridge" or "host"'
    )
    proxy: ProxyAddress | None = Field(
        default=None,
        description='an address with a port from 1024 on, such as "127.0.0.1:8080"',
    )
    unix_sockets: bool = Field(default=False, strict=True, description="true or false")
    user_namespaces: bool = Field(default=False, strict=True, description="true or false")
    memory: Size = 4 * 1024**3
    pids: Count = 1024
    disk: Size = 10 * 1024**3
    image: Image = Field(
        default="pynchy-agent", description='the name of an image, such as "pynchy-agent"'
    )
    engine: Literal["docker", "podman"] = Field(
        default="docker", description='"docker" or "podman"'
    )
    options: tuple[Argument, ...] = Field(
        default=(), description='a list of strings, such as ["--cpus", "2"]'
    )
    timeout: PositiveDuration = timedelta(hours=2)
    term_grace: Duration = timedelta(seconds=10)
    max_runners: Count = 8
    attempts: Count = 5
    backoff: Duration = timedelta(seconds=10)

    def argv(self, values: Mapping[str, str]) -> list[str]:
        """Return the command with every placeholder filled in."""
        return [fill(part, values) for part in self.command]

    def runner_args(self, agent: str) -> list[str]:
        """Return what the runner of that agent is told besides; ACP's has the program there too."""
        if agent != ACP:
            return [*self.args]
        at = self.args.index("--") if "--" in self.args else len(self.args)
        return [*self.args[:at], "--", *self.acp_command, *self.args[at + 1 :]]

    @property
    def is_box(self) -> bool:
        """True if the agent is put into a box."""
        return self.kind in BOXES

    @property
    def has_unix_sockets(self) -> bool:
        """True if programs in a box may make Unix sockets, and reach those that they see."""
        return self.unix_sockets or self.network == "host"

    def places(self, data: Path, group: str, environ: Mapping[str, str]) -> tuple[str, str]:
        """Return the HOME and the folder that a new session works in."""
        if self.is_box:
            own = data / "boxes" / group
            return str(self.home or own / "home"), str(self.workspace or own / "workspace")
        home = self.env.get("HOME", environ.get("HOME", ""))
        return home, str(self.cwd or Path.cwd())


_PATTERNS = 'a list of patterns, such as ["Bash(git status *)", "Edit(src/**)"]'


class PermissionSettings(Table):
    """What the group's agents may do without a question, what is asked each time, what never.

    What the patterns mean is checked where they are known, in `permissions`.
    """

    allow: tuple[str, ...] = Field(default=(), description=_PATTERNS)
    ask: tuple[str, ...] = Field(default=(), description=_PATTERNS)
    deny: tuple[str, ...] = Field(default=(), description=_PATTERNS)
    rule_ttl: PositiveDuration = timedelta(days=30)


class GroupSettings(Table):
    """Where a group's questions go, who may answer them, and how its agent is resumed."""

    channels: ChannelNames = (LOCAL,)
    allowed_users: dict[str, tuple[str, ...]] = Field(
        default={}, description='a list of user ids per channel, such as { local = ["ana"] }'
    )
    approvers: dict[str, tuple[str, ...]] = Field(
        default={}, description='a list of user ids per channel, such as { slack = ["U0123"] }'
    )
    approvals_needed: Count = 1
    chat: dict[str, str] = Field(
        default={}, description='one address per channel, such as { local = "here" }'
    )
    self_chat: bool = Field(default=False, strict=True, description="true or false")
    agent_uid: UserId | None = Field(default=None, description="a user's number, such as 1000")
    wait: Literal["block", "park"] = Field(default="block", description='"block" or "park"')
    park_after: PositiveDuration = timedelta(seconds=20)
    ask_with: Literal["ask_user", "AskUserQuestion"] = Field(
        default="ask_user", description='"ask_user" or "AskUserQuestion"'
    )
    desk_answers: bool = Field(default=False, strict=True, description="true or false")
    permissions: PermissionSettings = Field(
        default=PermissionSettings(), description="a table, [groups.NAME.permissions]"
    )
    launcher: LauncherSettings | None = Field(
        default=None, description="a table, [groups.NAME.launcher]"
    )

    def may_approve(self, channel: str, user_id: str) -> bool:
        """True if the user, of those who may answer in that chat, may also approve and allow."""
        return not self.approvers or user_id in self.approvers.get(channel, ())


_FORWARD = 'a list of one or both of "permission" and "question"'
_SERVER = 'a list of addresses without a path, such as ["http://127.0.0.1:4096"]'


class CodexSourceSettings(Table):
    """A Codex that somebody opens in a terminal: where its requests are asked as well."""

    group: GroupKey = Field(description='the name of a group, such as "web-team"')
    home: FolderPath | None = Field(default=None, description=_A_FOLDER)
    forward: tuple[Literal["permission", "question"], ...] = Field(
        default=("permission", "question"), min_length=1, description=_FORWARD
    )


class OpenCodeSourceSettings(Table):
    """OpenCode's servers: which are followed, and whose questions are asked elsewhere as well."""

    group: GroupKey = Field(description='the name of a group, such as "web-team"')
    urls: tuple[ServerAddress, ...] = Field(default=(), description=_SERVER)
    discover: bool = Field(default=True, strict=True, description="true or false")
    poll: PositiveDuration = timedelta(seconds=2)
    permission_threshold: Duration = timedelta(seconds=5)
    ask_timeout: PositiveDuration = timedelta(hours=24)
    forward: tuple[Literal["permission", "question"], ...] = Field(
        default=("permission", "question"), description=f"{_FORWARD}, or []"
    )
    reply_by_prompt: bool = Field(default=False, strict=True, description="true or false")
    username: str = Field(default="opencode", min_length=1, description="a user's name")
    password_env: Variable = "OPENCODE_SERVER_PASSWORD"  # noqa: S105 - a variable's name

    @field_validator("urls")
    @classmethod
    def _without_slash(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            _ = urlsplit(url).port  # raises ValueError for a number that no port has
        return tuple(dict.fromkeys(url.rstrip("/") for url in urls))


class PhuxSourceSettings(Table):
    """phux, a terminal multiplexer: where people are asked what its programs ask."""

    group: GroupKey = Field(description='the name of a group, such as "web-team"')
    command: Argument = Field(
        default="phux", min_length=1, description='a program, such as "/opt/phux/bin/phux"'
    )
    socket: FolderPath | None = Field(
        default=None, description='an absolute path, such as "/run/user/1000/phux/phux.sock"'
    )


class SourcesSettings(Table):
    """Agents that pynchy has not started, and whose questions it carries all the same."""

    codex: CodexSourceSettings | None = Field(default=None, description="a table, [sources.codex]")
    opencode: OpenCodeSourceSettings | None = Field(
        default=None, description="a table, [sources.opencode]"
    )
    phux: PhuxSourceSettings | None = Field(default=None, description="a table, [sources.phux]")

    def secrets(self) -> tuple[str, ...]:
        """Return the environment variables that hold secrets, which no agent may see."""
        return (self.opencode.password_env,) if self.opencode else ()


_WITHOUT_TABLE = GroupSettings()


class Settings(Table):
    """Everything that pynchy.toml can say."""

    wait_timeout: PositiveDuration = timedelta(minutes=30)
    answer_ttl: PositiveDuration = timedelta(days=7)
    lease_ttl: PositiveDuration = timedelta(seconds=30)
    receipt_grace: Duration = timedelta(seconds=5)
    send_timeout: PositiveDuration = timedelta(seconds=10)
    show_patience: Duration = timedelta(minutes=5)
    max_open_per_group: Count = 1000
    max_open_size_per_group: Size = 32 * 1024**2
    max_resumes: Count = 4
    report_to_phux: bool = Field(default=True, strict=True, description="true or false")
    requests_per_second: PerSecond = 50
    request_burst: Count = 200
    retention: RetentionSettings = Field(
        default=RetentionSettings(), description="a table, [retention]"
    )
    http: HttpSettings = Field(default=HttpSettings(), description="a table, [http]")
    channels: dict[str, SerializeAsAny[ChannelSettings]] = Field(
        default={}, validate_default=True, description="tables, such as [channels.local]"
    )
    groups: dict[GroupKey, GroupSettings] = Field(
        default={}, description="tables, such as [groups.web-team]"
    )
    sources: SourcesSettings = Field(
        default=SourcesSettings(), description="tables, such as [sources.codex]"
    )

    @field_validator("channels")
    @classmethod
    def _these_are_always_there(
        cls, channels: dict[str, ChannelSettings]
    ) -> dict[str, ChannelSettings]:
        return {LOCAL: LocalChannelSettings(), WEB: WebChannelSettings()} | channels

    @property
    def web(self) -> WebChannelSettings:
        """The settings of the page in the browser."""
        table = self.channels[WEB]
        return table if isinstance(table, WebChannelSettings) else WebChannelSettings()

    def group(self, name: str) -> GroupSettings:
        """Return the group's settings, or the defaults for a group without a table."""
        return self.groups.get(name, _WITHOUT_TABLE)

    def launchers(self) -> dict[str, LauncherSettings]:
        """Return the launchers by the groups that have one."""
        return {name: g.launcher for name, g in self.groups.items() if g.launcher is not None}
