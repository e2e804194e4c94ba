"""Shapes of JSON, snapshots of them, and what a snapshot has that is there no more."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SNAPSHOTS = Path(__file__).with_name("snapshots")
# Words of the contract: what they are is pinned, not only that they are strings.
_LITERAL = frozenset({"v", "type", "outcome", "kind", "urgency", "status", "event", "multiSelect"})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


def shape_of(value: Any, key: str = "") -> Any:
    """Return which keys the value has and of which types they are; lists by what is in them."""
    match value:
        case dict():
            return {name: shape_of(inner, name) for name, inner in sorted(value.items())}
        case [*items]:
            return {"[]": merged(shape_of(item) for item in items)} if items else "[]"
        case _ if key in _LITERAL and value is not None:
            return f"= {json.dumps(value)}"
        case _:
            return _name_of(value)


def merged(shapes: Iterable[Any]) -> Any:
    """Return the one shape of several things; a key that only some have ends in `?`."""
    distinct = list({json.dumps(shape, sort_keys=True): shape for shape in shapes}.values())
    if len(distinct) == 1:
        return distinct[0]
    tables = [shape for shape in distinct if isinstance(shape, dict)]
    texts = [shape if isinstance(shape, str) else shape.get("or", "") for shape in distinct]
    others = {word for text in texts for word in text.split(" | ") if word}
    if not tables:
        return " | ".join(sorted(others))
    bare = [{name: inner for name, inner in table.items() if name != "or"} for table in tables]
    whole = _merged_tables(bare)
    return {"or": " | ".join(sorted(others)), **whole} if others else whole


def _merged_tables(tables: list[dict[str, Any]]) -> dict[str, Any]:
    bare = [{name.removesuffix("?"): inner for name, inner in table.items()} for table in tables]
    found: dict[str, Any] = {}
    for name in sorted({name for table in bare for name in table}):
        always = all(name in table for table in tables)
        found[name if always else f"{name}?"] = merged(t[name] for t in bare if name in t)
    return found


def _name_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str() if _TIME.fullmatch(value):
            return "time"
        case _:
            return "string"


def lost(pinned: Any, now: Any, place: str = "") -> Iterator[str]:
    """Say what is pinned and is not there, or is something else. What is new is welcome."""
    if isinstance(pinned, dict) and isinstance(now, dict):
        for name, inner in pinned.items():
            if name in now:
                yield from lost(inner, now[name], f"{place} ▸ {name}")
            elif name == "or" and inner == "[]" and "[]" in now:
                continue  # the same list, which happened to be empty nowhere
            else:
                yield f"{place} ▸ {name} is gone"
    elif isinstance(pinned, list) and isinstance(now, list):
        yield from (f"{place} has no {item!r} any more" for item in pinned if item not in now)
    elif pinned != now:
        yield f"{place} was {_brief(pinned)} and is {_brief(now)}"


def _brief(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:200]


def assert_still_there(name: str, now: Any) -> None:
    """Fail with a list of everything that the snapshot has and `now` has not."""
    gone = list(lost(read_snapshot(name), now, name))
    assert not gone, "what others rely on has changed:\n" + "\n".join(gone)


def read_snapshot(name: str) -> Any:
    """Return what was pinned."""
    return json.loads((SNAPSHOTS / f"{name}.json").read_bytes())


def write_snapshot(name: str, value: Any) -> None:
    """Pin the value."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    (SNAPSHOTS / f"{name}.json").write_text(text + "\n")
