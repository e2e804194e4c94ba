"""Say in human words what pydantic found wrong.

The words come from the models: a field's description follows "must be", and a table's fields are
what is allowed in it. A new setting needs nothing here.
"""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from pynchy.config.errors import SettingProblem, allowed, did_you_mean, dotted, printable
from pynchy.config.models import Settings
from pynchy.config.places import Loc
from pynchy.config.values import EXPLAINED

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
