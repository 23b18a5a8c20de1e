"""Does every reader keep its promises on every mutated frame? One portion of the campaign (tests.hostile.portions).

Each frame goes through the plain reader (whose message must keep the invariants), the kernel (which must give the same
of what it does not give back), the readers of records or the fronts of messages, and redaction under one policy, in
turns: no canary may be left where secrets stand, the kernel that redacts must do the same, and what may be stored must
decode without a fault.
"""

from __future__ import annotations

import gc
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from decoder import Frame, Message
from decoder.kafka.batch import ReadBatch, embedded_in
from decoder.kafka.bulk import KafkaBulk
from decoder.kafka.kernel import bodies as kernel
from decoder.kafka.kernel.records import read_columns
from decoder.kafka.records.iteration import read_records
from decoder.kafka.records.text import java_text
from decoder.kafka.redaction.frames import RECORDS
from decoder.model import FrameFlags
from decoder.mongodb.extractors import Half, command_facts, handshake
from decoder.redact import redact
from tests.decoder.kafka.kernel.asked import Asked, differences, read
from tests.decoder.kafka.kernel.same_records import column_facts, plain_facts
from tests.decoder.kafka.landed import landed
from tests.decoder.mongodb.kernel import asked as mongodb_kernel
from tests.hostile.blocks import BLOCK, block
from tests.hostile.invariants import CODEC, check
from tests.hostile.mongodb import KEY, POLICIES, check_summary
from tests.hostile.planted import is_kafka_leak, is_mongodb_leak, left_in, plain_of

MOST_WRITTEN = 20
"""Faults of a portion that are written down; the others are counted."""

_CLEANED = (
    FrameFlags.REDACTED | FrameFlags.PAYLOAD_REMOVED | FrameFlags.PAYLOAD_DROPPED | FrameFlags.BODY_REMOVED
).value
"""Set by redaction alone. What has such a flag was cleaned, and is passed on as it is."""

CRASH, DIFFERENCE, LEAK = "crashes", "differences", "leaks"


class LeakError(AssertionError):
    """Raised when a canary is left in what may be stored."""


