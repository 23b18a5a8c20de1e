"""The page, with its address, that shows a name."""

from __future__ import annotations

from pipeline.dashboard.queries.overview.names import (
    CLIENT,
    CONNECTION,
    EXCHANGE,
    GROUP,
    HOST,
    NAMESPACE,
    PARTITION,
    SERVER,
    TOPIC,
    TRANSACTION,
    Name,
)


def address_of(name: Name) -> tuple[str, str, dict[str, str]]:
    """The page that shows a name, without ``.py``, an icon of it, and the parameters of its address."""
    text = name.text
    match name.kind:
        case kind if kind == GROUP:
            return "group", "groups", {"group": text, "cluster": name.cluster}
        case kind if kind == TOPIC:
            return "partitions", "topic", {"topic": text, "cluster": name.cluster}
        case kind if kind == PARTITION:
            named = {"topic": name.topic or "", "partition": str(name.partition), "cluster": name.cluster}
            return "partitions", "stacked_line_chart", named | ({"group": name.group_id} if name.group_id else {})
        case kind if kind == TRANSACTION:
            return "transactions", "lock_clock", {"transaction": text}
        case kind if kind in _PARAMETERS:
            parameter, icon = _PARAMETERS[kind]
            return "exchanges", icon, {parameter: text}
        case kind:
            raise ValueError(f"no page shows a {kind}")


_PARAMETERS = {
    CLIENT: ("client", "devices"), HOST: ("host", "computer"), SERVER: ("host", "dns"),
    NAMESPACE: ("namespace", "database"), CONNECTION: ("connection", "cable"), EXCHANGE: ("exchange", "swap_horiz"),
}  # fmt: skip
"""What the page of exchanges is searched by."""
