"""Where keys and values stand in a TOML text."""

import tomli
from hypothesis import given
from hypothesis import strategies as st

from pynchy.config.errors import Loc
from pynchy.config.source import Places, find_places

TEXT = '''\
# [not.a.table] = 1
top = "a # \\" b"  # comment = 1
"quo.ted".'lit\\eral'.bare = 1979-05-27 07:32:00

many = """
[fake]
key = "value" \\"""
""""
also = \'\'\'
[fake2] '' \'\'\'

[ table . "in ner" ]  # x
list = [ 1, # [2
  [ "x]", { a = 1, b.c = [3] } ],
]
[[rows]]
a = 1
[rows.sub]
b = 2
[[rows]]
a = 3
[[rows.deep]]
c = 4
'''


def _leaves(value: object, loc: Loc = ()) -> list[Loc]:
    match value:
        case dict():
            return [leaf for key, inner in value.items() for leaf in _leaves(inner, (*loc, key))]
        case list():
            return [leaf for at, inner in enumerate(value) for leaf in _leaves(inner, (*loc, at))]
        case _:
            return [loc]


def _value_written(text: str, places: Places, loc: Loc) -> object:
    span = places.values[loc]
    return tomli.loads(f"x = {text[span.start : span.end]}")["x"]


def _at(data: object, loc: Loc) -> object:
    for part in loc:
        data = data[part]  # type: ignore[index]
    return data


def _check(text: str) -> None:
    data = tomli.loads(text)
    places = find_places(text)
    for loc in _leaves(data):
        assert _value_written(text, places, loc) == _at(data, loc)


def test_every_value_is_found_where_it_stands() -> None:
    _check(TEXT)


def test_every_key_is_found_where_it_stands() -> None:
    places = find_places(TEXT)
    written = {loc: TEXT[span.start : span.end] for loc, span in places.keys.items()}

    assert written[("table", "in ner")] == '"in ner"'
    assert written[("quo.ted", "lit\\eral", "bare")] == "bare"
    assert written[("table", "in ner", "list", 1, 1, "b", "c")] == "c"
    assert written[("rows", 1, "deep", 0, "c")] == "c"
    assert not any("fake" in str(part) for loc in places.keys for part in loc)


def test_what_is_not_found_is_at_the_table_around_it() -> None:
    places = find_places(TEXT)

    assert places.key(("table", "in ner", "none", "none")) == places.keys[("table", "in ner")]
    assert places.value(("none",)).start == 0


def test_in_broken_text_what_came_before_is_found() -> None:
    places = find_places('a = 1\nb = [ "x", "y\nc = 2')

    assert set(places.values) == {("a",), ("b",), ("b", 0), ("b", 1)}


_KEYS = st.sampled_from(["a", "b-1", '"q.\\u0041"', "'l\"'", '""', "1"])
_SCALARS = st.sampled_from(
    [
        "1",
        "-1.5e3",
        "true",
        "inf",
        "1979-05-27",
        "07:32:00",
        '"a\\"]"',
        "'}#'",
        '"""x\n"y""""',
        "'''a\n''b'''",
        '""',
        "''",
        '""""""',
        "0xFF",
    ]
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[ " + " ,# x]\n ".join(items) + " ]")
        | st.dictionaries(_KEYS, inner, max_size=3).map(
            lambda table: f"{{ {', '.join(f'{key} = {value}' for key, value in table.items())} }}"
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(_KEYS, st.dictionaries(_KEYS, _VALUES)), st.sampled_from(["[%s]", "[[%s]]"]))
def test_every_value_is_found_in_any_text(tables: dict[str, dict[str, str]], header: str) -> None:
    lines = [
        line
        for name, table in tables.items()
        for line in (header % name, *(f"{key}= {value} # c" for key, value in table.items()))
    ]

    _check("\n".join(lines))


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    find_places(text)
