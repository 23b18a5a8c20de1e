"""One capture on its way into the landing zone: the agent, the writer, and the clock for when nothing comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa

from decoder.model import Frame, Gap
from pipeline.capture.landing.patience import DEFAULT_STORE_TIMEOUT_S
from pipeline.capture.landing.stores import Store
from pipeline.capture.landing.writer import LandingWriter
from pipeline.capture.packets.packet import Packet
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.options import AgentOptions
from pipeline.capture.sessions.decryption import Decryption
from pipeline.capture.stats import CaptureStats
from pipeline.config.memory_limits import has_room_to_compile, is_capture_code_compiled

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pipeline.capture.fast_path.block import Block
    from pipeline.capture.runs.block_agent import BlockAgent

PUBLISH_EVERY_S = 5.0
"""Default of how long frames of an endless capture wait until they can be seen."""

PIPE_DELAY_S = 5.0
"""How long packets may be under way to us. The time of a capture continues by itself when none has come for longer."""

MANY_PACKETS = 20_000
"""Packets from which on it is worth to compile code that reads them by the block."""

COMPILED_MANY_PACKETS = 5_000
"""Packets from which on it is worth to load that code where it was compiled before."""

MANY_BYTES = 8 * 1024 * 1024
"""Bytes of packets from which on it is worth it, too: what they hold is looked through for secrets."""

BLOCK_PACKETS = 4096
"""Packets taken together at most, then; they wait for each other no longer than nothing else comes."""

BLOCK_BYTES = 2 * 1024 * 1024
"""Bytes after which fewer packets do: a hostile one may hold a hundred frames, each of which takes a row of arrays."""

LOOK_AT_OPEN_US = 1_000_000
"""So often connections that are open are looked at, µs of capture time."""

_LOOK_EVERY = 256
"""Packets between two looks at the clock."""


class CaptureRun:
    """Packets in, landing files out. Leaving the context without :meth:`publish` drops what was not published.

    Args:
        store: the landing zone.
        decryption: see :class:`pipeline.capture.runs.agent.Agent`.
        on_progress: called now and then.
        publish_every_s, store_timeout_s, are_read_once, options: see :class:`pipeline.capture.runs.options.RunOptions`.

    Attributes:
        agent: for what is more than taking the next packet.
        stats: counts, with the files that were published.
        store_timeout_s: how long it waits for the landing zone.
    """

    def __init__(
        self,
        store: Store,
        decryption: Decryption | None = None,
        *,
        publish_every_s: float | None = PUBLISH_EVERY_S,
        store_timeout_s: float = DEFAULT_STORE_TIMEOUT_S,
        are_read_once: bool = False,
        on_progress: Callable[[CaptureStats], None] | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        self.agent: Agent = Agent(decryption=decryption, **options)
        self.stats = self.agent.stats
        self._writer = LandingWriter(
            store,
            self.agent.agent_id,
            max_age_s=publish_every_s,
            store_timeout_s=store_timeout_s,
            are_read_once=are_read_once,
        )
        self.store_timeout_s = store_timeout_s
        self._on_progress = on_progress
        self._newest = time.monotonic()
        self._until_look = _LOOK_EVERY
        self._by_blocks: BlockAgent | None = None
        self._packets: list[Packet] = []
        self._waiting = 0  # bytes of these
        self._bytes = 0  # read packet by packet
        self._may_hurry: bool | None = None
        self._is_endless = publish_every_s is not None
        self._looked_us = 0

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
        if self._by_blocks is None:
            self.add(self.agent.take(packet))
            self._bytes += len(packet.data)
            if self._is_in_a_hurry():
                self.hurry()
        else:
            self._packets.append(packet)
            self._waiting += len(packet.data)
            if len(self._packets) == BLOCK_PACKETS or self._waiting >= BLOCK_BYTES:
                self.catch_up()
        self._until_look -= 1
        if not self._until_look:
            self._until_look = _LOOK_EVERY
            self._newest = time.monotonic()
            self._keep_up()
            self.report_progress()

    def take_block(self, block: Block) -> None:
        """Take packets that came together. Raises as :meth:`take`."""
        self.add(self.hurry().take_block(block))
        self._until_look, self._newest = _LOOK_EVERY, time.monotonic()
        self._keep_up()
        self.report_progress()

    def _is_in_a_hurry(self) -> bool:
        """Whether what was read pays for compiled code, and it can be loaded."""
        if self.stats.packets < MANY_PACKETS and self._bytes < MANY_BYTES:
            return self.stats.packets == COMPILED_MANY_PACKETS and is_capture_code_compiled() and has_room_to_compile()
        if self._may_hurry is None:
            self._may_hurry = has_room_to_compile()
        return self._may_hurry

    def hurry(self) -> BlockAgent:
        """Continue by the block: load compiled code, which takes seconds."""
        if self._by_blocks is None:
            from pipeline.capture.runs.block_agent import BlockAgent  # noqa: PLC0415

            self.agent = self._by_blocks = BlockAgent(self.agent)
        return self._by_blocks

    def catch_up(self) -> None:
        """Read the packets that were taken but wait for others. Raises as :meth:`take`."""
        if self._packets and self._by_blocks is not None:
            packets, self._packets, self._waiting = self._packets, [], 0
            self.add(self._by_blocks.take_packets(packets))
            self._keep_up()

    def wait(self) -> None:
        """No packet is there now: let time continue. Raises as :meth:`take`."""
        self.catch_up()
        now = time.monotonic()
        if self._until_look < _LOOK_EVERY:  # packets have come since the clock was looked at
            self._until_look, self._newest = _LOOK_EVERY, now
        silent_s = now - self._newest
        if silent_s > PIPE_DELAY_S:
            self.add(self.agent.wait(int((silent_s - PIPE_DELAY_S) * 1e6)))
        self.report_progress()

    def report_progress(self) -> None:
        """Call ``on_progress``."""
        if self._on_progress is not None:
            self._on_progress(self.stats)

    def add(self, items: Iterable[Frame | Gap | pa.Table]) -> None:
        """Write what the agent gave. Raises as :meth:`take`."""
        self._write(items)
        if self._is_endless and self.agent.newest_us - self._looked_us >= LOOK_AT_OPEN_US:
            self._looked_us = self.agent.newest_us  # a capture that ends needs no look: its end states all
            self._write(self.agent.look_at_open())
        for row in self.agent.lives.take():
            self._writer.add(row)

    def _write(self, items: Iterable[Frame | Gap | pa.Table]) -> None:
        for item in items:
            if isinstance(item, pa.Table):
                self._writer.add_table(item)
            else:
                self._writer.add(item)

    def add_now(self, gaps: Iterable[Gap]) -> None:
        """Count and write losses that the agent does not know of. Raises as :meth:`take`."""
        for gap in gaps:
            self.stats.count(gap)
            self._writer.add(gap)

    def _keep_up(self) -> None:
        self.agent.keep_up(time.process_time_ns() // 1000)

    def publish(self) -> None:
        """Make all that was taken visible, as far as the agent knows by now. Raises as :meth:`take`."""
        self.catch_up()
        published = self._writer.publish()
        self.stats.files += published.new
        self.stats.files_present += published.present

    def finish(self) -> None:
        """The capture ends here: publish all of it. Raises as :meth:`take`."""
        self.catch_up()
        self.add(self.agent.finish())
        self.publish()
