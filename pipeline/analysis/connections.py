"""``silver.connections``: TCP connections as the agents' rows describe them, each once, with how it ended in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from decoder.fields import parsed
from decoder.model import CONNECTION
from pipeline.analysis.cluster_catalog import FAR_AWAY_US
from pipeline.analysis.duplicates.counted_connections import counted_by
from pipeline.analysis.fit import schema_of, table_of
from pipeline.analysis.icmp import name_of
from pipeline.other_protocols import TLS
from pipeline.tables import CONNECTIONS, HOWS

Row = Mapping[str, Any]
"""Columns of ``silver.connections``; times are µs since the epoch, or what Arrow makes of them."""

_NOT_READY = ("refused", "unanswered")
_SIDES = ("client", "server")
_MOST = 2**62
"""No count or time is larger."""
_MOST_PORT, _MOST_BYTE = 2**16 - 1, 2**8 - 1
_DAY_US = 86_400_000_000
_AT_ONCE_US = 1_000_000
"""A server that closes within this time (µs) turns the client away."""
_WORDS: Mapping[str, tuple[str, ...]] = {
    "opened": ("yes", "refused", "unanswered"),
    "closed_by": _SIDES,
    "reset_by": _SIDES,
    "state": ("asking", "answering", "idle"),
}
"""What a field may hold; another value is not known."""
_TEXTS = ("speaks", "asks", "answers", "tls_offered", "tls_version", "server_name", "alert", "client_ip")
_NUMBERS = {
    "syns": "syns", "round_trip_us": "round_trip_us", "unanswered": "unanswered", "silence_us": "silence_us",
    "silent_until_us": "silent_until_ts",
}  # fmt: skip
"""Numbers of ``life`` by the columns that they are in."""
_PAIRS = {
    "isn": ("client_isn", "server_isn"),
    "packets": ("client_packets", "server_packets"), "bytes": ("client_bytes", "server_bytes"),
    "again": ("client_sent_again", "server_sent_again"),
    "unacknowledged": ("client_unacknowledged", "server_unacknowledged"),
    "keepalives": ("client_keepalives", "server_keepalives"),
    "zero_windows": ("client_zero_windows", "server_zero_windows"),
    "stalled_us": ("client_stalled_us", "server_stalled_us"), "spoke_us": ("client_spoke_ts", "server_spoke_ts"),
    "first_again_us": ("client_first_sent_again_ts", "server_first_sent_again_ts"),
    "last_again_us": ("client_last_sent_again_ts", "server_last_sent_again_ts"),
    "first_zero_window_us": ("client_first_zero_window_ts", "server_first_zero_window_ts"),
    "frames": ("requests", "responses"),
}  # fmt: skip
"""The same of those that both sides have."""
_TIMES = tuple(
    name
    for name in (*_NUMBERS.values(), *(name for pair in _PAIRS.values() for name in pair), "icmp_first_ts")
    if name.endswith("_ts")
)


def connections(gaps: pa.Table, others: pa.Table | None = None, *, only_looked_at: bool = False) -> pa.Table:
    """Rows of ``silver.connections``; of one that two agents saw, as the one that saw more of it.

    Args:
        gaps: rows of ``bronze.gaps``; those of older releases have no column ``life``.
        others: rows of ``silver.duplicate_flows``.
        only_looked_at: leave out connections that no rule looks at: those that were served without a stall or a request
            that is open at their end, and those captured too briefly, but the number of SYNs that were not
            read.
    """
    if "life" not in gaps.column_names:
        return schema_of(CONNECTIONS).empty_table()
    gaps = gaps.filter(pc.and_(pc.equal(gaps.column("method"), CONNECTION), pc.is_valid(gaps.column("life"))))
    if only_looked_at and gaps.num_rows:
        gaps = gaps.filter(_is_looked_at(gaps))
    found: dict[str, dict[str, Any]] = {}
    columns = [gaps.column(name).to_pylist() for name in ("connection_id", "agent_id", "seq", "life")]
    days = gaps.column("ts").cast(pa.int64()).to_pylist()
    for name, agent, seq, life, us in zip(*columns, days, strict=True):
        row = _read(name, life)
        if row is None:
            continue
        row.update(agent_id=agent, seq=seq, date=us // _DAY_US)
        known = found.get(row["flow_id"])
        if known is None or rank(known) < rank(row):
            found[row["flow_id"]] = row
    copied = counted_by(found.values(), others)
    rows = sorted(found.values(), key=lambda row: (row["first_ts"], row["connection_id"]))
    return table_of(({**row, "counted_connection_id": copied.get(row["connection_id"])} for row in rows), CONNECTIONS)


def are_in(gaps: pa.Table) -> bool:
    """Whether rows of ``bronze.gaps`` state a connection that rules look at, whether or not it spoke."""
    if "life" not in gaps.column_names:
        return False
    is_one = pc.equal(gaps.column("method"), CONNECTION)
    return bool(pc.any(pc.and_(is_one, pc.fill_null(_is_looked_at(gaps), fill_value=False))).as_py())


def rank(row: Row) -> tuple[int, int, str]:
    """Of rows of one connection that with the largest counts: by packets, ``seq`` and connection id, in this order."""
    return (row["client_packets"] or 0) + (row["server_packets"] or 0), row["seq"], row["connection_id"]


def is_of(row: Row, host: str) -> bool:
    """Whether an address, or address and port, is one of its ends."""
    ends = [(row[f"{side}_ip"], row[f"{side}_port"]) for side in _SIDES]
    return any(host in (ip, f"{ip}:{port}", f"[{ip}]:{port}") for ip, port in ends if ip)


def speaks(row: Row) -> str:
    """What is spoken on it; empty if nothing is known."""
    if row["how"] == "silent":
        return "nothing"
    talk = [row[name] for name in ("asks", "answers") if row[name]]
    if talk:
        return " / ".join(dict.fromkeys(talk))
    version = row["tls_version"]
    return f"tls {version}" if version else row["speaks"] or ""


def of_each_kind(some: Iterable[Row]) -> dict[str, int]:
    """How many connections ended how, the most frequent first."""
    counts: dict[str, int] = {}
    for row in some:
        counts[row["ended"]] = counts.get(row["ended"], 0) + row["connections"]
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _is_looked_at(gaps: pa.Table) -> pa.Array:
    """By how agents write ``life``: ``how`` comes first. SYNs that were not read show how large a flood is."""
    life = gaps.column("life")
    served, unknown = (pc.starts_with(life, f'{{"how":"{how}"') for how in ("served", "unknown"))
    is_stalled = pc.or_(pc.match_substring(life, '"stalled_us":'), pc.match_substring(life, '"state":"asking"'))
    is_unread = pc.starts_with(life, '{"how":"unknown","server_ip":""')
    return pc.or_(is_unread, pc.and_(pc.invert(unknown), pc.or_(pc.invert(served), is_stalled)))


def _read(name: str, life: str) -> dict[str, Any] | None:
    """The columns that ``life`` states, where type and bounds are right; None where one is missing that all have."""
    values = parsed(life)
    how, ip, port = values.get("how"), values.get("server_ip"), values.get("server_port")
    first, last = values.get("began_us"), values.get("ended_us")
    is_named = type(how) is str and type(ip) is str and _is_count(port, _MOST_PORT)
    if not is_named or not _is_count(last, FAR_AWAY_US) or not _is_count(first, last):
        return None
    row: dict[str, Any] = dict.fromkeys(CONNECTIONS.column_names)
    flow, number, port_of_client = values.get("flow_id"), values.get("connections", 1), values.get("client_port")
    row.update(
        connection_id=name, flow_id=flow if type(flow) is str else name, how=how if how in HOWS else "unknown",
        connections=max(number, 1) if _is_count(number) else 1, server_ip=ip, server_port=port,
        first_ts=first, last_ts=last, client_port=port_of_client if _is_count(port_of_client, _MOST_PORT) else None,
        is_closed=_bool(values.get("closed")), is_proxied=_bool(values.get("is_proxied")),
        is_interim=True if values.get("is_interim") is True else None,
    )  # fmt: skip
    row.update({column: values[name] for name, column in _NUMBERS.items() if _is_count(values.get(name))})
    row.update({name: values[name] for name in _TEXTS if type(values.get(name)) is str})
    row.update({name: values[name] for name, known in _WORDS.items() if values.get(name) in known})
    row["opened"] = row["opened"] or "unknown"
    for pairs, (client, server) in _PAIRS.items():
        pair = values.get(pairs)
        if type(pair) is list and len(pair) == len(_SIDES) and all(one is None or _is_count(one) for one in pair):
            row[client], row[server] = pair
    row.update(_icmp(values.get("icmp")))
    for time in _TIMES:
        if row[time] is not None and row[time] > FAR_AWAY_US:
            row[time] = None
    row["is_failed"], row["ended"] = _is_failed(row), _ended(row)
    return row


def _icmp(reported: object) -> dict[str, Any]:
    """The columns about ICMP errors; none where a field is missing that all have."""
    if type(reported) is not dict or type(reported.get("by")) is not str or reported.get("of") not in _SIDES:
        return {}
    kind, code, messages, first_us = (reported.get(name, -1) for name in ("type", "code", "messages", "first_us"))
    if not (_is_count(kind, _MOST_BYTE) and _is_count(code, _MOST_BYTE) and _is_count(messages)):
        return {}
    return {
        "icmp": name_of(kind, code, is_v6=":" in reported["by"]), "icmp_type": kind, "icmp_code": code,
        "icmp_by": reported["by"], "icmp_of": reported["of"], "icmp_messages": messages,
        "icmp_mtu": reported["mtu"] if _is_count(reported.get("mtu")) else None,
        "icmp_first_ts": first_us if _is_count(first_us) else None,
    }  # fmt: skip


def _is_count(value: Any, most: Any = _MOST) -> bool:
    return type(value) is int and 0 <= value <= most


def _bool(value: object) -> bool | None:
    return value if type(value) is bool else None


def _is_unacknowledged(row: Row) -> bool:
    return bool(row["client_unacknowledged"] or row["server_unacknowledged"])


def _is_repeated(row: Row) -> bool:
    """Whether the client sent nothing but its SYN, again and again, although the server answered."""
    return bool(row["opened"] == "yes" and 1 < (row["syns"] or 0) == row["client_packets"])


def _is_turned_away(row: Row) -> bool:
    """Whether the server closed before a byte was sent, or a TLS handshake that it did not continue in TLS."""
    is_by_server = row["closed_by"] == "server" or row["reset_by"] == "server"
    if row["how"] == "silent":
        return bool(is_by_server and row["last_ts"] - row["first_ts"] <= _AT_ONCE_US)
    is_other = row["how"] == "other" and row["asks"] == TLS
    return is_other and (row["answers"] not in (None, TLS, "nothing") or (row["answers"] == "nothing" and is_by_server))


def _is_failed(row: Row) -> bool:
    """Whether a client got no connection, or lost one amid its work."""
    if row["how"] in _NOT_READY or row["alert"] or _is_repeated(row) or _is_turned_away(row):
        return True
    return row["how"] == "spoke" and (row["state"] in ("asking", "answering") or _is_unacknowledged(row))


def _ended(row: Row) -> str:
    """How it ended, in a few words."""
    if row["how"] in _NOT_READY:
        rejected = f", ICMP: {row['icmp']}" if row["icmp"] else ""
        return "refused" if row["how"] == "refused" else f"no answer to SYN{rejected}"
    if row["alert"]:
        side, _, name = row["alert"].partition(" ")
        return f"TLS alert {name} by the {side}"
    if row["is_closed"] is None:
        return "unknown"
    if _is_repeated(row):
        return "answer to SYN not received"
    by = row["reset_by"] or row["closed_by"]
    if by is None and (row["how"] == "unknown" or 0 in (row["client_packets"], row["server_packets"])):
        return "unknown"
    what = "open" if by is None else f"reset by the {by}" if row["reset_by"] else f"closed by the {by}"
    if row["state"] in ("asking", "answering"):
        what += ", request open" if row["state"] == "asking" else ", amid a response"
    elif _is_unacknowledged(row):
        what += ", bytes not acknowledged"
    return what
