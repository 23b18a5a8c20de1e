"""One capture on its way into the landing zone: the agent, the writer, and the clock that says when to publish."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import TracebackType

from decoder.field_hash import FieldHash
from decoder.model import Frame, Gap, PayloadPolicy
from pipeline.capture.agent import Agent
from pipeline.capture.landing import LandingWriter, Store
from pipeline.capture.packet import Packet
from pipeline.capture.stats import CaptureStats

PUBLISH_EVERY_S = 5.0
"""Default of how long frames of an endless capture wait until they can be seen."""

PIPE_DELAY_S = 5.0
"""How long packets may be under way to us. The time of a capture goes on by itself when none has come for longer."""

_LOOK_EVERY = 256
"""Packets between two looks at the clock."""


class CaptureRun:
    """Packets in, landing files out. Leaving the context without :meth:`publish` drops what was not published.

    Args:
        store: the landing zone.
        publish_every_s: publish by itself as often as this (s); None: only when told to.
        on_progress: called now and then.

    Attributes:
        agent: for what is more than taking the next packet.
        stats: counts, with the files that were published.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        payload_policy: PayloadPolicy,
        field_hash: FieldHash | None = None,
        *,
        publish_every_s: float | None = None,
        on_progress: Callable[[CaptureStats], None] | None = None,
    ) -> None:
        self.stats = CaptureStats()
        self.agent = Agent(agent_id, payload_policy, field_hash, self.stats)
        self._writer = LandingWriter(store, agent_id)
        self._publish_every_s = publish_every_s
        self._on_progress = on_progress
        self._published = self._newest = time.monotonic()
        self._until_look = _LOOK_EVERY

    def __enter__(self) -> CaptureRun:
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)

    def take(self, packet: Packet) -> None:
        """Take the next packet.

        Raises:
            LandingError: the landing zone cannot be written.
        """
        self.add(self.agent.take(packet))
        self._until_look -= 1
        if not self._until_look:
            self._until_look = _LOOK_EVERY
            self._newest = time.monotonic()
            self._look(self._newest)

    def wait(self) -> None:
        """No packet is there now: let time go on, publish if it is time to. Raises as :meth:`take`."""
        now = time.monotonic()
        if self._until_look < _LOOK_EVERY:  # packets have come since the clock was looked at
            self._until_look, self._newest = _LOOK_EVERY, now
        silent_s = now - self._newest
        if silent_s > PIPE_DELAY_S:
            self.add(self.agent.wait(int((silent_s - PIPE_DELAY_S) * 1e6)))
        self._look(now)

    def add(self, items: Iterable[Frame | Gap]) -> None:
        """Write what the agent gave. Raises as :meth:`take`."""
        for item in items:
            self._writer.add(item)

    def publish(self) -> None:
        """Make all that was written visible. Raises as :meth:`take`."""
        published = self._writer.publish()
        self.stats.files += published.new
        self.stats.files_present = list(published.present)
        self._published = time.monotonic()

    def finish(self) -> None:
        """The capture ends here: publish all of it. Raises as :meth:`take`."""
        self.add(self.agent.finish())
        self.publish()

    def _look(self, now: float) -> None:
        if self._publish_every_s is not None and now - self._published >= self._publish_every_s:
            self.publish()
        if self._on_progress is not None:
            self._on_progress(self.stats)