@dataclass(slots=True)
class Portion:
    """What a portion found.

    Attributes:
        found: faults by sort: CRASH, DIFFERENCE, LEAK.
        statuses: frames by protocol and status of the plain reader, as ``kafka ok``.
        by_kernel: frames that the kernel has read, by protocol.
        stage_s: CPU seconds by stage.
    """

    seed: int
    number: int
    faults: Path
    frames: int = 0
    bytes: int = 0
    found: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    by_kernel: Counter[str] = field(default_factory=Counter)
    stage_s: Counter[str] = field(default_factory=Counter)
    _protocol: str = ""
    _block: int = 0

    def run(self, count: int, on_block: Callable[[int], object]) -> None:
        """Read this many frames, of both protocols by turns.

        Args:
            count: a multiple of the size of a block.
            on_block: called with the number of a block before it is read.
        """
        gc.freeze()  # the samples are not searched again and again
        blocks = count // BLOCK
        for index in range(self.number * blocks, (self.number + 1) * blocks):
            self._protocol, self._block = ("kafka", "mongodb")[index % 2], index
            on_block(index)
            with self._timed("mutate"):
                frames = block(self._protocol, self.seed, index)
            (self._kafka if self._protocol == "kafka" else self._mongodb)(frames)
            self.frames += len(frames)
            self.bytes += sum(len(frame.data) for frame in frames)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        begun = time.process_time()
        yield
        self.stage_s[f"{self._protocol} {stage}"] += time.process_time() - begun

    def _kafka(self, frames: Sequence[Asked]) -> None:
        with self._timed("plain"):
            messages = self._plainly(frames)
        with self._timed("kernel"):
            batch = read(frames)
            self._compare_kafka(frames, batch, messages)
        with self._timed("records"):
            for frame, message in zip(frames, messages, strict=True):
                if message.record_batches:
                    self._guarded(frame, _same_records, frame)
        with self._timed("redaction"):
            stored = [self._redacted(number, frame) for number, frame in enumerate(frames)]
        with self._timed("seal"):
            for number, (frame, one) in enumerate(zip(frames, stored, strict=True)):
                if one is not None and (one.api_key, one.direction) in RECORDS and not frame.flags:
                    self._guarded(frame, _sealed_alike, _as_landed("kafka", frame, number), one)
        with self._timed("canaries"):
            self._look_for_canaries(frames, stored, bytes, is_kafka_leak)
        with self._timed("stored"):
            changed = [
                (frame, Asked(one.frame, one.direction, one.api_key, one.api_version, one.flags))
                for frame, one in zip(frames, stored, strict=True)
                if one is not None and one.frame != frame.data
            ]
            outcomes = read([asked for _, asked in changed]).outcomes if changed else np.zeros(0)
            for number in np.flatnonzero(outcomes == kernel.GIVEN_BACK).tolist():
                self._guarded(changed[number][0], _decoded, "kafka", changed[number][1])

    def _mongodb(self, frames: Sequence[Asked]) -> None:
        with self._timed("plain"):
            messages = self._plainly(frames)
        with self._timed("kernel"):
            is_read = self._compare_each(frames, mongodb_kernel.compare, messages)
            self.by_kernel["mongodb"] += sum(is_read)
            self._compare_each(frames, lambda some, _: mongodb_kernel.compare_fronts(some), messages)
        with self._timed("fronts"):
            for frame, message in zip(frames, messages, strict=True):
                self._guarded(frame, check_summary, frame.data, frame.direction, message, frame.flags)
        with self._timed("redaction"):
            stored = [self._redacted(number, frame) for number, frame in enumerate(frames)]
        with self._timed("canaries"):
            self._look_for_canaries(frames, stored, plain_of, is_mongodb_leak)
        with self._timed("stored"):
            changed = [
                (frame, Asked(one.frame, one.direction, None, None, one.flags))
                for frame, one in zip(frames, stored, strict=True)
                if one is not None and one.frame != frame.data
            ]
            for frame, asked in changed:
                self._guarded(frame, _facts_of, asked)

    def _plainly(self, frames: Sequence[Asked]) -> list[Message]:
        protocol, messages = self._protocol, []
        for frame in frames:
            message = CODEC.decode(
                frame.data, protocol=protocol, direction=frame.direction, api_key=frame.api_key,
                api_version=frame.api_version, flags=frame.flags,
            )  # fmt: skip
            self._guarded(frame, check, message, len(frame.data))
            messages.append(message)
        self.statuses.update(f"{protocol} {message.status}" for message in messages)
        return messages

    def _compare_kafka(self, frames: Sequence[Asked], batch: ReadBatch, messages: Sequence[Message]) -> None:
        is_read = batch.outcomes != kernel.GIVEN_BACK
        self.by_kernel["kafka"] += int(is_read.sum())
        for difference in differences(frames, batch, messages):
            self._fault(DIFFERENCE, difference)
        is_response = np.array([frame.direction == "response" for frame in frames], np.bool_)
        flags = np.array([frame.flags for frame in frames], np.int64)
        embedded = dict(embedded_in(batch, is_response, flags))
        for number in np.flatnonzero(is_read).tolist():
            if embedded.get(number, []) != messages[number].embedded:
                self._fault(DIFFERENCE, f"embedded in {_described(frames[number])}")

    def _compare_each(
        self,
        frames: Sequence[Asked],
        compare: Callable[[Sequence[Asked], Sequence[Message]], list[bool]],
        messages: Sequence[Message],
    ) -> list[bool]:
        """All at once; one by one if they differ, to find which do."""
        try:
            return compare(frames, messages)
        except AssertionError:
            for number, frame in enumerate(frames):
                self._guarded(frame, compare, [frame], messages[number : number + 1])
            return []

    def _redacted(self, number: int, frame: Asked) -> Frame | None:
        return self._guarded(frame, redact, _as_landed(self._protocol, frame, number), KEY)

    def _look_for_canaries(
        self,
        frames: Sequence[Asked],
        stored: Sequence[Frame | None],
        plain: Callable[[bytes], bytes],
        is_leak: Callable[[Frame], bool],
    ) -> None:
        """Those of one policy at once; then each, if there is one. What is marked as cleaned before is left out."""
        for policy in POLICIES:
            some = [
                (frame, one)
                for frame, one in zip(frames, stored, strict=True)
                if one is not None and one.payload_policy == policy and not frame.flags & _CLEANED
            ]
            datas = [plain(one.frame) for _, one in some]
            if not left_in(b"\xff|".join(datas), is_full=policy == "full"):
                continue
            for (frame, one), data in zip(some, datas, strict=True):
                if left_in(data, is_full=policy == "full"):
                    self._guarded(frame, _no_leak, one, is_leak)

    def _guarded(self, frame: Asked, call: Callable[..., Any], *arguments: Any) -> Any:
        """What a call gives; None if it raises, which is a fault of this frame."""
        try:
            return call(*arguments)
        except LeakError as error:
            self._fault(LEAK, f"{error}\n{_described(frame)}")
        except AssertionError as error:
            self._fault(DIFFERENCE, f"{''.join(traceback.format_exception(error)[-3:])}\n{_described(frame)}")
        except Exception as error:
            self._fault(CRASH, f"{''.join(traceback.format_exception(error))}\n{_described(frame)}")
        return None

    def _fault(self, sort: str, text: str) -> None:
        self.found[sort] += 1
        if sum(self.found.values()) <= MOST_WRITTEN:
            self.faults.mkdir(parents=True, exist_ok=True)
            name = f"{self._protocol}-{sort}-{self.seed}-{self._block}-{self.found.total()}.txt"
            (self.faults / name).write_text(f"block {self._block} of seed {self.seed}\n{text}\n", encoding="utf-8")


