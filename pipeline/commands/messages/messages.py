"""The messages of a capture in the order of time, for ``wirelake decode`` and ``wirelake explain``."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from decoder import Codec, Frame, Message
from decoder.errors import ErrorCode
from decoder.model import FrameFlags, PayloadPolicy
from pipeline.capture.packets.sources import capture_files
from pipeline.capture.runs.one_capture import frames_of
from pipeline.capture.sessions.pending_requests import HOLD_FRAMES, HOLD_US
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.work_limits import WorkLimits
from pipeline.commands.messages.failures import Failures
from pipeline.commands.messages.large import LargeMessages

_REORDER_US = HOLD_US + 1_000_000
"""The agent holds a request until its response comes, up to a limit; 1 s more and the order of time is restored."""

_SILENT = int(FrameFlags.NO_RESPONSE_EXPECTED)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A frame of a capture, its message, and its place among all of them.

    Attributes:
        number: ordinal in the order of time, from 1.
        message: of a response that does not carry its api, with that of its request.
        latency_us: of a response: last byte of the request to first byte of the response.
        request: of a response that of its request, where these are kept and it was seen.
        service_us: the latency without waiting behind earlier requests of its connection; None if that is not known.
    """

    number: int
    frame: Frame
    message: Message
    latency_us: int | None
    request: Message | None = None
    service_us: int | None = None


def ordered_frames(
    paths: Iterable[str],
    *,
    allow_truncated: bool | None = False,
    payload_policy: PayloadPolicy = "lengths",
    tls_keylog: str | None = None,
    tls_embedded_keys: bool = False,
    work: WorkLimits | None = None,
    stats: CaptureStats | None = None,
) -> Iterator[Frame]:
    """All frames of some captures, each capture in the order of time. Arguments as for frames_of.

    A response that was captured before its request (packets may swap places) comes right behind it.

    Raises:
        CaptureError: a capture cannot be read.
    """
    for path in capture_files(paths):
        waiting: list[tuple[int, int, Frame]] = []
        sent: dict[str, int] = {}
        seen = CaptureStats()
        frames = frames_of(
            path,
            allow_truncated=allow_truncated,
            payload_policy=payload_policy,
            tls_keylog=tls_keylog,
            tls_embedded_keys=tls_embedded_keys,
            work=work,
            stats=seen,
        )
        for count, item in enumerate(frames):
            if isinstance(item, Frame):
                heapq.heappush(waiting, (_place(item, sent), count, item))
                while waiting[0][0] < item.ts - _REORDER_US:
                    yield heapq.heappop(waiting)[2]
        while waiting:
            yield heapq.heappop(waiting)[2]
        if stats is not None:
            stats.add(seen)


def _place(frame: Frame, sent: dict[str, int]) -> int:
    """The time at which a frame is shown: its own, of a response not less than that of its request in ``sent``."""
    if frame.exchange_id is None:
        return frame.ts
    if frame.direction == "request":
        sent[frame.exchange_id] = frame.ts
        return frame.ts
    return max(frame.ts, sent.pop(frame.exchange_id, 0))


class MessageReader:
    """Decodes the frames of some captures, one after the other in the order of time.

    Args:
        keeps_requests: give each response its request's message, too.
        failures: where a message that the codec fails on is noted, which then counts as malformed; None: it raises.
        as_text: messages are only written down as JSON: see LargeMessages.
    """

    def __init__(
        self, *, keeps_requests: bool = False, failures: Failures | None = None, as_text: bool = False
    ) -> None:
        self._failures = failures
        self._codec, self._large = Codec(), LargeMessages(as_text=as_text)
        self._keeps = keeps_requests
        self._count = 0
        self._sent: dict[str, tuple[int, str | None]] = {}
        self._asked: OrderedDict[str, Message] = OrderedDict()

    def read(self, frame: Frame) -> Decoded:
        """The next frame's message."""
        self._count += 1
        message = self._decoded(frame)
        latency = service = asked = None
        name = frame.exchange_id
        if name is not None:
            if frame.direction == "request":
                if not frame.flags & _SILENT:
                    self._sent[name] = frame.ts_end, message.api_name
                    self._keep(name, message)
            elif (request := self._sent.pop(name, None)) is not None:
                latency = max(0, frame.ts - request[0])
                service = service_us(latency, frame)
                asked = self._asked.pop(name, None)
                if message.api_name is None:
                    message = replace(message, api_name=request[1])
        return Decoded(self._count, frame, message, latency, asked, service)

    def _decoded(self, frame: Frame) -> Message:
        try:
            return self._large.read(frame) or self._codec.decode(
                frame.frame,
                protocol=frame.protocol,
                direction=frame.direction,
                api_key=frame.api_key,
                api_version=frame.api_version,
                flags=frame.flags,
            )
        except Exception as error:
            if self._failures is None:
                raise
            self._failures.add(error, self._count, frame.exchange_id)
            return Message(
                {}, {}, "malformed", ErrorCode.INTERNAL.value, 0, type(error).__name__,
                api_key=frame.api_key, api_version=frame.api_version,
            )  # fmt: skip

    def _keep(self, name: str, message: Message) -> None:
        if self._keeps:
            self._asked[name] = message
            if len(self._asked) > HOLD_FRAMES:
                self._asked.popitem(last=False)


def service_us(latency_us: int, response: Frame) -> int | None:
    """``service_us`` of ``silver.exchanges``: see :mod:`pipeline.analysis.pairing`."""
    if response.flags & FrameFlags.AFTER_GAP:
        return None
    return latency_us if response.idle_us is None else min(latency_us, response.idle_us)


def decoded_messages(frames: Iterable[Frame], *, keeps_requests: bool = False) -> Iterator[Decoded]:
    """The messages of the frames of some captures, as :func:`ordered_frames` gives them."""
    reader = MessageReader(keeps_requests=keeps_requests)
    return map(reader.read, frames)


def iso_time(ts_us: int) -> str:
    """A capture time (µs since the epoch) in ISO 8601, UTC, with microseconds."""
    return (
        datetime.fromtimestamp(ts_us // 1_000_000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
        + f".{ts_us % 1_000_000:06d}Z"
    )


def as_object(decoded: Decoded) -> dict[str, Any]:
    """One message as the JSON object of ``wirelake decode --json``."""
    frame, message = decoded.frame, decoded.message
    return {
        "frame": decoded.number,
        "ts": iso_time(frame.ts),
        "connection_id": frame.connection_id,
        "exchange_id": frame.exchange_id,
        "direction": frame.direction,
        "protocol": frame.protocol,
        "api_key": message.api_key,
        "api_name": message.api_name,
        "api_version": message.api_version,
        "correlation_id": frame.correlation_id,
        **({"reply_to": frame.reply_to} if frame.reply_to is not None else {}),
        "client_id": message.client_id,
        "size": frame.size,
        "status": message.status,
        "error_code": message.error_code,
        "error_offset": message.error_offset,
        "header": message.header,
        "body": message.body,
        **({"embedded": message.embedded} if message.embedded else {}),
        "latency_us": decoded.latency_us,
        "service_us": decoded.service_us,
    }
