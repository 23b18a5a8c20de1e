"""The commands that end an open transaction by hand, partition by partition.

Brokers since Kafka 3.0 find it by where it begins in a partition. Older ones do not: there the same tool needs
``--producer-id``, ``--producer-epoch`` and ``--coordinator-epoch`` in place of ``--start-offset``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from pipeline.humanize import joined

_TOOL = "kafka-transactions.sh --bootstrap-server BROKER"
_SHOWN = 3


def by_hand(places: Sequence[str], starts: Mapping[str, object], transactional_id: str | None) -> str:
    """For people: the commands, or how to come to what they need.

    Args:
        places: ``topic-partition`` of all that it writes to, as far as they are known.
        starts: its first offset, by partition, where it is known.
        transactional_id: its id, if it is known.
    """
    shown = [_abort(place, starts.get(place)) for place in places[:_SHOWN]]
    if not shown:
        which = quote(transactional_id or "TRANSACTIONAL_ID")
        where = f"`{_TOOL} describe --transactional-id {which}` names its partitions; in each of them "
        return f"{where}{_abort('TOPIC-PARTITION', None)}"
    more = [f"the same in {len(places) - _SHOWN} more"] if len(places) > _SHOWN else []
    if all(place in starts for place in places[:_SHOWN]):
        return joined([*shown, *more])
    return "; ".join([*shown, *more])


def _abort(place: str, start: object | None) -> str:
    topic, _, partition = place.rpartition("-")
    where = f"--topic {quote(topic)} --partition {quote(partition)}"
    if start is not None:
        return f"`{_TOOL} abort {where} --start-offset {start}`"
    return (
        f"`{_TOOL} describe-producers {where}` shows its start offset, "
        f"`{_TOOL} abort {where} --start-offset START_OFFSET` ends it"
    )
