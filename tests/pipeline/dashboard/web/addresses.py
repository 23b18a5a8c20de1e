"""Every page of the dashboard, as an address of a lake of the sample captures: what is photographed and examined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pipeline.commands.demo import SAMPLES
from pipeline.dashboard.sql import query
from tests.paths import ROOT
from tests.pipeline.lakes import diagnosed_lake

_PARTITION = {"group": "billing", "topic": "payments", "partition": "2"}
_WORST = """
SELECT i.incident_id AS incident, e.exchange_id AS exchange, e.connection_id AS connection
FROM gold.incidents AS i
JOIN gold.findings AS f ON f.finding_id = i.root_id
JOIN silver.exchanges AS e ON list_contains(f.evidence, e.exchange_id)
WHERE list_contains(i.rules, 'stuck_commit') ORDER BY e.ts LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Address:
    """One view of the page.

    Attributes:
        name: of its picture.
        path: below the page's root.
        parameters: of the address; ``{incident}``, ``{exchange}`` and ``{connection}`` are those of the stuck commit.
        press: the button that is pressed for its picture.
        is_pictured: whether ``docs/screens`` shows it.
    """

    name: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    press: str = ""
    is_pictured: bool = True

    def of(self, url: str, named: Mapping[str, str]) -> str:
        """The whole address on a server."""
        given = {name: value.format_map(named) for name, value in self.parameters.items()}
        return f"{url}/{self.path}" + (f"?{urlencode(given)}" if given else "")


_PAGES = {file.stem for file in (ROOT / "pipeline" / "dashboard" / "web" / "page").rglob("[a-z]*.py")}
_ALL = (
    Address("home", ""),
    Address("incident", "incident", {"incident": "{incident}"}),
    Address("findings", "findings"),
    Address("search", "search", {"q": "billing"}),
    Address("groups", "groups", {"range": "all"}, is_pictured=False),
    Address("partition", "partitions", _PARTITION),
    Address("group", "group", {"group": "billing"}),
    Address("transactions", "transactions", {"range": "all"}),
    Address("clients", "clients", {"range": "all"}),
    Address("connections", "connections", {"range": "all"}),
    Address("mongodb", "mongodb", {"range": "all"}),
    Address("latency", "latency"),
    Address("exchanges", "exchanges"),
    Address("exchange", "exchanges", {"exchange": "{exchange}"}),
    Address("sequence", "sequence", {"exchange": "{exchange}"}),
    Address("compare", "compare", {"exchange": "{exchange}"}),
    Address("quality", "quality", {"range": "all"}),
    Address("sql", "query", {"sql": "FROM consumer_lag"}, press="Run"),
)
ADDRESSES = tuple(one for one in _ALL if not one.path or one.path in _PAGES)
PICTURED = tuple(one for one in ADDRESSES if one.is_pictured)


def sample_lake(folder: Path) -> Path:
    """A lake of the demo's captures, made without a JVM."""
    return diagnosed_lake(folder / "lake", *SAMPLES)


def names_in(lake: Path) -> dict[str, str]:
    """What stands for ``{incident}`` and its likes in this lake."""
    found: list[dict[str, Any]] = query(lake, _WORST).to_pylist()
    if not found:
        raise ValueError(f"{lake} holds no stuck commit: it is not a lake of the sample captures")
    return found[0]
