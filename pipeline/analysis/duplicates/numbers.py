"""Connections that have the initial sequence numbers of another one: the same, behind address translation.

Translation of addresses and ports keeps the numbers that both sides draw at random (RFC 9293, 3.4.1), and shows each
packet again within moments: so copies of a connection are known however little it carries, if they carry as many bytes.
Numbers that come back later, between the same hosts, or for many hosts, are constants of a program and show nothing; a
proxy draws numbers of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from decoder.model import CONNECTION
from pipeline.analysis.duplicates.alike import SKEW_US, schema_of_columns
from pipeline.analysis.hours import HOUR_US
from pipeline.lake.arrow import arrow_array
from pipeline.tables import Column

TRANSLATED_US = 50_000
"""Address translation shows a SYN again within this time, µs; of two agents within SKEW_US, by which clocks differ."""

OF_NUMBERS = ("connection_id", "agent_id", "ts", "method", "life")
"""Columns of ``bronze.gaps`` that :func:`same_numbers` reads."""
NUMBERS_SQL = "get_json_object(life, '$.isn')"
"""What connections with the same numbers have in common, as SQL of Spark over rows of ``bronze.gaps``."""
SAME_NUMBERS = (
    Column("hour", "bigint", "µs since the epoch"),
    Column("first_flow", "string", ""),
    Column("second_flow", "string", ""),
    Column("shift_us", "bigint", "so much later the second one begins"),
)
"""What :func:`same_numbers` gives."""

MOST_COPIES = 8
"""More connections with the same numbers are no copies of each other: translation shows a packet a few times."""
_FIELDS = (
    r'"flow_id":"(?P<flow>[^"\\]*)","client_ip":"(?P<client>[^"\\]*)","client_port":\d+,'
    r'"server_ip":"(?P<server>[^"\\]*)","server_port":(?P<port>\d+),"began_us":(?P<us>\d{1,18}),'
    r'"ended_us":(?P<ended>\d{1,18}),.*"isn":\[(?P<isn>\d+,\d+)\].*"bytes":\[(?P<size>\d+,\d+)\]'
)
"""Of ``life``, as agents write it, where the numbers of both sides are known."""


class Begun(NamedTuple):
    """A connection.

    Attributes:
        name: by which it is known.
        agent: who saw it.
        numbers: initial sequence numbers of both sides.
        size: bytes of both sides.
        hosts: of client and server.
        us: when it began, µs since the epoch.
    """

    name: str
    agent: str
    numbers: object
    size: object
    hosts: object
    us: int


def one_each(some: Iterable[Begun]) -> list[list[Begun]]:
    """Connections that are one, the one seen first at first; those that have no copy are left out."""
    by_numbers: defaultdict[object, list[Begun]] = defaultdict(list)
    for one in some:
        by_numbers[one.numbers].append(one)
    found = []
    for alike in by_numbers.values():
        if len(alike) == 1 or not _are_drawn(alike):
            continue
        by_size: defaultdict[object, list[Begun]] = defaultdict(list)
        for one in sorted(alike, key=lambda one: (one.us, one.name)):
            by_size[one.size].append(one)
        found += [copies for copies in by_size.values() if len(copies) > 1]
    return found


def _are_drawn(alike: list[Begun]) -> bool:
    """Whether the numbers that connections share were drawn at random, as far as these show it."""
    times = [one.us for one in alike]
    reach = SKEW_US if len({one.agent for one in alike}) > 1 else TRANSLATED_US
    are_apart = len({one.hosts for one in alike}) == len(alike)
    return len(alike) <= MOST_COPIES and are_apart and max(times) - min(times) <= reach


def same_numbers(gaps: pa.Table) -> pa.Table:
    """Which flows are one, by their initial sequence numbers: rows of :data:`SAME_NUMBERS`, by hour.

    Args:
        gaps: rows of ``bronze.gaps``, of connections with the same numbers all of them.
    """
    schema = schema_of_columns(SAME_NUMBERS)
    if "life" not in gaps.column_names or not gaps.num_rows:
        return schema.empty_table()
    gaps = gaps.filter(pc.and_(pc.equal(gaps.column("method"), CONNECTION), pc.is_valid(gaps.column("life"))))
    fields = pc.extract_regex(gaps.column("life"), _FIELDS)
    gaps = gaps.append_column("fields", fields).filter(pc.is_valid(fields))
    hours: defaultdict[str, set[int]] = defaultdict(set)
    latest: dict[str, tuple[int, Begun]] = {}
    columns = (gaps.column(name).to_pylist() for name in ("agent_id", "fields"))
    for agent, found, us in zip(*columns, gaps.column("ts").cast(pa.int64()).to_pylist(), strict=True):
        flow, ended = found["flow"], int(found["ended"])
        hours[flow].add(us // HOUR_US * HOUR_US)
        hosts = found["client"], found["server"], found["port"]
        seen = ended, Begun(flow, agent, found["isn"], found["size"], hosts, int(found["us"]))
        latest[flow] = max(seen, latest.get(flow, seen))
    begun = [one for _, one in latest.values()]
    rows = sorted(
        (hour, first.name, second.name, second.us - first.us)
        for first, *others in one_each(begun)
        for second in others
        for hour in hours[first.name] | hours[second.name]
    )
    values = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.Table.from_arrays(
        [arrow_array(list(each), field.type) for each, field in zip(values, schema, strict=True)], schema=schema
    )
