"""What a screen shows: blocks of rows, each of which may open another screen. Values only, nothing is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipeline.dashboard.queries.progress.groups import Group
from pipeline.dashboard.queries.progress.partitions import Place
from pipeline.dashboard.queries.traffic.exchange_search import Search


@dataclass(frozen=True, slots=True)
class Start:
    """The first screen: incidents, groups, and ways to all else."""


@dataclass(frozen=True, slots=True)
class OneIncident:
    """An incident by its id."""

    incident_id: str


@dataclass(frozen=True, slots=True)
class OneFinding:
    """A finding by its id."""

    finding_id: str


@dataclass(frozen=True, slots=True)
class Connections:
    """All connections."""


@dataclass(frozen=True, slots=True)
class OneConnection:
    """A connection around a moment.

    Attributes:
        connection_id: which.
        at: the moment.
        exchange_id: the exchange that is looked at; None: none.
    """

    connection_id: str
    at: datetime
    exchange_id: str | None = None


@dataclass(frozen=True, slots=True)
class Messages:
    """Exchanges that match, the newest first.

    Attributes:
        wanted: what they have to have.
        name: the same in words.
        before: only those before this moment; None: the newest of all.
    """

    wanted: Search
    name: str
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class OneExchange:
    """A request with its response.

    Attributes:
        exchange_id: which.
        ts: its time, or one near it, by which it is found sooner; None: not known.
    """

    exchange_id: str
    ts: datetime | None


@dataclass(frozen=True, slots=True)
class Bytes:
    """The bytes of a field.

    Attributes:
        name: of the field.
        value: its type and value.
        data: its bytes.
        start: where they begin in the message.
    """

    name: str
    value: str
    data: bytes
    start: int


Target = (
    Start | OneIncident | OneFinding | Group | Place | Connections | OneConnection | Messages | OneExchange | Bytes
)  # fmt: skip
"""Where a row leads."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a block.

    Attributes:
        head: its heading.
        is_right: whether values are aligned at their right.
        from_width: columns of a terminal from which on it is shown.
        most: columns of a terminal that it takes at most; 0: a quarter of them.
        style: of its values.
    """

    head: str = ""
    is_right: bool = False
    from_width: int = 0
    most: int = 0
    style: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row; its texts are as they come from the wire, and are made printable when they are drawn.

    Attributes:
        cells: a text for each column of its block.
        opens: where Enter leads; None: nowhere.
        style: of the whole row.
    """

    cells: tuple[str, ...]
    opens: Target | None = None
    style: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows with common columns; of the last column the text is wrapped, or with ``is_cut`` cut at the line's end."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """A screen: its name in the way that leads to it, and its blocks."""

    name: str
    blocks: tuple[Block, ...]


PROSE = (Column(style="dim"), Column())
"""Columns of labelled sentences."""
WAYS = (Column(most=44), Column(style="dim"))
"""Columns of lines that lead on: where to, and what is there."""


def prose(lines: Sequence[tuple[str, str]], title: str = "") -> Block:
    """A block of sentences, each after its label."""
    return Block(title, PROSE, [Row((label, text)) for label, text in lines if text])


def sentence(text: str, style: str = "") -> Block:
    """A block of one sentence."""
    return Block("", (Column(),), [Row((text,), style=style)])
