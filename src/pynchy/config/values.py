"""The kinds of value that a setting can have, and how each is written in TOML.

Every kind has one phrase that says what is allowed. Errors are made from that phrase, so a kind
never needs to explain itself twice.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Literal, LiteralString

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from agent_runner.cores import names
from pynchy.config.errors import did_you_mean
from pynchy.model import GROUP_PATTERN

# Each is a module of agent_runner: a new one is known here without a word.
AGENTS = tuple(names())
if TYPE_CHECKING:
    AgentName = str
else:
    AgentName = Literal[AGENTS]

PLACEHOLDERS = ("initial", "session_id", "request_id", "group", "ipc_dir")
# Far enough for anyone, and near enough that a deadline never runs past the calendar.
MAX_LENGTH = timedelta(days=3650)
LARGEST_SIZE = 2**63 - 1
EXPLAINED = "explained"

_BRACES = "allowed: {}; a literal brace is doubled".format(
    ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
)
_NUMBER = r"([0-9]{1,18}(?:\.[0-9]{1,9})?)"
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds"}
_DURATION = re.compile("".join(rf"(?:{_NUMBER}{unit}\s*)?" for unit in _UNITS))
_SIZE = re.compile(rf"{_NUMBER}\s*([KMGT]?)(I?)B", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})")
# Below, only root may listen; the agent in its box finds the proxy at the same port.
_MIN_PORT, _LAST_PORT = 1024, 65535
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_duration(value: object) -> timedelta:
    """Return the duration that "1h30m" or a number of seconds means, or raise ValueError."""
    if isinstance(value, timedelta):
        return value
    try:
        duration = timedelta(**_units_of(value))
    except OverflowError as exc:
        raise ValueError("too long") from exc
    if not timedelta(0) <= duration <= MAX_LENGTH:
        raise ValueError("out of range")
    return duration


def parse_size(value: object) -> int:
    """Return the bytes that "256MiB", "10MB" or a whole number means, or raise ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        number, power, binary = match.groups()
        size = int(float(number) * (1024 if binary else 1000) ** _POWERS[power.upper()])
    else:
        raise ValueError("not a size")
    if not 0 < size <= LARGEST_SIZE:
        raise ValueError("out of range")
    return size


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the text with each {placeholder} replaced and doubled braces made single."""
    return template.format_map(values)


def _units_of(value: object) -> dict[str, float]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"seconds": float(value)}
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or not any(match.groups()):
        raise ValueError("not a duration")
    written = zip(_UNITS.values(), match.groups(), strict=True)
    return {unit: float(number) for unit, number in written if number}


def _check_template(template: str) -> str:
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        raise _refusal("has a single brace", _BRACES) from None
    for _, name, spec, conversion in parts:
        if name is not None and (name not in PLACEHOLDERS or spec or conversion):
            meant = did_you_mean(name, PLACEHOLDERS, "{%s}")
            raise _refusal("has an unknown placeholder", *meant, _BRACES)
    return template


def _check_group_name(name: str) -> str:
    if not re.fullmatch(GROUP_PATTERN, name):
        raise _refusal(
            "has a group name that cannot be used",
            'allowed: 1 to 64 letters, digits, "_", "." and "-", with a letter or digit first',
        )
    return name


def _check_argument(text: str) -> str:
    if "\0" in text:
        raise _refusal("has a NUL character", "no program can be given one")
    return text


def _check_variable(name: str) -> str:
    if not name or "=" in name:
        raise _refusal("has a variable without a usable name", 'allowed: any but "" and "="')
    return _check_argument(name)


def _check_folder(path: Path) -> Path:
    try:
        expanded = path.expanduser()
    except RuntimeError as exc:
        raise ValueError("there is no such user") from exc
    _check_argument(str(path))
    if not expanded.is_absolute():
        raise ValueError("a relative path would depend on where pynchy was started")
    return expanded


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "host:port" or "[::1]:port". Raise ValueError for anything else."""
    match = _ADDRESS.fullmatch(address)
    if match is None or not _MIN_PORT <= int(match[3]) <= _LAST_PORT:
        raise ValueError("not an address with a port")
    return match[1] or match[2], int(match[3])


def is_loopback(host: str) -> bool:
    """True if only this machine reaches what listens there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_address(address: str) -> str:
    split_address(address)
    return address


def _check_different(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise _refusal("names the same channel twice", "allowed: each channel once")
    return names


def _refusal(what: LiteralString, *notes: str) -> PydanticCustomError:
    """Return an error whose own words are shown, in place of the field's description."""
    return PydanticCustomError(EXPLAINED, what, {"notes": notes})


_SUCH_AS_DURATION = 'such as "90s", "30m", "1h30m", "7d", "500ms" or a number of seconds'
Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    Field(description=f"a duration up to {MAX_LENGTH.days}d, {_SUCH_AS_DURATION}"),
]
PositiveDuration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    Field(
        gt=timedelta(0),
        description=f"a duration above 0 and up to {MAX_LENGTH.days}d, {_SUCH_AS_DURATION}",
    ),
]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    Field(description='a size above 0, such as "256MiB", "10MB" or a number of bytes'),
]
Count = Annotated[
    int,
    Field(strict=True, ge=1, le=10**9, description="a whole number from 1 to 1000000000"),
]
PerSecond = Annotated[
    float,
    Field(strict=True, gt=0, le=10**6, description="a number above 0 and up to 1000000"),
]
Port = Annotated[
    int,
    Field(strict=True, ge=0, le=65535, description="a whole number from 0 to 65535"),
]
UserId = Annotated[int, Field(strict=True, ge=0, lt=2**32 - 1)]
GroupKey = Annotated[str, AfterValidator(_check_group_name)]
ChannelNames = Annotated[
    tuple[str, ...],
    AfterValidator(_check_different),
    Field(min_length=1, description='a list of one or more channel names, such as ["local"]'),
]
Argument = Annotated[str, AfterValidator(_check_argument)]
Template = Annotated[Argument, AfterValidator(_check_template)]
ServerAddress = Annotated[str, Field(pattern=r"^https?://[^\s/?#@]+/?$", max_length=300)]
Variable = Annotated[str, AfterValidator(_check_variable)]
FolderPath = Annotated[Path, AfterValidator(_check_folder)]
ProxyAddress = Annotated[str, AfterValidator(_check_address)]
Image = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$", max_length=500)]
