"""Read pynchy.toml, or say exactly what is wrong with it.

What pydantic found wrong is said in a person's words, with the nearest name that would have fitted.
"""

import copy
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import tomli
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from pynchy.config.channels import KNOWN_CHANNELS, ChannelSettings
from pynchy.config.checks import contradictions
from pynchy.config.errors import Loc, SettingProblem, allowed, did_you_mean, dotted, printable
from pynchy.config.models import Settings
from pynchy.config.source import SettingsText, Span
from pynchy.config.values import EXPLAINED
from pynchy.errors import ConfigError

_KEY = "[key]"
_KINDS: dict[Any, str] = {
    bool: "true or false",
    str: "a string",
    int: "a whole number",
    float: "a number with a fraction",
    list: "a list",
    tuple: "a list",
    dict: "a table",
}

Model = TypeVar("Model", bound=BaseModel)
Channels = Mapping[str, type[ChannelSettings]]
Checks = Callable[[Settings], Iterable[SettingProblem]]

_LARGEST_KIB = 1024
_MAX_SHOWN = 50
_BOM = b"\xef\xbb\xbf"
# The two things that TOML allows and tomli gives up on without saying where.
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{4000,}")
_DEEP_NEST = re.compile(r"(?:[\[{]\s*){50}")
_QUOTES = ('text needs quotes, such as "30m"',)
_SET_TWICE = "Cannot overwrite a value"
_UNCLOSED = ("Unclosed array", "Unclosed inline table")
_SYNTAX_HINTS = {
    "Invalid value": _QUOTES,
    "Expected newline or end of document after a statement": _QUOTES,
    _SET_TWICE: ("it is already set above",),
    "Unclosed array": ('a list looks like ["one", "two"]',),
    "Unclosed inline table": ('a table on one line looks like { one = "1", two = "2" }',),
}


def explain(error: ErrorDetails, model: type[BaseModel], table: Loc = ()) -> SettingProblem:
    """Return the finding for an error that `model` raised for the table at that place."""
    match error["type"]:
        case "extra_forbidden":
            return _unknown_key(error, model, table)
        case "missing":
            return _missing_key(error, model, table)
        case kind if kind == EXPLAINED:
            return _own_words(error, table)
        case _:
            return _wrong_value(error, model, table)


def fields_of(model: type[BaseModel], table: Loc = ()) -> Iterator[tuple[Loc, FieldInfo]]:
    """Yield every setting below the model. NAME stands for a name that the user chooses."""
    for name, info in model.model_fields.items():
        yield (*table, name), info
        kind, inner = _bare(info.annotation), (*table, name)
        if get_origin(kind) is dict:
            kind, inner = _bare(get_args(kind)[1]), (*table, name, "NAME")
        if _is_model(kind):
            yield from fields_of(kind, inner)


def _unknown_key(error: ErrorDetails, model: type[BaseModel], table: Loc) -> SettingProblem:
    *parents, name = error["loc"]
    options = _model_at(model, tuple(parents)).model_fields
    where = dotted((*table, *parents))
    return SettingProblem(
        is_extra=True,
        loc=(*table, *error["loc"]),
        message=f'unknown setting "{printable(str(name))}"' + (f" in [{where}]" if where else ""),
        notes=(*_hints(error, str(name), options, (*table, *parents)), allowed(options)),
        at_key=True,
    )


def _hints(
    error: ErrorDetails, name: str, options: dict[str, FieldInfo], table: Loc
) -> tuple[str, ...]:
    if table[:-1] == ("groups",) and isinstance(error["input"], dict):
        quoted = 'a group name with a dot in it needs quotes: [groups."web.team"]'
        return (*did_you_mean(name, options), quoted)
    return did_you_mean(name, options) or _elsewhere(name)


def _elsewhere(name: str) -> tuple[str, ...]:
    homes = [loc[:-1] for loc, _ in fields_of(Settings) if loc[-1] == name]
    if not homes:
        return ()
    tables = " or ".join(f"[{dotted(home)}]" for home in homes if home)
    return (f"it belongs in {tables}" if tables else "it belongs above the first [table]",)


def _missing_key(error: ErrorDetails, model: type[BaseModel], table: Loc) -> SettingProblem:
    *parents, name = error["loc"]
    return SettingProblem(
        loc=(*table, *parents),
        message=f'[{dotted((*table, *parents))}] needs "{name}"',
        notes=(f"{name} must be {_phrase(_nearest_field(model, error['loc'])[1])}",),
        at_key=True,
    )