def _described(frame: Asked) -> str:
    what = f"{frame.direction} api_key={frame.api_key} api_version={frame.api_version} flags={frame.flags}"
    return f"{what}\n{frame.data.hex()}"


def _as_landed(protocol: str, frame: Asked, number: int) -> Frame:
    policy = POLICIES[number % len(POLICIES)]
    data, direction, key, version, flags = frame
    if protocol == "kafka" and direction == "request" and len(data) >= 4:  # as pairing does
        key, version = (int.from_bytes(data[at : at + 2], "big", signed=True) for at in (0, 2))
    return landed(data, direction, key, version, policy=policy, flags=flags, protocol=protocol)


def _same_records(frame: Asked) -> None:
    """The plain reader of records and the kernel's find the same in each records field."""
    found = CODEC.records(
        frame.data, direction=frame.direction, api_key=frame.api_key, api_version=frame.api_version, flags=frame.flags
    )
    removed = bool(frame.flags & FrameFlags.PAYLOAD_REMOVED)
    for part in found.partitions:
        plain = read_records(frame.data, part.start, part.end, payload=True, removed=removed)
        columns = read_columns(frame.data, part.start, part.end, removed=removed)
        assert columns.problems == plain.problems
        facts = [(*row[:6], row[6] and (java_text(row[6][0]).encode(), row[6][1])) for row in column_facts(columns)]
        assert facts == plain_facts(plain)


def _sealed_alike(given: Frame, stored: Frame) -> None:
    """The kernel that redacts does what the plain one does, in what it does not give back."""
    sealed = KafkaBulk.sealed(given)
    assert sealed is None or (sealed.frame, sealed.flags) == (stored.frame, stored.flags), given.payload_policy


def _no_leak(stored: Frame, is_leak: Callable[[Frame], bool]) -> None:
    if is_leak(stored):
        raise LeakError(f"policy {stored.payload_policy}, flags {stored.flags}, stored as\n{stored.frame.hex()}")


def _decoded(protocol: str, asked: Asked) -> Message:
    message = CODEC.decode(
        asked.data, protocol=protocol, direction=asked.direction, api_key=asked.api_key,
        api_version=asked.api_version, flags=asked.flags,
    )  # fmt: skip
    assert message.error_code != "internal", message.error_detail
    return message


def _facts_of(asked: Asked) -> None:
    """What is stored decodes, and facts can be drawn from it."""
    message = _decoded("mongodb", asked)
    half = Half(message.header, message.body, asked.flags)
    command_facts(half, half)
    handshake(half)
