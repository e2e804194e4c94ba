"""Read pynchy.toml, or say exactly what is wrong with it.

Whatever the file holds, the caller gets settings or a ConfigError, and nothing else.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import tomli
from pydantic import BaseModel, ValidationError

from pynchy.config.checks import contradictions
from pynchy.config.errors import SettingProblem, allowed, did_you_mean, printable
from pynchy.config.explain import explain
from pynchy.config.models import KNOWN_CHANNELS, ChannelSettings, Settings
from pynchy.config.places import Loc, Span
from pynchy.config.source import SettingsText
from pynchy.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)
Channels = Mapping[str, type[ChannelSettings]]

_LARGEST_KIB = 1024
_MAX_SHOWN = 50
_BOM = b"\xef\xbb\xbf"
# The two things that TOML allows and tomli gives up on without saying where.
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{4000,}")
_DEEP_NEST = re.compile(r"(?:[\[{]\s*){50}")
_QUOTES = ('text needs quotes, such as "30m"',)
_SET_TWICE = "Cannot overwrite a value"
_SYNTAX_HINTS = {
    "Invalid value": _QUOTES,
    "Expected newline or end of document after a statement": _QUOTES,
    _SET_TWICE: ("it is already set above",),
    "Unclosed array": ('a list looks like ["one", "two"]',),
    "Unclosed inline table": ('a table on one line looks like { one = "1", two = "2" }',),
}


def load_settings(path: Path | None, channels: Channels = KNOWN_CHANNELS) -> Settings:
    """Return the settings in the file, or all defaults without one.

    Raise ConfigError with every problem in it, each with its place.
    """
    if path is None:
        return Settings()
    source = _read(path)
    settings, findings = _validate(_parse(source), channels)
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
    if places.unfinished and error.pos >= len(text.rstrip()):
        return places.values[places.unfinished[-1]]
    return Span(error.pos, error.pos)


def _validate(
    data: dict[str, Any], known: Channels
) -> tuple[Settings | None, list[SettingProblem]]:
    channels, findings = _validate_channels(data.get("channels", {}), known)
    settings, more = _check(Settings, {**data, "channels": channels})
    findings += more
    if settings is not None and not findings:
        findings += contradictions(settings, known)
    return settings, findings


def _validate_channels(tables: object, known: Channels) -> tuple[object, list[SettingProblem]]:
    """Check each channel's table against its own model; what is no table is left for later."""
    if not isinstance(tables, dict):
        return tables, []
    channels: dict[str, object] = {}
    findings: list[SettingProblem] = []
    for name, table in tables.items():
        if name not in known:
            findings.append(_unknown_channel(name, known))
        elif isinstance(table, dict):
            channel, more = _check(known[name], table, ("channels", name))
            findings += more
            channels |= {name: channel} if channel else {}
        else:
            channels[name] = table
    return channels, findings


def _unknown_channel(name: str, known: Channels) -> SettingProblem:
    return SettingProblem(
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
