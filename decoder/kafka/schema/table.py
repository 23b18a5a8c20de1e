"""Kafka's messages, for each api key, version and kind: reads and answers from ``messages.json``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from decoder.kafka.apis import ApiKey

Range = tuple[int, int]
"""Versions, inclusive on both ends; (1, 0) is empty."""


def within(version: int, versions: Range | list[int]) -> bool:
    """Whether ``version`` is in an inclusive range."""
    return versions[0] <= version <= versions[1]


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """One field as it is in one version.

    Attributes:
        type: Kafka's primitive name (``int32`` …), or ``struct``.
        array: the field is an array of ``type``.
        nullable: null is allowed in this version.
        compact: lengths are unsigned varints, one too large, and 0 is null (KIP-482).
        tag: number in the tagged section, None for a field at its place.
        default: as JSON text, the value that Kafka's converters leave out when the field is tagged.
        struct: fields of the struct, if ``type`` is ``struct``.
    """

    name: str
    type: str
    array: bool
    nullable: bool
    compact: bool
    tag: int | None
    default: str
    struct: StructLayout | None


@dataclass(frozen=True, slots=True)
class StructLayout:
    """The fields of a struct in one version, in order; ``flexible`` structs end with a tagged section."""

    fields: tuple[FieldLayout, ...]
    flexible: bool


@dataclass(frozen=True, slots=True)
class MessageInfo:
    """One message definition and the inclusive versions that it holds for."""

    name: str
    kind: str
    api_key: int | None
    versions: Range
    flexible: Range
    definition: dict[str, Any]


@lru_cache(maxsize=1)
def _table() -> list[dict[str, Any]]:
    text = resources.files("decoder.kafka.schema").joinpath("messages.json").read_text(encoding="utf-8")
    content: list[dict[str, Any]] = json.loads(text)
    return content


@lru_cache(maxsize=1)
def messages() -> tuple[MessageInfo, ...]:
    """All definitions of the table."""
    return tuple(
        MessageInfo(m["name"], m["kind"], m["apiKey"], tuple(m["versions"]), tuple(m["flexible"]), m)
        for m in _table()[1:]
    )


@lru_cache(maxsize=1)
def api_names() -> dict[int, str]:
    """Api key to name as Kafka's ApiMessageType spells it (``Produce``, ``OffsetCommit`` …), newest name."""
    names: dict[int, tuple[int, str]] = {}
    for m in messages():
        if m.kind == "request" and m.api_key is not None:
            known = names.get(m.api_key)
            if known is None or known[0] < m.versions[1]:
                names[m.api_key] = (m.versions[1], m.name.removesuffix("Request"))
    return {key: name for key, (_, name) in sorted(names.items())}


@lru_cache(maxsize=1)
def api_keys() -> dict[str, int]:
    """Api key by that name."""
    return {name: key for key, name in api_names().items()}


@lru_cache(maxsize=1)
def api_versions() -> dict[int, Range]:
    """Api key to the inclusive range of request versions that some Kafka release knew."""
    ranges: dict[int, Range] = {}
    for m in messages():
        if m.kind == "request" and m.api_key is not None:
            low, high = ranges.get(m.api_key, m.versions)
            ranges[m.api_key] = (min(low, m.versions[0]), max(high, m.versions[1]))
    return dict(sorted(ranges.items()))


def layout(definition: dict[str, Any], version: int) -> StructLayout:
    """The layout of a message in one version."""
    return _struct(definition["fields"], version, within(version, definition["flexible"]))


def _struct(fields: list[list[Any]], version: int, flexible: bool) -> StructLayout:
    return StructLayout(
        tuple(_field(f, version, flexible) for f in fields if within(version, f[2])),
        flexible,
    )


def _field(field: list[Any], version: int, flexible: bool) -> FieldLayout:
    name, type_, _, nullable, tagged, tag, own_flexible, default, nested = field
    array = type_.startswith("[]")
    element = type_.removeprefix("[]")
    struct = _struct(nested, version, flexible) if nested else None
    is_nullable = within(version, nullable)
    return FieldLayout(
        name=name,
        type="struct" if struct else element,
        array=array,
        nullable=is_nullable,
        compact=within(version, own_flexible) if own_flexible is not None else flexible,
        tag=tag if within(version, tagged) else None,
        default=json.dumps(_default(element, array, struct, default)),
        struct=struct,
    )


_ZERO: dict[str, Any] = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": "",
    "records": "",
    "uuid": "AAAAAAAAAAAAAAAAAAAAAA",
}


_PARSE: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text.lower() == "true",
    "float64": float,
    "string": str,
    "bytes": str,
    "uuid": str,
}


def _default(element: str, array: bool, struct: StructLayout | None, text: Any) -> Any:
    """The JSON value of a field's default (Kafka's FieldSpec: empty, zero or null unless the schema gives one)."""
    if text == "null":
        return None
    if array:
        return []
    if struct is not None:
        return {f.name: json.loads(f.default) for f in struct.fields if f.tag is None}
    if text in (None, ""):
        return _ZERO.get(element, 0)
    return _PARSE.get(element, _integer)(str(text))


def _integer(text: str) -> int:
    """Decimal or hexadecimal, as Java's Integer.decode reads it."""
    return int(text, 0)


def request_header_version(api_key: int, api_version: int, flexible: bool) -> int:
    """Header version of a request (ApiMessageTypeGenerator: 2 if flexible, else 1; ControlledShutdown v0 has 0)."""
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0:
        return 0
    return 2 if flexible else 1


def response_header_version(api_key: int, flexible: bool) -> int:
    """Header version of a response (1 if flexible, else 0; ApiVersions always 0, so that any client can read it)."""
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if flexible else 0
