"""TCP connections as the agent's rows describe them: each once, with how it ended in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from decoder.fields import parsed
from decoder.model import CONNECTION
from pipeline.analysis.facts import FAR_AWAY_US

Values = Mapping[str, Any]
"""Fields of ``life`` (docs/landing.md), and ``connection_id``."""

_NOT_READY = ("refused", "unanswered")
_SIDES = ("client", "server")
_OF_ALL: Mapping[str, type] = {"how": str, "server_ip": str, "server_port": int, "began_us": int, "ended_us": int}
_SPOKE = "spoke_us"
"""The field of which one side may be null."""
_MOST = 2**62
"""No count or time is larger."""


def connections_of(gaps: pa.Table) -> list[Values]:
    """Each connection once, in the order in which they began; one that two agents saw as the one that saw more of it.

    Args:
        gaps: rows of ``bronze.gaps``; those of older releases have no column ``life``.
    """
    if "life" not in gaps.column_names:
        return []
    gaps = gaps.filter(pc.and_(pc.equal(gaps.column("method"), CONNECTION), pc.is_valid(gaps.column("life"))))
    newest: dict[str, tuple[int, str]] = {}
    for name, seq, life in zip(*(gaps.column(n).to_pylist() for n in ("connection_id", "seq", "life")), strict=True):
        if name not in newest or newest[name][0] < seq:
            newest[name] = seq, life
    found: dict[str, Values] = {}
    for name, (_, life) in sorted(newest.items()):
        values = _read(name, life)
        if values is None:
            continue
        one = str(values.get("flow_id", name))
        if one not in found or _packets(found[one]) < _packets(values):
            found[one] = values
    return sorted(found.values(), key=lambda values: (values["began_us"], values["connection_id"]))


def is_failed(values: Values) -> bool:
    """Whether a client got no connection, or lost one amid its work."""
    if values["how"] in _NOT_READY or values.get("alert"):
        return True
    is_amid = values.get("state") in ("asking", "answering") or any(values.get("unacknowledged", ()))
    return values["how"] == "spoke" and is_amid


def is_of(values: Values, host: str) -> bool:
    """Whether an address, or address and port, is one of its ends."""
    ends = [(values.get(f"{side}_ip", ""), values.get(f"{side}_port", 0)) for side in ("client", "server")]
    return any(host in (ip, f"{ip}:{port}", f"[{ip}]:{port}") for ip, port in ends)


def ending(values: Values) -> str:
    """How it ended, in a few words."""
    how = values["how"]
    if how in _NOT_READY:
        return "refused" if how == "refused" else "no answer to SYN"
    if values.get("alert"):
        side, _, name = str(values["alert"]).partition(" ")
        return f"TLS alert {name} by the {side}"
    if "closed" not in values:
        return "unknown"
    by = values.get("reset_by") or values.get("closed_by")
    what = "open" if by is None else f"reset by the {by}" if values.get("reset_by") else f"closed by the {by}"
    state = values.get("state")
    if state in ("asking", "answering"):
        what += ", request open" if state == "asking" else ", amid a response"
    elif any(values.get("unacknowledged", ())):
        what += ", bytes not acknowledged"
    return what


def speaks(values: Values) -> str:
    """What is spoken on it; empty if nothing is known."""
    if values["how"] == "silent":
        return "nothing"
    talk = [values[name] for name in ("asks", "answers") if values.get(name)]
    if talk:
        return " / ".join(dict.fromkeys(talk))
    version = values.get("tls_version")
    return f"tls {version}" if version else str(values.get("speaks", ""))


def of_each_kind(some: Iterable[Values]) -> dict[str, int]:
    """How many connections ended how, the most frequent first."""
    counts: dict[str, int] = {}
    for values in some:
        counts[ending(values)] = counts.get(ending(values), 0) + int(values.get("connections", 1))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _packets(values: Values) -> int:
    return sum(values.get("packets", ()))


def _read(name: str, life: str) -> Values | None:
    """The fields that have the type and the bounds that they should have; None where one is missing that all have."""
    values = parsed(life)
    kept: dict[str, Any] = {"connection_id": name}
    for field, value in values.items():
        if type(value) is list:
            known = [one for one in value if one is not None or field != _SPOKE]
            is_fit = len(value) == len(_SIDES) and all(type(one) is int and 0 <= one <= _MOST for one in known)
        else:
            is_fit = type(value) is str or (type(value) is int and 0 <= value <= _MOST)
        if is_fit or type(value) is bool:
            kept[field] = value
    is_whole = all(type(kept.get(field)) is kind for field, kind in _OF_ALL.items())
    return kept if is_whole and kept["began_us"] <= kept["ended_us"] <= FAR_AWAY_US else None
