"""Counts of copies over all that ever came, of which only the newest part is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from pipeline.analysis.duplicates.duplicate_flows import counted


@dataclass(slots=True)
class DuplicateCounts:
    """What must not count, for it was seen before (:mod:`pipeline.analysis.duplicates.duplicate_flows`).

    Attributes:
        exchanges: of copies, that are no longer kept.
        gone: connections that are copies, and no longer kept.
        gone_translated: those of them with other addresses or ports.
    """

    exchanges: int = 0
    gone: int = 0
    gone_translated: int = 0
    _now: dict[str, bool] = field(default_factory=dict)
    _copies: pa.Table | None = None

    def judged(self, others: pa.Table, kept: pa.Table) -> None:
        """Take the copies (rows of ``silver.duplicate_flows``) among the exchanges that are kept."""
        rows = zip(others.column("connection_id").to_pylist(), others.column("is_translated").to_pylist(), strict=True)
        now: dict[str, bool] = {}
        for connection, is_translated in rows:
            now[connection] = now.get(connection, False) or bool(is_translated)
        if self._now:
            there = set(kept.column("connection_id").unique().to_pylist())
            left = [is_translated for one, is_translated in self._now.items() if one not in now and one not in there]
            self.gone += len(left)
            self.gone_translated += sum(left)
        self._now, self._copies = now, others

    def dropped(self, exchanges: pa.Table) -> None:
        """Exchanges are no longer kept."""
        if self._copies is not None and self._copies.num_rows:
            self.exchanges += exchanges.num_rows - counted(exchanges, self._copies).num_rows

    @property
    def connections(self) -> int:
        """Connections that are copies."""
        return self.gone + len(self._now)

    @property
    def translated(self) -> int:
        """Those of them with other addresses or ports."""
        return self.gone_translated + sum(self._now.values())

    def exchanges_with(self, kept: pa.Table) -> int:
        """Exchanges of copies that ever came, those included that are kept."""
        if self._copies is None or not self._copies.num_rows:
            return self.exchanges
        once: int = counted(kept, self._copies).num_rows
        return self.exchanges + int(kept.num_rows) - once
