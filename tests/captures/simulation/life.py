"""A conversation played once more, by others, at another time, where the last one ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoder.kafka.apis import ApiKey
from pipeline.analysis.cluster_catalog import Fact
from tests.captures.simulation.conversation import NAMES, PARTS, Conversation
from tests.captures.simulation.pace import Micros, Pace

CLUSTER = "simulated"
_TIMES = ("ts", "request_ts", "response_ts")
_OFFSETS = ("offset", "next_offset", "high_watermark", "last_stable_offset", "log_start_offset")
_BATCH_OFFSETS = ("base_offset", "last_offset")
_RECORD_TIMES = ("base_timestamp", "max_timestamp")
_IDS_OF_A_LIFE = 10_000_000
"""More than a recording has producer ids."""
_PORTS, _FIRST_PORT = 28_000, 32_768


@dataclass
class Life:
    """One of a copy's lives.

    Args:
        conversation: what is played.
        copy: which copy it is; the copies have names, addresses and ids of their own.
        number: which of its lives, from 0 on; offsets and generations continue from life to life.
        pace: when.
    """

    conversation: Conversation
    copy: int
    number: int
    pace: Pace
    _played: dict[str, Micros] = field(init=False)
    _at: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._played = {part: self.pace.played(times) for part, times in self.conversation.times.items()}
        self._at = dict.fromkeys(PARTS, 0)

    @property
    def is_over(self) -> bool:
        """Whether all of it was taken."""
        return all(self._at[part] == len(self._played[part]) for part in PARTS)

    def until(self, us: int) -> dict[str, pa.Table]:
        """What is played until then (µs since the epoch) and was not taken yet, by the names of PARTS."""
        found = {}
        for part in PARTS:
            begin, end = self._at[part], int(np.searchsorted(self._played[part], us))
            self._at[part] = end
            found[part] = self._renamed(part, begin, end)
        return found

    def facts(self) -> Iterable[Fact]:
        """Where the cluster is, and which topics it has."""
        held = self.conversation.catalog
        first_us, last_us = self.pace.start_us, self.pace.end_us
        servers = [self._address(server) for server, _ in held.brokers]
        for server in servers:
            yield Fact(server, CLUSTER, None, None, first_us, last_us)
        for (_, topic_id), seen in held.topics.items():
            yield Fact(servers[0], CLUSTER, self.name(topic_id), self.name(seen.value), first_us, last_us)

    def name(self, recorded: str) -> str:
        """A group, topic, client or id of this copy."""
        return f"{prefix_of(self.copy)}{recorded}" if recorded else recorded

    def _renamed(self, part: str, begin: int, end: int) -> pa.Table:
        rows = self.conversation.parts[part].slice(begin, end - begin)
        if not rows.num_rows:
            return rows
        columns = {name: rows.column(name) for name in rows.column_names}
        self._at_its_time(columns, self._played[part][begin:end])
        for name in ("exchange_id", "connection_id", "flow_id"):
            if name in columns:
                columns[name] = pc.binary_join_element_wise(f"{self.copy:02x}{self.number:02x}", columns[name], "")
        ways: dict[str, Callable[[str], str]] = {
            **dict.fromkeys(NAMES, self.name), **dict.fromkeys(("server", "client"), self._address),
            **dict.fromkeys(("server_ip", "client_ip"), self._host), "cluster": lambda _: CLUSTER,
            "member_id": lambda name: self.name(name) + (f".{self.number}" if name and self.number else ""),
        }  # fmt: skip
        if "command" not in columns:
            columns |= {name: _each(columns[name], way) for name, way in ways.items() if name in columns}
        else:
            hosts = ("server", "client", "server_ip", "client_ip")
            columns |= {name: _each(columns[name], ways[name]) for name in hosts if name in columns}
        if "client_port" in columns:
            columns["client_port"] = pa.chunked_array([_ports(columns["client_port"], self.number)])
        self._going_on(columns, part, slice(begin, end))
        self._bodies(columns)
        arrays = [columns[field.name].cast(field.type) for field in rows.schema]
        return pa.Table.from_arrays(arrays, schema=rows.schema)

    def _at_its_time(self, columns: dict[str, pa.ChunkedArray], played: Micros) -> None:
        """Requests are as long before their answers as they were: who waits for what has not become slower.

        A Produce request comes before all that came after it, for its records may be read before it is answered.
        """
        moved = pa.array(played)
        recorded = {name: columns[name].cast(pa.int64()) for name in _TIMES if name in columns}
        anchor = recorded["ts"]
        if "response_ts" in recorded:
            anchor = pc.coalesce(recorded["response_ts"], anchor)
        for name, us in recorded.items():
            at = pc.add(moved, pc.subtract(us, anchor))
            if name != "response_ts" and "api_key" in columns:
                first = pa.array(self.pace.played(us.to_numpy().astype(np.int64)))
                is_produce = pc.fill_null(pc.equal(columns["api_key"], int(ApiKey.PRODUCE)), False)
                at = pc.if_else(is_produce, pc.min_element_wise(at, first), at)
            columns[name] = at.cast(columns[name].type)
        columns["date"] = columns["ts"].cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
        for name in _RECORD_TIMES:
            if name in columns:
                ms = pc.fill_null(columns[name], 0).to_numpy().astype(np.int64)
                then = pa.array(self.pace.played(ms * 1000) // 1000)
                columns[name] = pc.if_else(pc.greater(columns[name], 0), then, columns[name])

    def _going_on(self, columns: dict[str, pa.ChunkedArray], part: str, those: slice) -> None:
        number, conversation = self.number, self.conversation
        if "producer_id" in columns:
            columns["producer_id"] = _higher(columns["producer_id"], (self.copy * 256 + number) * _IDS_OF_A_LIFE)
        if not number:
            return
        if "session_id" in columns and part != "commands":
            moved = pc.bit_wise_and(pc.add(columns["session_id"].cast(pa.int64()), number * 1_000_003), 0x7FFFFFFF)
            columns["session_id"] = pc.if_else(pc.equal(columns["session_id"], 0), 0, moved)
        if part in conversation.grown:
            grown = number * conversation.grown[part][those]
            for name in (*_OFFSETS, *_BATCH_OFFSETS):
                if name in columns:
                    columns[name] = _higher(columns[name], pa.array(grown))
        if part == "events":
            is_none = pc.and_(pc.is_null(columns["offset"]), pc.equal(columns["error_code"], 0))
            is_first = pc.and_(pc.equal(columns["kind"], "fetched_commit"), pc.fill_null(is_none, False))
            columns["offset"] = pc.if_else(is_first, pa.array(grown), columns["offset"])
        if part in conversation.generations:
            later = pa.array(number * conversation.generations[part][those])
            has_one = pc.greater(columns["generation"], 0)
            moved = pc.add(columns["generation"].cast(pa.int64()), later)
            columns["generation"] = pc.if_else(has_one, moved, columns["generation"])

    def _bodies(self, columns: dict[str, pa.ChunkedArray]) -> None:
        pattern = self.conversation.quoted_names
        if "request_body" not in columns or not pattern:
            return
        for name in ("request_body", "response_body"):
            to = f'"{prefix_of(self.copy)}\\1"'
            columns[name] = pc.replace_substring_regex(columns[name], pattern=pattern, replacement=to)

    def _address(self, recorded: str) -> str:
        host, _, port = recorded.rpartition(":")
        is_client = port.isdigit() and int(port) >= _FIRST_PORT
        return f"{self._host(host)}:{_port(int(port), self.number) if is_client else port}"

    def _host(self, recorded: str) -> str:
        """An address in the copy's own networks, one of clients and one of servers."""
        _, _, network, last = recorded.split(".")
        return f"10.{2 if network == '0' else 3}.{self.copy}.{last}"


def prefix_of(copy: int) -> str:
    """What all names of a copy begin with."""
    return f"team{copy:02d}."


def _each(column: pa.ChunkedArray, way: Callable[[str], str]) -> pa.ChunkedArray:
    """The column with another text for each that it has; of few different ones."""
    coded = column.combine_chunks().dictionary_encode()
    values = pa.array([way(text) for text in coded.dictionary.to_pylist()], pa.string())
    return pa.chunked_array([values.take(coded.indices)])


def _higher(column: pa.ChunkedArray, by: int | pa.Array) -> pa.ChunkedArray:
    """The numbers moved up; those below zero mean that there is none."""
    return pc.if_else(pc.greater_equal(column, 0), pc.add(column, by), column)


def _port(port: int, number: int) -> int:
    return _FIRST_PORT + (port - _FIRST_PORT + number * 977) % _PORTS


def _ports(column: pa.ChunkedArray, number: int) -> pa.Array:
    ports = column.to_numpy()
    return pa.array(np.where(ports >= _FIRST_PORT, _FIRST_PORT + (ports - _FIRST_PORT + number * 977) % _PORTS, ports))
