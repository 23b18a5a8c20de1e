"""Connections in good order go by lanes: many at once, in arrays, as long as nothing happens to them.

A connection is in good order when all that may come is the next segment of either side: no loss, nothing sent twice,
no beginning or end. At whatever else happens the connection leaves its lane, and the tracker and its session read on
packet by packet, to the end of the block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from decoder.kafka.bulk import Cut, KafkaBulk, Streams
from decoder.kafka.redaction.secrets import secret_apis
from decoder.model import MAX_TS_US, MIN_TS_US, Frame, FrameFlags, PayloadPolicy
from decoder.work import METER
from pipeline.capture.fast_path.block import BLOCK_PACKETS, Block
from pipeline.capture.fast_path.columns import Rows, frames_of, rows_by_id, table_of
from pipeline.capture.fast_path.flows import Flows
from pipeline.capture.fast_path.lane_counts import begin_counts, end_counts
from pipeline.capture.fast_path.lane_kernel import AGAIN, COUNTED, STALLED_SINCE, TAKEN, ZEROS, follow, gather
from pipeline.capture.fast_path.lane_state import Harvest, Ints, Lane, Past, Work
from pipeline.capture.fast_path.packet_kernel import Segments
from pipeline.capture.fast_path.response_silence import UNKNOWN, idle_times
from pipeline.capture.sessions.session import Session
from pipeline.capture.sessions.sides import Labels
from pipeline.capture.tcp.budgets import FRAME_UNITS, HELD_UNITS
from pipeline.capture.tcp.connection import Connection
from pipeline.capture.tcp.reassembly import RECENT_SEGMENTS

Marks = np.ndarray[Any, np.dtype[np.uint8]]

MAX_FLOWS = 1 << 18
"""Flows whose numbers are remembered. A port scan must not fill the memory: all are forgotten then."""

PAST_PACKETS = BLOCK_PACKETS
"""Packets of earlier blocks that are kept at least, to compare them with copies that come later."""

_FIRST_ROOM = 1024


class Lanes:
    """All lanes of a capture."""

    def __init__(self, policy: PayloadPolicy, redact: Callable[[Frame], Frame]) -> None:
        self.flows = Flows()
        self._policy: PayloadPolicy = policy
        self._redact = redact
        self._bulk = KafkaBulk()
        self._lanes: list[Lane | None] = []
        self._free: list[int] = []
        self._lane_of = np.full(_FIRST_ROOM, -1, np.int64)
        self._reached = np.zeros((0, 2), np.int64)
        self._acked = np.zeros((0, 2), np.int64)
        self._counts = np.zeros((0, COUNTED), np.int64)
        self._client, self._ended = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._blocks = 0
        self._past: deque[Past] = deque()

    def take(self, block: Block, others: Iterable[tuple[int, int]], segments: Segments, skew: int) -> Harvest:
        """Read what of a block belongs to the lanes.

        Args:
            block: the packets.
            others: number and flow of packets whose segments were found by other means.
            segments: of the packets.
            skew: what is to be taken from capture times for steady ones, µs.
        """
        self._make_room()
        count = len(self._lanes)
        stops = np.full(count, len(block), np.int64)
        for number, flow in others:
            lane = self._lane_of[flow]
            if lane >= 0:
                stops[lane] = min(stops[lane], number)
        reached, acked, counts = (kept[:count].copy() for kept in (self._reached, self._acked, self._counts))
        use, latest = np.zeros(len(block), np.uint8), np.full((count, 2), -1, np.int64)
        follow(block.data, segments, block.ts, skew, self._lane_of, reached, acked, counts, latest, stops, use)
        harvest = Harvest()
        lane_of = np.full(len(block), -1, np.int64)
        lane_of[use != 0] = self._lane_of[segments.flow[use != 0]]
        taken = np.flatnonzero(use == TAKEN)
        is_odd = np.zeros(count, np.uint8)
        if len(taken):
            self._read(block, segments, taken, lane_of[taken], is_odd, harvest)
        good = is_odd == 0
        self._reached[:count][good], self._acked[:count][good] = reached[good], acked[good]
        self._counts[:count][good] = counts[good]
        used = np.flatnonzero(use)
        if not good.all():
            used = used[good[lane_of[used]]]
        newest = np.full(count, -1, np.int64)
        newest[lane_of[used]] = used  # of several the last stays
        lanes = np.flatnonzero(newest >= 0)
        for lane in lanes[np.argsort(newest[lanes])].tolist():
            harvest.touched.append((self._lane(lane).connection, int(block.ts[newest[lane]])))
        self._keep(block, segments, taken[good[lane_of[taken]]], lane_of)
        for lane in np.flatnonzero((stops < len(block)) | ~good).tolist():
            self.leave(lane)
        is_left = np.ones(len(block), bool)
        is_left[used] = False
        harvest.rest = np.flatnonzero(is_left)
        return harvest

    @property
    def buffered(self) -> int:
        """Bytes of frames whose ends are still to come."""
        return sum(len(data) for lane in self._lanes if lane is not None for data, _, _ in lane.begun)

    def leave_silent(self, since: int) -> None:
        """Give back the connections without a packet since then (steady time, µs)."""
        for number, lane in enumerate(self._lanes):
            if lane is not None and lane.connection.last_ts < since:
                self.leave(number)

    def enter(self, connection: Connection, session: Session) -> None:
        """Give a connection a lane if it is in good order."""
        tcp, start = connection.in_good_order(), session.in_good_order()
        if tcp is None or start is None:
            return
        flow = self.flows.number(connection.a, connection.b)
        self._make_room()
        if self._lane_of[flow] >= 0:
            return
        lane = self._free[-1] if self._free else len(self._lanes)
        if not self._bulk.enter(lane, start.pairer, start.frames):
            return
        if self._free:
            self._free.pop()
        else:
            self._lanes.append(None)
        if lane >= len(self._reached):
            more = max(16, len(self._reached))
            self._reached = np.concatenate((self._reached, np.zeros((more, 2), np.int64)))
            self._acked = np.concatenate((self._acked, np.zeros((more, 2), np.int64)))
            self._counts = np.concatenate((self._counts, np.zeros((more, COUNTED), np.int64)))
            self._client = np.concatenate((self._client, np.zeros(more, np.int64)))
            self._ended = np.concatenate((self._ended, np.zeros(more, np.int64)))
        flip = int(connection.a > connection.b)
        self._lanes[lane] = Lane(
            connection, session, flow, flip, self._blocks, [start.begun[flip], start.begun[1 - flip]]
        )
        self._counts[lane] = begin_counts(connection, flip)
        for direction, (reached, acked) in enumerate(tcp):
            self._reached[lane, direction ^ flip] = reached
            self._acked[lane, direction ^ flip] = acked
        self._client[lane] = start.client ^ flip
        self._ended[lane] = UNKNOWN if start.ended is None else start.ended
        self._lane_of[flow] = lane

    def leave(self, lane: int) -> None:
        """Give a connection back to its tracker and session."""
        gone = self._lanes[lane]
        if gone is None:
            return
        self._lanes[lane] = None
        self._free.append(lane)
        self._lane_of[gone.flow] = -1
        ends = [(int(self._reached[lane, d ^ gone.flip]), int(self._acked[lane, d ^ gone.flip])) for d in (0, 1)]
        gone.connection.go_on(ends)
        end_counts(gone.connection.life, self._counts[lane].tolist(), gone.flip)
        begun, ended = [gone.begun[gone.flip], gone.begun[1 - gone.flip]], int(self._ended[lane])
        gone.session.go_on(begun, None if ended == UNKNOWN else ended, partial(self._bulk.leave, lane))
        self._remember(lane, gone)

    def expel(self, connection: Connection) -> None:
        """Give a connection back, if it is in a lane."""
        for number, lane in enumerate(self._lanes):
            if lane is not None and lane.connection is connection:
                self.leave(number)

    def leave_troubled(self) -> list[Connection]:
        """Give connections back that repeat segments, or on which a side asked to be sent nothing."""
        columns = [AGAIN, AGAIN + 1, ZEROS, ZEROS + 1, STALLED_SINCE, STALLED_SINCE + 1]
        lanes = np.flatnonzero(self._counts[:, columns].any(axis=1)).tolist()
        some = [(number, lane) for number in lanes if number < len(self._lanes) and (lane := self._lanes[number])]
        for number, _ in some:
            self.leave(number)
        return [lane.connection for _, lane in some]

    def leave_all(self, *, at_end: bool = False) -> None:
        """Give all connections back; ``at_end``: no more packets come."""
        if at_end:
            self._past.clear()
        for lane in range(len(self._lanes)):
            self.leave(lane)

    def _keep(self, block: Block, segments: Segments, packets: Ints, lane_of: Ints) -> None:
        """Keep what went by lanes for a while."""
        order = _order(lane_of[packets])
        self._past.append(Past(self._blocks, block, segments, packets[order], lane_of[packets[order]]))
        self._blocks += 1
        while sum(len(past.block) for past in self._past) - len(self._past[0].block) >= PAST_PACKETS:
            self._past.popleft()

    def _remember(self, lane: int, gone: Lane) -> None:
        """Give the tracker the newest bytes that went by a lane: copies that come may differ."""
        for past in self._past:
            if past.ordinal < gone.entered:
                continue
            packets, segments = past.of(lane), past.segments
            for side in (0, 1):
                numbers = packets[segments.side[packets] == side][-RECENT_SEGMENTS:]
                half = gone.connection.halves[side ^ gone.flip]
                starts = segments.start[numbers]
                places = zip(starts.tolist(), (starts + segments.size[numbers]).tolist(), strict=True)
                for seq, (start, end) in zip(segments.seq[numbers].tolist(), places, strict=True):
                    half.remember(half.position(seq), past.block.data[start:end].tobytes())

    def forget_flows(self) -> bool:
        """Number the flows again, if there are too many; whether that was so. Not while a block is under way."""
        if self.flows.count <= MAX_FLOWS:
            return False
        self.leave_all()
        self._past.clear()
        self.flows = Flows()
        return True

    def _make_room(self) -> None:
        if len(self._lane_of) <= self.flows.count:
            more = max(len(self._lane_of), self.flows.count + 1)
            self._lane_of = np.concatenate((self._lane_of, np.full(more, -1, np.int64)))

    def _read(
        self, block: Block, segments: Segments, packets: Ints, lane_of: Ints, is_odd: Marks, harvest: Harvest
    ) -> None:
        half_of = 2 * lane_of + segments.side[packets]
        order = _order(half_of)
        packets, half_of = packets[order], half_of[order]
        first = np.flatnonzero(np.concatenate(([True], half_of[1:] != half_of[:-1])))
        halves = half_of[first]
        streams = self._streams(block, segments, packets, first, halves)
        lanes, numbers = np.unique(halves >> 1, return_inverse=True)
        by_role = np.full((len(lanes), 2), -1, np.int64)
        by_role[numbers, (halves & 1) ^ self._client[halves >> 1]] = np.arange(len(halves))
        odd = np.zeros(len(lanes), np.uint8)
        cut = self._bulk.cut_and_pair(streams, lanes, by_role, odd)
        is_odd[lanes[odd > 0]] = 1
        good = np.flatnonzero(odd == 0)
        self._carry(streams, cut, halves[odd[numbers] == 0], np.flatnonzero(odd[numbers] == 0))
        harvest.answered = [
            f"{self._labels(int(lanes[number])).connection_id}-{ordinal}" for number, ordinal in cut.answered.tolist()
        ]
        self._collect(streams, cut, lanes, numbers, halves, good, harvest)

    def _streams(self, block: Block, segments: Segments, packets: Ints, first: Ints, halves: Ints) -> Streams:
        sizes = segments.length[packets]
        begun = [self._begun(int(half)) for half in halves]
        carried = np.array([len(data) for data, _, _ in begun], np.int64)
        begins = np.concatenate(([0], np.cumsum(np.add.reduceat(sizes, first) + carried)))
        counts = np.diff(np.concatenate((first, [len(packets)])))
        ends = np.cumsum(sizes) + np.repeat(np.cumsum(carried), counts)
        data = np.empty(int(begins[-1]), np.uint8)
        for begin, (some, _, _) in zip(begins.tolist(), begun, strict=False):
            if some:
                data[begin : begin + len(some)] = np.frombuffer(some, np.uint8)
        gather(block.data, segments.start[packets], sizes, ends, data)
        return Streams(
            data, begins, carried, np.array([ts for _, ts, _ in begun], np.int64),
            np.concatenate((first, [len(packets)])), ends, block.ts[packets], packets,
        )  # fmt: skip

    def _carry(self, streams: Streams, cut: Cut, halves: Ints, numbers: Ints) -> None:
        """Keep the begins of frames whose ends are still to come."""
        for half, number in zip(halves.tolist(), numbers.tolist(), strict=True):
            begin, end = int(cut.rest_begin[number]), int(streams.begins[number + 1])
            last = int(streams.segment_ts[streams.segments[number + 1] - 1])
            rest = (streams.data[begin:end].tobytes(), int(cut.rest_ts[number]), last)
            self._lane(half >> 1).begun[half & 1] = rest if end > begin else (b"", 0, 0)

    def _collect(
        self, streams: Streams, cut: Cut, lanes: Ints, numbers: Ints, halves: Ints, good: Ints, harvest: Harvest
    ) -> None:
        """Redact the frames of the good connections and make rows of them."""
        frames = cut.frames
        number_of = numbers[frames.half]
        is_good = np.zeros(len(lanes), bool)
        is_good[good] = True
        chosen = np.flatnonzero(is_good[number_of])
        half_of = halves[frames.half]
        is_response = ((half_of & 1) ^ self._client[half_of >> 1]).astype(np.uint8)
        answers, idle_us = chosen[is_response[chosen] == 1], np.full(len(half_of), UNKNOWN)
        idle_us[answers] = idle_times(half_of[answers] >> 1, frames.ts[answers], frames.ts_end[answers], self._ended)
        chosen = chosen[_order(frames.packet[chosen])]
        is_held = np.zeros(len(number_of), bool)
        is_held[cut.waiting] = True
        frames = type(frames)(*(column[chosen] for column in frames))
        number_of, is_held, is_response = number_of[chosen], is_held[chosen], is_response[chosen]
        for times in (frames.ts, frames.ts_end):
            frames.flags[(times <= MIN_TS_US) | (times >= MAX_TS_US)] |= int(FrameFlags.TIME_CLAMPED)
        to_redact = self._bulk.seal(streams.data, frames, is_response, self._policy)
        rows = Rows(
            streams.data, frames.begin, frames.size, number_of, is_response.astype(np.int64), frames.seq, frames.ts,
            frames.ts_end, frames.ordinal, frames.api_key, frames.api_version, frames.correlation_id, frames.flags,
            idle_us[chosen],
        )  # fmt: skip
        labels = [self._labels(int(lane)) for lane in lanes]
        units = HELD_UNITS * np.bincount(number_of[is_held], minlength=len(lanes))
        for index, frame in zip(to_redact.tolist(), frames_of(rows.at(to_redact), labels), strict=True):
            begin = int(rows.begin[index])
            before = METER.units
            redacted = self._redact(frame)
            units[number_of[index]] += METER.units - before + FRAME_UNITS
            streams.data[begin : begin + len(redacted.frame)] = np.frombuffer(redacted.frame, np.uint8)
            rows.flags[index] = redacted.flags
        self._add_work(lanes, number_of, units, rows, harvest)
        harvest.held = list(rows_by_id(rows.alone(np.flatnonzero(is_held)), labels))
        passed = np.flatnonzero(~is_held)
        if len(passed):
            harvest.table = table_of(rows.at(passed), labels)

    def _add_work(self, lanes: Ints, which: Ints, units: Ints, rows: Rows, harvest: Harvest) -> None:
        """What each lane's connection cost and brought."""
        sizes = np.bincount(which, rows.size, len(lanes)).astype(np.int64)
        is_answer = (rows.is_response == 1) & (rows.api_key >= 0) & ~np.isin(rows.api_key, list(secret_apis()))
        answers = np.bincount(which[is_answer], minlength=len(lanes))
        last = np.zeros(len(lanes), np.int64)
        np.maximum.at(last, which, rows.ts_end)
        columns = zip(lanes.tolist(), last.tolist(), units.tolist(), sizes.tolist(), answers.tolist(), strict=True)
        for lane, ts, spent, size, answered in columns:
            if size:
                found = self._lane(lane)
                harvest.work.append(Work(found.connection, found.flow, ts, spent, size, answered))

    def _lane(self, lane: int) -> Lane:
        found = self._lanes[lane]
        if found is None:
            raise LookupError(f"no connection is in lane {lane}")
        return found

    def _labels(self, lane: int) -> Labels:
        return self._lane(lane).session.labels

    def _begun(self, half: int) -> tuple[bytes, int, int]:
        return self._lane(half >> 1).begun[half & 1]


def _order(values: Ints) -> Ints:
    """What sorts values that are not negative, equal ones as they are. numpy sorts 16 bits by radix, much faster."""
    is_small = len(values) > 0 and int(values.max()) < 1 << 16
    return np.argsort(values.astype(np.uint16) if is_small else values, kind="stable")
