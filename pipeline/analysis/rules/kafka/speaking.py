"""The client library that each finding is about: its advice is given in the words of that library."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from pipeline.analysis.libraries import library_of, spoken
from pipeline.analysis.rules.callers import Caller, callers_in, host_of_address
from pipeline.analysis.rules.model import Finding
from pipeline.analysis.tables import Tables

LIBRARY: Final = "library"
"""Names the library of all clients of a finding in its ``details``; absent if it is not known, or not one."""
_SOFTWARE: Final = """
    SELECT client_id, host_of(client) AS host, arg_max(software_name, (ts, exchange_id)) AS software FROM states
    WHERE kind = 'software' AND software_name IS NOT NULL GROUP BY ALL
"""
_MEMBERS: Final = """
    SELECT DISTINCT group_id, client_id, host_of(client) AS host FROM states
    WHERE kind IN ('join', 'heartbeat') AND group_id IN (SELECT unnest($groups))
"""


def in_words_of_libraries(findings: Iterable[Finding], tables: Tables) -> list[Finding]:
    """Findings with the library of the clients that they name; where they name none, of the group's members.

    Args:
        findings: of any rule.
        tables: ``states``: software by KIP-511, and members of groups.
    """
    found = list(findings)
    if not found:
        return found
    named = [list(dict.fromkeys(callers_in(dict(finding.details)))) for finding in found]
    nameless = {one.group_id for one, callers in zip(found, named, strict=True) if one.group_id and not callers}
    software = {Caller(row.client_id, host_of_address(row.host)): row.software for row in tables.rows(_SOFTWARE)}
    members: defaultdict[str, set[Caller]] = defaultdict(set)
    for row in tables.rows(_MEMBERS, groups=sorted(nameless)) if nameless else ():
        members[row.group_id].add(Caller(row.client_id, host_of_address(row.host)))
    return [
        _spoken(finding, _of_all(callers or members.get(finding.group_id or "", ()), software))
        for finding, callers in zip(found, named, strict=True)
    ]


def _of_all(callers: Iterable[Caller], software: Mapping[Caller, str]) -> str | None:
    """The library of all of them, if it is one."""
    libraries = {_of_one(caller, software) for caller in callers}
    return libraries.pop() if len(libraries) == 1 else None


def _of_one(caller: Caller, software: Mapping[Caller, str]) -> str | None:
    if caller.host is not None:
        return library_of(software.get(caller), caller.client_id)
    names = {library_of(name, None) for known, name in software.items() if known.client_id == caller.client_id}
    return names.pop() if len(names) == 1 else library_of(None, caller.client_id)


def _spoken(finding: Finding, library: str | None) -> Finding:
    if library is None:
        return finding
    details = {**finding.details, LIBRARY: library}
    return replace(finding, advice=spoken(finding.advice, library), details=details)
