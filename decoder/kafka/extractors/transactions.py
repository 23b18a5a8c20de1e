"""What became of the transactions of one transactional id: follows them through their requests and markers.

The old protocol (KIP-98) runs many transactions under one epoch, separated by their ends; the new one (KIP-890) gives
each an epoch of its own, and its partitions may be added by brokers. Both come out of one rule: what is added after an
end, or under a higher epoch, belongs to the next transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from decoder.kafka.errors import NO_ERROR

FINAL = ("committed", "aborted")
"""States that nothing changes any more."""

_OFFSETS_TOPIC = "__consumer_offsets-"


class TxnEvent(NamedTuple):
    """One statement.

    Attributes:
        kind: ``init``, ``add_partition``, ``add_group`` (also an offset commit in the transaction), ``produced``,
            ``end``, ``marker`` (WriteTxnMarkers), ``control`` (a marker in fetched records) or ``loss`` (frames of
            ``connection_id`` were lost).
        partition: ``topic-partition``.
        committed: of end, marker and control: True commit, False abort.
        offset: produced: of the last record; control: of the marker.
        error_code: 0 accepted, None not answered.
    """

    ts_us: int
    exchange_id: str
    kind: str
    producer_id: int
    producer_epoch: int
    partition: str | None = None
    group_id: str | None = None
    committed: bool | None = None
    offset: int | None = None
    records: int | None = None
    error_code: int | None = NO_ERROR
    client: str | None = None
    client_id: str | None = None
    connection_id: str | None = None


@dataclass(slots=True)
class Transaction:
    """A transaction (a row of ``silver.transactions`` without cluster and transactional id).

    Attributes:
        first_us, last_us, end_us: µs since the epoch.
        outcome: True commit, False abort, None while its end was not seen.
        is_over: markers on every partition, or the producer continued to something else.
        lost: frames were lost while it was open, or its end was asked for and not answered.
        offsets: last offset produced to each partition, None if not known.
        unmarked: partitions of ``offsets`` without a marker.
    """

    producer_id: int
    producer_epoch: int
    first_exchange_id: str
    first_us: int
    last_us: int
    client: str | None = None
    client_id: str | None = None
    outcome: bool | None = None
    is_over: bool = False
    lost: bool = False
    end_us: int | None = None
    end_exchange_id: str | None = None
    records: int = 0
    offsets: dict[str, int | None] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    connections: set[str] = field(default_factory=set)
    unmarked: set[str] = field(default_factory=set)

    def write(self, partition: str, offset: int | None) -> None:
        """Note the last offset that was produced to a partition, None if it is not known."""
        self.offsets[partition] = offset
        if partition not in self.marked:
            self.unmarked.add(partition)

    def mark(self, partition: str) -> None:
        """Note a marker on a partition."""
        self.marked.add(partition)
        self.unmarked.discard(partition)

    @property
    def state(self) -> str:
        """As in ``silver.transactions``."""
        if self.outcome is None:
            return "unknown" if self.lost or self.is_over else "ongoing"
        if self.is_over:
            return "committed" if self.outcome else "aborted"
        return "committing" if self.outcome else "aborting"

    def end(self, event: TxnEvent, *, committed: bool | None) -> None:
        """Note how and when it ended; the first word counts."""
        if self.outcome is None and committed is not None:
            self.outcome, self.end_us, self.end_exchange_id = committed, event.ts_us, event.exchange_id


def follow(events: Iterable[TxnEvent], patience_us: int) -> list[Transaction]:
    """The transactions of one transactional id, in order.

    Args:
        events: in the order of time, then of their place in one exchange.
        patience_us: a transaction that was silent for longer than this takes part in nothing any more.
    """
    story = _Story(patience_us)
    for event in events:
        story.take(event)
    return story.transactions


@dataclass(slots=True)
class _Story:
    """What is followed; ``patience_us``: see :func:`follow`. All transactions but the last are over."""

    patience_us: int
    transactions: list[Transaction] = field(default_factory=list)

    def take(self, event: TxnEvent) -> None:
        if event.kind == "loss":
            self._lose(event)
        elif event.kind in ("marker", "control"):
            if event.error_code in (NO_ERROR, None) and event.committed is not None:
                self._mark(event)
        elif event.kind == "end" and event.error_code is None:
            current = self._current(event)
            if current is not None and current.outcome is None:
                current.lost = True
        elif event.error_code == NO_ERROR:  # what is refused, or not answered, changes nothing
            self._accept(event)

    def _current(self, event: TxnEvent) -> Transaction | None:
        """The transaction that is under way, unless the event cannot belong to it any more."""
        last = self.transactions[-1] if self.transactions else None
        if last is None or last.is_over:
            return None
        higher = (event.producer_id, event.producer_epoch) != (last.producer_id, last.producer_epoch)
        if event.kind == "init" or higher or event.ts_us - last.last_us > self.patience_us:
            return None
        return last

    def _accept(self, event: TxnEvent) -> None:
        last = self.transactions[-1] if self.transactions else None
        if last is not None and event.producer_id == last.producer_id and event.producer_epoch < last.producer_epoch:
            return  # late news of a transaction that is over
        current = self._current(event)
        if event.kind == "init":
            if last is not None and not last.is_over and event.ts_us - last.last_us <= self.patience_us:
                last.end(event, committed=False)  # the coordinator aborts what was open before it answers
            self._finish(last)
        elif event.kind == "end":
            if current is None:  # its requests were not seen
                current = self._begin(event, last)
                current.lost = True
            current.end(event, committed=event.committed)
            self._seen(current, event)
        else:
            if current is None or current.outcome is not None:  # after an end: the next one
                current = self._begin(event, last)
            self._seen(current, event)
            self._add(current, event)

    def _begin(self, event: TxnEvent, last: Transaction | None) -> Transaction:
        self._finish(last)
        begun = Transaction(
            event.producer_id, event.producer_epoch, event.exchange_id, event.ts_us, event.ts_us,
        )  # fmt: skip
        self.transactions.append(begun)
        return begun

    @staticmethod
    def _finish(last: Transaction | None) -> None:
        """A producer continues only after what came before is settled; without an end seen, we do not know how."""
        if last is not None and not last.is_over:
            last.is_over = True
            last.lost = last.lost or last.outcome is None

    @staticmethod
    def _seen(current: Transaction, event: TxnEvent) -> None:
        current.last_us = max(current.last_us, event.ts_us)
        if event.connection_id is not None:
            current.connections.add(event.connection_id)
        if event.kind != "add_partition" or current.client is None:  # brokers add partitions, too (KIP-890)
            current.client, current.client_id = event.client, event.client_id

    def _add(self, current: Transaction, event: TxnEvent) -> None:
        if event.group_id is not None:
            current.groups.add(event.group_id)
        if event.partition is not None:
            known = current.offsets.get(event.partition)
            candidates = [offset for offset in (known, event.offset) if offset is not None]
            current.write(event.partition, max(candidates, default=None))
        current.records += event.records or 0

    def _mark(self, event: TxnEvent) -> None:
        """A marker belongs to the last transaction that can have got it; one that is over needs it no more."""
        found = self.transactions[-1] if self.transactions else None
        if found is None or found.is_over or event.ts_us - found.last_us > self.patience_us:
            return
        if not _can_be_marked(found, event):
            return
        partition = event.partition or ""
        found.end(event, committed=event.committed)
        found.last_us = max(found.last_us, event.ts_us)
        found.mark(partition)
        if not partition.startswith(_OFFSETS_TOPIC):
            found.offsets.setdefault(partition, None)
        found.is_over = not found.unmarked

    def _lose(self, event: TxnEvent) -> None:
        last = self.transactions[-1] if self.transactions else None
        if last is not None and last.outcome is None and event.connection_id in last.connections:
            last.lost = True


def _can_be_marked(transaction: Transaction, event: TxnEvent) -> bool:
    """Markers carry the epoch of the transaction, or one higher (KIP-890, and where the coordinator aborts).

    A consumer may read markers of long ago: one of those counts only behind a record that is known by its offset.
    """
    if event.producer_id != transaction.producer_id or event.producer_epoch < transaction.producer_epoch:
        return False
    partition = event.partition or ""
    if event.kind == "control":
        produced = transaction.offsets.get(partition)
        return produced is not None and event.offset is not None and produced < event.offset
    if partition.startswith(_OFFSETS_TOPIC):
        return bool(transaction.groups)
    return partition in transaction.offsets or (transaction.outcome is not None and not transaction.offsets)
