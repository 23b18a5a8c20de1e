"""The reference of settings, from their models: name, type, default, what happens if it is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pipeline.config.former_names import former_name
from pipeline.config.settings import Settings, keys_of
from website.markdown import cell, code

_INTRO = """# Settings

They are in a YAML file that `--conf FILE` names; [`conf/local.yaml`](../../conf/local.yaml) is one with all of
them; each command takes what concerns it. First wins: command line, environment, file, the default below. A
name that does not exist is refused, with the nearest one that does. Editors that read the first line of that file
know names, types and meanings from [their JSON schema](settings.schema.json)."""


def settings_page() -> str:
    """All settings, section by section."""
    return "\n\n".join([_INTRO, *section(Settings, ())])


def section(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[str]:
    """The settings of a model, then those of its parts."""
    if path:
        yield f"## {'.'.join(path)}"
        if text := inspect.cleandoc(model.__doc__ or ""):
            yield text
    inner = []
    for name, (field, kind) in keys_of(model):
        if kind is not None:
            inner.append((kind, (*path, name)))
        else:
            yield _setting((*path, name), field)
    for kind, place in inner:
        yield from section(kind, place)


def _setting(path: tuple[str, ...], field: FieldInfo) -> str:
    name = ".".join(path)
    variable = "WIRELAKE_" + "__".join(path).upper()
    facts = f"{_type(field.annotation)}{_bounds(field)}; default {default(field)}; in the environment {code(variable)}"
    former = former_name(name)
    facts += f"; formerly {code(former.rpartition('.')[2])}" if former else ""
    return f"### {name}\n\n{facts}.\n\n{cell(field.description or '').rstrip('.')}."


def _bounds(field: FieldInfo) -> str:
    """E.g. *at least 1*."""
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than", "pattern": "matching"}
    found = [
        f"{word} {code(str(_plain(value)))}"
        for part in field.metadata
        for name, word in words.items()
        if (value := getattr(part, name, None)) is not None
    ]
    return ", " + ", ".join(found) if found else ""


def _plain(value: Any) -> Any:
    return f"{value.total_seconds():g} s" if isinstance(value, timedelta) else value


def _type(kind: Any) -> str:
    """A type in words."""
    if kind is type(None):
        return "null"
    if isinstance(kind, type) and not get_args(kind):
        names = {
            "str": "text",
            "int": "whole number",
            "float": "number",
            "bool": "true or false",
            "timedelta": "a time",
        }
        return names.get(kind.__name__, "text")
    arguments = [one for one in get_args(kind) if one is not Ellipsis]
    if str(get_origin(kind)) == "typing.Literal":
        return "one of " + ", ".join(code(str(one)) for one in arguments)
    if get_origin(kind) is dict:
        return f"a mapping of {_type(arguments[0])} to {_type(arguments[1])}"
    if hasattr(kind, "__metadata__"):
        return _type(arguments[0])
    return " or ".join(_type(one) for one in arguments)


def default(field: FieldInfo) -> str:
    """The default of a setting, as Markdown."""
    value = field.default_factory() if field.default_factory else field.default  # type: ignore[call-arg]
    if value is PydanticUndefined or value is None:
        return "none"
    if value == {}:
        return "empty"
    if isinstance(value, timedelta):
        return code(span(value))
    return code(
        str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
    )


def span(value: timedelta) -> str:
    """A span of time as ISO 8601 writes it."""
    seconds = int(value.total_seconds())
    if seconds % 86_400 == 0:
        return f"P{seconds // 86_400}D"
    return f"PT{seconds // 60}M" if seconds % 60 == 0 else f"PT{seconds}S"
