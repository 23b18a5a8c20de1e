"""The reference page of the package ``wirelake``: signatures and docstrings of its names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import wirelake
from website.markdown import cell, code, table

_WIDE = 100
_INTRO = """# Python

The package `wirelake` is what Python programs and notebooks import. Its names stay; modules of the packages `decoder`
and `pipeline` may move with any release. `import wirelake` takes milliseconds: each name loads what it needs when it
is first used. Where an extra is missing, the error names it.

| for | install |
|---|---|
| `Codec`, `diagnose` | `pip install wirelake` |
| `query`, `diagnose(…, lake=…)` | `pip install 'wirelake[sql]'` |
| charts | `pip install 'wirelake[dashboard]'` (as files: `'wirelake[notebook]'`) |

```python
>>> import wirelake
>>> found = wirelake.diagnose("tests/captures/stuck_commit.pcap", lake="incident-lake")
>>> [(row["severity"], row["rule"]) for row in found.incidents.to_pylist()]
[('critical', 'stuck_commit')]
>>> wirelake.query("incident-lake", "SELECT count(*) AS exchanges FROM silver.exchanges").to_pylist()
[{'exchanges': 1330}]
>>> chart = wirelake.offsets_chart("incident-lake", "payments", 2, group="billing")
>>> chart.save("offsets.html")

```

A program that has a module of its own called `decoder` or `pipeline` cannot import Wirelake's at the same time: the
`ImportError` names the file that is in the way. The command `wirelake` runs beside such a file; `wirelake doctor`
reports it ([why](../adr/16-a-face-for-python.md))."""

_EXAMPLE = re.compile(r"^(?:>>> .*\n(?:(?!>>>|\n).+\n)*)+", re.MULTILINE)
_SECTION = re.compile(r"^(Args|Returns|Raises|Warns|Attributes):\n((?:(?:    .*)?\n)+)", re.MULTILINE)
_ITEM = re.compile(r"^    (\S[^:\n]*): ((?:.|\n(?!    \S))*)", re.MULTILINE)
_TITLES = {"Args": "argument", "Raises": "raises", "Warns": "warns", "Attributes": "attribute"}


def python_page() -> str:
    """All names of the package."""
    parts = [_INTRO]
    for name in wirelake.__all__:
        found = getattr(wirelake, name)
        parts += [f"## {name}", *(_class(name, found) if inspect.isclass(found) else _function(name, found))]
    return "\n\n".join(parts)


def _class(name: str, found: type[Any]) -> Iterator[str]:
    yield from _documented(found)
    for method, function in vars(found).items():
        if inspect.isfunction(function) and not method.startswith("_") and "Args:" in (function.__doc__ or ""):
            yield f"### {name}.{method}"
            yield from _function(method, function)


def _function(name: str, found: Callable[..., Any]) -> Iterator[str]:
    yield f"```python\n{_signature(name, found)}\n```"
    yield from _documented(found)


def _signature(name: str, found: Callable[..., Any]) -> str:
    signature = inspect.signature(found)
    shown = [_parameter(one) for one in signature.parameters.values() if one.name != "self"]
    first_named = next((one.name for one in signature.parameters.values() if one.kind is one.KEYWORD_ONLY), None)
    if first_named is not None and not any(one.startswith("*") for one in shown):
        shown.insert(next(n for n, one in enumerate(shown) if one.startswith(f"{first_named}:")), "*")
    whole = f"{name}({', '.join(shown)}) -> {signature.return_annotation}"
    if len(whole) <= _WIDE:
        return whole
    return f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f") -> {signature.return_annotation}"


def _parameter(one: inspect.Parameter) -> str:
    stars = "*" if one.kind is one.VAR_POSITIONAL else ""
    default = "" if one.default is one.empty else f" = {one.default!r}"
    return f"{stars}{one.name}: {one.annotation}{default}"


def _documented(found: Any) -> Iterator[str]:
    """What a docstring says: prose, examples, then its sections."""
    text = f"{inspect.cleandoc(found.__doc__ or '')}\n".replace("from decoder import", "from wirelake import")
    prose, sections = _SECTION.split(text)[0], _SECTION.findall(text)
    for part in re.split(r"\n\n+", prose.strip()):
        yield f"```python\n{part}\n\n```" if _EXAMPLE.match(f"{part}\n") else _prose(part)
    for title, body in sections:
        if title == "Returns":
            yield f"Returns: {_prose(body)}"
        else:
            yield table((_TITLES[title], "what"), _items(body))


def _items(body: str) -> Iterable[tuple[str, str]]:
    return ((", ".join(code(one) for one in names.split(", ")), _prose(text)) for names, text in _ITEM.findall(body))


def _prose(text: str) -> str:
    """Prose of a docstring as Markdown: its roles and double backticks are code."""
    return cell(re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`"))
