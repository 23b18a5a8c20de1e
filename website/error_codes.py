"""The reference page of error codes: what each means, who can act, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from decoder.kafka.schema.table import api_names
from pipeline.analysis.codes.model import ACTORS, KINDS, CodeFacts
from pipeline.analysis.codes.table import TABLES
from website.markdown import cell, code, table

_TITLES = {"kafka": "Kafka", "mongodb": "MongoDB"}
_HEAD = ("code", "name", "answer of", "kind", "who can act", "what it means", "now", "fix")


def error_codes_page() -> str:
    """All tables."""
    intro = (
        "# Error codes\n\nWhat Wirelake says of an error comes from this table: rules take kind and advice from it, by "
        "code and, where the meaning differs, by the api or command that was answered so. In texts, `{names}` in "
        "braces are filled in; words in capitals are for you to fill in."
    )
    kinds = table(("kind", "meaning"), ((code(name), cell(text)) for name, text in KINDS.items()))
    actors = table(("who can act", "meaning"), ((code(name), cell(text)) for name, text in ACTORS.items()))
    parts = [intro, kinds, actors]
    for protocol, found in TABLES.items():
        parts += [f"## {_TITLES[protocol]}", table(_HEAD, _rows(protocol, found.rows))]
    return "\n\n".join(parts)


def _rows(protocol: str, rows: Iterable[CodeFacts]) -> Iterable[tuple[str, ...]]:
    """A line for each code, and one for all apis that share a meaning of their own."""
    lines: dict[CodeFacts, list[str]] = {}
    for row in rows:
        place = "" if row.api is None else _api(protocol, row)
        lines.setdefault(_anywhere(row), []).append(place)
    in_order = sorted(lines.items(), key=lambda line: (line[0].code, line[1]))
    for row, places in in_order:
        apis = ", ".join(code(name) for name in places if name) or "any"
        yield (
            str(row.code), code(row.name), apis, row.kind, row.actor, cell(row.meaning), cell(row.now), cell(row.fix)
        )  # fmt: skip


def _api(protocol: str, row: CodeFacts) -> str:
    return api_names()[int(row.api or 0)] if protocol == "kafka" else str(row.api)


def _anywhere(row: CodeFacts) -> CodeFacts:
    return replace(row, api=None if row.api is None else "some")
