"""What can be read from the code without running a host: commands, settings, names."""

import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib.metadata import distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from tests.pins.subjects import COMMAND_LINE, EXIT_CODES, SEAMS, SETTINGS, WORDS, routes

# Modules that others import from, or run with `python -m`.
IMPORTED = (
    "agent_runner.asking",
    "agent_runner.initial",
    "agent_runner.errors",
    "pynchy.testing",
)
RUN = (
    "agent_runner",
    "agent_runner.agent_tools",
    "agent_runner.boxed",
    "agent_runner.hooks.claude",
    "pynchy",
)
# Names that can only be variables, and whatever is looked up in an environment.
_OURS = re.compile(r"""["']((?:PYNCHY|SLACK)_[A-Z0-9_]+)["']""")
_LOOKED_UP = re.compile(r"""env\w*(?:\.get|\.pop)?[(\[]\s*["']([A-Z][A-Z0-9_]+)["']""")


def commands() -> dict[str, Any]:
    """Return every command with its options and arguments, by the words that call it."""
    return dict(_commands(COMMAND_LINE, "pynchy", click.Context(COMMAND_LINE)))


def _commands(
    command: click.Command, words: str, ctx: click.Context
) -> Iterator[tuple[str, dict[str, Any]]]:
    yield words, _command(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from _commands(found, f"{words} {name}", ctx)


def _command(command: click.Command) -> dict[str, Any]:
    options = [p for p in command.params if isinstance(p, click.Option)]
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    required = [min(p.opts, key=len) for p in command.params if p.required]
    return {
        "options": {spelt: _parameter(p) for p in options for spelt in _spellings(p)},
        "arguments": {str(n): _parameter(p) for n, p in enumerate(arguments, 1)},
        # One string: whatever else becomes required breaks those who do not give it.
        "required": " ".join(sorted(required)),
        "hidden": command.hidden,
    }


def _spellings(option: click.Option) -> list[str]:
    return [*option.opts, *option.secondary_opts]


def _parameter(parameter: click.Parameter) -> dict[str, Any]:
    default = parameter.default
    told: dict[str, Any] = {
        "type": parameter.type.name,
        "values": parameter.nargs,
        "may be repeated": parameter.multiple,
        "is a flag": getattr(parameter, "is_flag", False),
        "variable": parameter.envvar,
    }
    if isinstance(parameter.type, click.Choice):
        told["choices"] = [str(choice) for choice in parameter.type.choices]
    if isinstance(default, str | int | float):
        told["default"] = default
    return told


def exit_codes() -> dict[str, int]:
    """Return the exit codes by what they mean."""
    return dict(EXIT_CODES)


def settings() -> dict[str, Any]:
    """Return every table and key that pynchy.toml may have, with its type and default."""
    found: dict[str, Any] = {}
    for name, model in SETTINGS.items():
        schema = model.model_json_schema()
        found[name] = _resolved(schema, schema.get("$defs", {}))
    return found


def _resolved(schema: Any, tables: dict[str, Any]) -> Any:
    """Return the schema without the names of our classes and the words for people."""
    if isinstance(schema, list):
        return [_resolved(item, tables) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        aside = {name: value for name, value in schema.items() if name != "$ref"}
        schema = tables[schema["$ref"].rpartition("/")[2]] | aside
    if "properties" in schema:
        inner = {k: _resolved(v, tables) for k, v in schema["properties"].items()}
        schema = schema | {"properties": inner}
    told = {
        name: value if name == "properties" else _resolved(value, tables)
        for name, value in schema.items()
        if name not in {"$defs", "title", "description"}
    }
    return _without_null(told)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return "this or null" as this, so that a table may get more keys."""
    others = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(others) != 1:
        return schema
    aside = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**others[0], **aside, "may be left out": True}


def variables() -> dict[str, list[str]]:
    """Return the environment variables whose names stand in the source of either side."""
    return {package: sorted(_variables(package)) for package in ("pynchy", "agent_runner")}


def _variables(package: str) -> set[str]:
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(next(iter(spec.submodule_search_locations)))
    texts = [path.read_text() for path in sorted(root.rglob("*.py"))]
    return {
        name for text in texts for pattern in (_OURS, _LOOKED_UP) for name in pattern.findall(text)
    }


def http_routes() -> dict[str, list[str]]:
    """Return the methods of every path; parameters are named by their place alone."""
    found: dict[str, set[str]] = {}
    for route in routes():
        path = re.sub(r"\{\w+(:\w+)?\}", r"{\1}", route.path)
        found.setdefault(path, set()).update(route.methods or ())
    return {path: sorted(methods) for path, methods in found.items()}


def words() -> dict[str, list[str]]:
    """Return the words that may stand in JSON, by where."""
    return {where: [word.value for word in kind] for where, kind in WORDS.items()}


def seams() -> dict[str, Any]:
    """Return what a program that extends pynchy implements or calls."""
    return {name: _described(thing) for name, thing in SEAMS.items()}


def programs() -> dict[str, Any]:
    """Return what is installed to be run, and the extras that can be asked for."""
    scripts = entry_points(group="console_scripts")
    ours = [script.name for script in scripts if script.dist and script.dist.name == "pynchy"]
    extras = distribution("pynchy").metadata.get_all("Provides-Extra") or []
    modules = [name for name in RUN if find_spec(name)]
    return {"scripts": sorted(ours), "extras": sorted(extras), "python -m": modules}


def public_names(pinned: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what can be imported from the modules that others import from."""
    found = {}
    for path in IMPORTED:
        module = importlib.import_module(path)
        names = pinned[path] if pinned else _own_names(module)
        found[path] = {n: _described(getattr(module, n)) for n in names if hasattr(module, n)}
    return found


def _own_names(module: ModuleType) -> list[str]:
    if hasattr(module, "__all__"):
        return list(module.__all__)
    named = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    own = [n for n, v in named.items() if getattr(v, "__module__", "") == module.__name__]
    return sorted({*own, *filter(str.isupper, named)})


def _described(thing: Any) -> Any:
    """Return how a function is called, or what a class has, without any names of types."""
    if isinstance(thing, type) and issubclass(thing, Enum):
        return {member.name: member.value for member in thing}
    if isinstance(thing, type):
        public = {n: v for n, v in inspect.getmembers(thing) if not n.startswith("_")}
        members = {n: _signature(v) if callable(v) else "attribute" for n, v in public.items()}
        return {"made with": _signature(thing), **members}
    return _signature(thing) if callable(thing) else type(thing).__name__


def _signature(thing: Any) -> Any:
    try:
        parameters = inspect.signature(thing).parameters
    except ValueError:
        return "callable"
    needed = [p.name for p in parameters.values() if p.default is p.empty]
    named = {p.name: f"{p.kind.description}{_default(p)}" for p in parameters.values()}
    # One string: whatever else becomes required breaks those who do not give it.
    return {**named, "required": " ".join(needed)}


def _default(parameter: inspect.Parameter) -> str:
    """Return a plain default; of any other only that there is one, for its text names a class."""
    if parameter.default is parameter.empty:
        return ""
    plain = type(parameter.default) in {str, int, float, bool, type(None)}
    return f" = {parameter.default!r}" if plain else " = …"