def _own_words(error: ErrorDetails, table: Loc) -> SettingProblem:
    at_key = error["loc"][-1] == _KEY
    loc = error["loc"][:-1] if at_key else error["loc"]
    return SettingProblem(
        loc=(*table, *loc),
        message=f"{dotted((*table, *loc[: -1 if at_key else None]))} {error['msg']}",
        notes=tuple(error["ctx"]["notes"]),
        at_key=at_key,
    )


def _wrong_value(error: ErrorDetails, model: type[BaseModel], table: Loc) -> SettingProblem:
    loc, info = _nearest_field(model, error["loc"])
    return SettingProblem(
        loc=(*table, *error["loc"]),
        message=f"{dotted((*table, *loc))} must be {_phrase(info)}{_found(error)}",
    )


def _phrase(info: FieldInfo) -> str:
    kind = _bare(info.annotation)
    return info.description or _KINDS.get(get_origin(kind) or kind, "of another kind")


def _found(error: ErrorDetails) -> str:
    value = error["input"]
    wrong_type = error["type"].endswith("_type")
    # A kind that parses its own text refuses everything in the same way.
    unparsed = error["type"] == "value_error" and isinstance(value, bool | list | dict)
    if not (wrong_type or unparsed):
        return ""
    return f"; this is {_KINDS.get(type(value), 'a date or time')}"


def _nearest_field(model: type[BaseModel], loc: Loc) -> tuple[Loc, FieldInfo]:
    """Return the innermost described field on the way to that place."""
    nearest: tuple[Loc, FieldInfo] = ((), FieldInfo())
    for depth, (kind, part) in enumerate(_way(model, loc), start=1):
        if _is_model(kind) and part in kind.model_fields:
            nearest = (loc[:depth], kind.model_fields[str(part)])
    return nearest


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel]:
    *_, (kind, _) = _way(model, (*loc, ""))
    return kind if _is_model(kind) else BaseModel


def _way(kind: Any, loc: Loc) -> Iterator[tuple[Any, str | int]]:  # noqa: ANN401  annotations are Any
    """Yield the type that holds each part of the place, from the outside in."""
    for part in loc:
        yield kind, part
        if _is_model(kind):
            info = kind.model_fields.get(part)
            kind = _bare(info.annotation) if info else None
        else:
            kind = _bare(get_args(kind)[-1]) if get_origin(kind) is dict else None


def _bare(annotation: Any) -> Any:  # noqa: ANN401  annotations are Any
    """Return the annotation without Annotated and Optional around it."""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation = next(arg for arg in get_args(annotation) if arg is not type(None))
    return annotation


def _is_model(kind: Any) -> bool:  # noqa: ANN401  annotations are Any
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def read_settings(
    path: Path | None,
    channels: Channels = KNOWN_CHANNELS,
    look_at: Checks = lambda _: (),
) -> Settings:
    """Return the settings in the file, or all defaults without one.

    The models of the channels' tables, and what the channels find wrong with settings that are
    right otherwise, come from outside. Raise ConfigError with every problem, each with its place.
    """
    if path is None:
        return Settings()
    source = _read(path)
    settings, findings = _validate(_parse(source), channels, look_at)
    if settings is not None and not findings:
        return settings
    in_order = sorted(findings, key=lambda finding: source.place(finding).start)
    shown = [source.show(finding) for finding in in_order[:_MAX_SHOWN]]
    if len(findings) > _MAX_SHOWN:
        shown.append(f"and {len(findings) - _MAX_SHOWN} more")
    raise ConfigError("\n\n".join(shown))


def example_settings() -> str:
    """Return a settings file in which every setting is a comment with its default."""
    return files("pynchy").joinpath("pynchy.example.toml").read_text(encoding="utf-8")


def _read(path: Path) -> SettingsText:
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST_KIB * 1024 + 1)
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder, not a settings file") from None
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else exc
        raise ConfigError(f"{path}: cannot be read: {reason}") from exc
    if len(raw) > _LARGEST_KIB * 1024:
        raise ConfigError(f"{path}: is larger than {_LARGEST_KIB} KiB: is it a settings file?")
    return _decode(str(path), raw.removeprefix(_BOM))


def _decode(name: str, raw: bytes) -> SettingsText:
    text = raw.decode("utf-8", errors="replace").replace("\r\n", "\n")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        before = raw[: exc.start].decode("utf-8").replace("\r\n", "\n")
        place = Span(len(before), len(before) + 1)
        message = "is not UTF-8 text here"
        shown = SettingsText(name, text).show_broken(place, message, ("save the file as UTF-8",))
        raise ConfigError(shown) from None
    return SettingsText(name, text)


def _parse(source: SettingsText) -> dict[str, Any]:
    try:
        return tomli.loads(source.text)
    except tomli.TOMLDecodeError as exc:
        hints = _SYNTAX_HINTS.get(exc.msg, ())
        shown = source.show_broken(_syntax_place(source, exc), f"not TOML: {exc.msg}", hints)
    except RecursionError:
        place = _first(_DEEP_NEST, source.text)
        shown = source.show_broken(place, "lists or tables are nested too deeply")
    except ValueError:
        place = _first(_LONG_NUMBER, source.text)
        shown = source.show_broken(place, "this number has too many digits")
    raise ConfigError(shown)


def _first(pattern: re.Pattern[str], text: str) -> Span:
    match = pattern.search(text)
    return Span(*match.span()) if match else Span(0, 0)


def _syntax_place(source: SettingsText, error: tomli.TOMLDecodeError) -> Span:
    """Return where to point, which is before tomli's place if that is past what is wrong."""
    places, text = source.places, source.text
    if error.msg == _SET_TWICE:
        before = (span for span in places.values.values() if span.end <= error.pos)
        return max(before, key=lambda span: span.end, default=Span(error.pos, error.pos))
    if error.msg in _UNCLOSED:
        opened = [places.values[loc] for loc in places.unfinished]
        opened = [span for span in opened if span.start < error.pos and text[span.start] in "[{"]
        if opened:
            return Span(opened[-1].start, opened[-1].start + 1)
    if places.unfinished and error.pos >= len(text.rstrip()):
        return places.values[places.unfinished[-1]]
    return Span(error.pos, error.pos)


def _validate(
    data: dict[str, Any], known: Channels, look_at: Checks
) -> tuple[Settings | None, list[SettingProblem]]:
    """Return the settings, and everything that is wrong with them.

    What each setting says and whether they fit together is told at once: where some cannot be
    used, the others are looked at without them.
    """
    channels, findings = _validate_channels(data.get("channels", {}), known)
    settings, more = _check(Settings, {**data, "channels": channels})
    findings += more
    usable = settings or _without(data, channels, more)
    if usable is not None:
        together = [*contradictions(usable, known), *look_at(usable)]
        named = data.get("channels", {})
        findings += [
            problem
            for problem in together
            if not any(_is_doubtful(problem, found) for found in findings)
            and not (problem.channel and problem.channel in named)
        ]
    return settings, findings


def _without(
    data: dict[str, Any], channels: object, findings: list[SettingProblem]
) -> Settings | None:
    """Return the settings without those that cannot be used; None if that is not enough."""
    left = copy.deepcopy(data)
    for finding in findings:
        table: Any = left
        way = list(itertools.takewhile(lambda part: isinstance(part, str), finding.loc))
        for part in way[:-1]:
            table = table.get(part) if isinstance(table, dict) else None
        if way and isinstance(table, dict):
            table.pop(way[-1], None)
    return _check(Settings, {**left, "channels": channels if "channels" in left else {}})[0]


def _is_doubtful(problem: SettingProblem, found: SettingProblem) -> bool:
    """True if the problem may only be there because a setting beside it could not be used."""
    if found.is_extra:
        return False
    table, beside = problem.loc[:-1], found.loc[:-1]
    within = bool(beside) and problem.loc[: len(beside)] == beside
    return table == beside or within or (bool(table) and found.loc[: len(table)] == table)


def _validate_channels(tables: object, known: Channels) -> tuple[object, list[SettingProblem]]:
    """Check each channel's table against its own model; what is no table is left for later."""
    if not isinstance(tables, dict):
        return tables, []
    channels: dict[str, object] = {}
    findings: list[SettingProblem] = []
    for name, table in tables.items():
        model = known.get(name)
        if model is None:
            findings.append(_unknown_channel(name, known))
        elif isinstance(table, dict):
            channel, more = _check(model, table, ("channels", name))
            findings += more
            channels |= {name: channel} if channel else {}
        else:
            channels[name] = table
    return channels, findings


def _unknown_channel(name: str, known: Channels) -> SettingProblem:
    return SettingProblem(
        is_extra=True,
        loc=("channels", name),
        message=f'unknown channel "{printable(name)}"',
        notes=(*did_you_mean(name, known), allowed(known)),
        at_key=True,
    )


def _check(
    model: type[Model], table: dict[str, Any], loc: Loc = ()
) -> tuple[Model | None, list[SettingProblem]]:
    try:
        return model.model_validate(table), []
    except ValidationError as exc:
        return None, [explain(error, model, loc) for error in exc.errors(include_url=False)]
