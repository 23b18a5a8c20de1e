"""How a TCP connection began and ended, as far as its packets show; what is not beyond doubt is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from pipeline.capture.network.link import ACK, FIN, RST, SYN, ZERO_WINDOW, Segment
from pipeline.capture.tcp.reassembly import HalfStream

if TYPE_CHECKING:
    from pipeline.capture.tcp.connection import Connection

Opened = Literal["yes", "refused", "unanswered", "unknown"]
"""``refused``: a reset answered each SYN; ``unanswered``: nothing did; ``unknown``: the capture lacks the begin or one
direction, or both sides sent a SYN."""

LifeState = tuple[int, int | None, int | None, int | None, bool, bool, tuple[int, int]]
"""What :meth:`Life.state` gives."""

_Pair = tuple[int, int]
_Times = tuple[int | None, int | None]

TallyState = tuple[_Pair, _Pair, _Pair, _Pair, _Pair, _Times, _Times, _Pair, bool]
"""What :meth:`Life.tally` gives."""

TimesState = tuple[_Times, _Times, _Times]
"""What :meth:`Life.times` gives."""

SAME_SYN_US = 100_000
"""A SYN that follows the one before so soon is its copy, which another port or interface shows: whoever gets no answer
waits longer, half a second and more (RFC 6298: 1 s), µs."""

IcmpState = tuple[int, int, int, str, int | None, int, int]
"""Fields of :class:`Icmp`."""

_MODULUS = 1 << 32
_HALF = 1 << 31
_OPENS_OR_ENDS = SYN | FIN | RST


class Looked(NamedTuple):
    """The state of one direction at the last look while its connection was open."""

    sent: int | None
    acked: int | None
    is_reported: bool
    stalled_us: int


NEVER = Looked(None, None, False, 0)


class Icmp(NamedTuple):
    """What ICMP errors state of segments of a connection.

    Attributes:
        way: direction of the segments.
        kind, code: type and code of the messages.
        by: address of who sent the first.
        mtu: bytes that a packet may have on the next hop, the smallest that a message states; None: none does.
        number: how many messages of this type and code there were.
        first_us: capture time of the first, µs.
    """

    way: int
    kind: int
    code: int
    by: str
    mtu: int | None
    number: int
    first_us: int


_NO_TIMES: _Times = (None, None)
"""All connections share it, until something happens to them: a flood may bring many."""


class Life:
    """What the packets of one connection show beside its bytes.

    Attributes:
        syns: SYNs of the side that opens it, without copies.
        syn_us, answer_us: capture times of the first of them and of the first answer to one, µs; None if not seen.
        is_odd: whether both sides sent a SYN: nothing is concluded of how it began.
        is_reported: whether it was reported already that nothing, or a reset, answers it.
        again: of each direction the segments with data that were sent once more.
        again_from, again_until: capture times of the first and the last of them, µs; None without one.
        packets, sent: of each direction the packets, and the bytes of TCP payload, sent again or not.
        probes: of each direction the keepalives: they repeat the last byte, or only its number.
        zero_windows: of each direction the packets by which it asks to be sent nothing.
        zero_from: capture time of the first of them, µs; None without one.
        stalled_us: for how long it did so, µs.
        stalled_since: since when it does so, µs; None if it does not.
        spoke_us: capture time of its last packet with data, µs; None if there was none.
        silence: how long no packet came at most, and the capture time after it, µs.
        looked: of each direction what was at the last look while the connection was open: bytes sent, bytes
            acknowledged, whether that was reported, and the time for which it had asked to be sent nothing, µs.
        icmp: what ICMP errors state of its segments; those of another type or code than the first are left out.
        is_foreign: it speaks no protocol of ours. Packets, bytes and times are counted, and nothing else: most of it
            is not read.
    """

    __slots__ = (
        "_last_syn_us", "_way", "again", "again_from", "again_until", "answer_us", "icmp", "is_foreign", "is_odd",
        "is_reported", "looked", "packets", "probes", "sent", "silence", "spoke_us", "stalled_since", "stalled_us",
        "syn_us", "syns", "zero_from", "zero_windows",
    )  # fmt: skip

    def __init__(self) -> None:
        self.syns = 0
        self.syn_us: int | None = None
        self.answer_us: int | None = None
        self._last_syn_us: int | None = None
        self._way: int | None = None
        self.is_odd = False
        self.is_reported = False
        self.again = [0, 0]
        self.again_from = self.again_until = self.zero_from = _NO_TIMES
        self.packets, self.sent, self.probes = [0, 0], [0, 0], [0, 0]
        self.zero_windows, self.stalled_us = [0, 0], [0, 0]
        self.stalled_since: list[int | None] = [None, None]
        self.spoke_us: list[int | None] = [None, None]
        self.silence = (0, 0)
        self.looked: list[Looked] = [NEVER, NEVER]
        self.icmp: Icmp | None = None
        self.is_foreign = False

    def take(self, direction: int, segment: Segment, half: HalfStream, ts: int, quiet_us: int) -> None:
        """Count a segment before its stream takes it.

        Args:
            direction, segment: it.
            half: the stream that it belongs to.
            ts: when it was captured, µs.
            quiet_us: for how long no packet had come.
        """
        size, flags = segment.length, segment.flags
        if flags & SYN and self._is_copy(direction, flags, ts):
            return
        self.packets[direction] += 1
        if quiet_us > self.silence[0]:
            self.silence = quiet_us, ts
        if self.is_foreign:
            if size:
                self.sent[direction] += size
                self.spoke_us[direction] = ts
            return
        expected = half.next
        behind = 0 if expected is None or flags & SYN else (expected - segment.seq) % _MODULUS
        if behind == 1 and size < 2 and not flags & _OPENS_OR_ENDS:
            self.probes[direction] += 1
        elif size:
            self.sent[direction] += size
            self.spoke_us[direction] = ts
            if size <= behind < _HALF:
                self.note_again(direction, 1, ts, ts)
        if flags & ZERO_WINDOW or self.stalled_since[direction] is not None:
            self._take_window(direction, flags, ts)

    def _take_window(self, direction: int, flags: int, ts: int) -> None:
        since = self.stalled_since[direction]
        if flags & ZERO_WINDOW and not flags & _OPENS_OR_ENDS:
            self.zero_windows[direction] += 1
            self.note_zero(direction, ts)
            self.stalled_since[direction] = ts if since is None else since
        elif since is not None:
            self.stalled_us[direction] += max(ts - since, 0)
            self.stalled_since[direction] = None

    def note_again(self, direction: int, number: int, first_us: int, last_us: int) -> None:
        """Segments were sent once more; ``first_us``, ``last_us``: capture times of the first and the last, µs."""
        self.again[direction] += number
        if self.again_from[direction] is None:
            self.again_from = _with(self.again_from, direction, first_us)
        self.again_until = _with(self.again_until, direction, last_us)

    def note_zero(self, direction: int, first_us: int) -> None:
        """A side asked to be sent nothing, first at ``first_us`` (capture time, µs)."""
        if self.zero_from[direction] is None:
            self.zero_from = _with(self.zero_from, direction, first_us)

    def note_icmp(self, new: Icmp) -> None:
        """An ICMP error about a segment was captured."""
        known = self.icmp
        if known is None:
            self.icmp = new
        elif known[:3] == new[:3]:
            mtu = min(filter(None, (known.mtu, new.mtu)), default=None)
            self.icmp = known._replace(number=known.number + 1, mtu=mtu)

    @property
    def is_in_trouble(self) -> bool:
        """Whether some of it was sent again, or a side asked to be sent nothing."""
        return self.again != [0, 0] or self.zero_windows != [0, 0]

    def stalled(self, direction: int, ts: int) -> int:
        """For how long a direction's side asked to be sent nothing until ``ts``, µs."""
        since = self.stalled_since[direction]
        return self.stalled_us[direction] + (0 if since is None else max(ts - since, 0))

    def note_silence(self, quiet_us: int, ts: int) -> None:
        """No packet had come for so long before ``ts`` (µs)."""
        if quiet_us > self.silence[0]:
            self.silence = quiet_us, ts

    def pass_by(self, direction: int, packets: int, size: int, spoke_us: int | None) -> None:
        """Count packets that are not read.

        Args:
            direction, packets: them.
            size: bytes of payload.
            spoke_us: capture time of the last of them with data, µs; None if there is none.
        """
        self.packets[direction] += packets
        self.sent[direction] += size
        if spoke_us is not None:
            self.spoke_us[direction] = spoke_us

    def take_syn(self, direction: int, ts: int, *, is_answer: bool) -> None:
        """A SYN, or the answer to one, was captured at ``ts`` (µs)."""
        if is_answer:
            self.answer_us = ts if self.answer_us is None else self.answer_us
            return
        if self._is_copy(direction, SYN, ts):
            return
        self._last_syn_us = ts
        self.is_odd |= self._way not in (None, direction)
        self._way = direction
        self.syns += 1
        self.syn_us = ts if self.syn_us is None else self.syn_us

    def _is_copy(self, direction: int, flags: int, ts: int) -> bool:
        """Whether a SYN was captured before, moments ago, as a copy."""
        last_us = self._last_syn_us
        return last_us is not None and direction == self._way and not flags & ACK and ts - last_us < SAME_SYN_US

    @property
    def is_half_seen(self) -> bool:
        """Whether the capture holds packets of one direction alone."""
        return 0 in self.packets

    def state(self) -> LifeState:
        """What another process needs to continue here."""
        again = self.again[0], self.again[1]
        return self.syns, self.syn_us, self.answer_us, self._way, self.is_odd, self.is_reported, again

    def tally(self) -> TallyState:
        """The same of what was counted."""
        return (
            _pair(self.packets), _pair(self.sent), _pair(self.probes), _pair(self.zero_windows),
            _pair(self.stalled_us), (self.stalled_since[0], self.stalled_since[1]),
            (self.spoke_us[0], self.spoke_us[1]), self.silence, self.is_foreign,
        )  # fmt: skip

    def times(self) -> TimesState:
        """The same of when some was sent again, and when a side first asked to be sent nothing."""
        return self.again_from, self.again_until, self.zero_from

    def resume(
        self, state: LifeState, tally: TallyState | None, times: TimesState | None, icmp: IcmpState | None
    ) -> None:
        """Continue where another one was; ``tally``, ``times``: None, it was of a release that did not keep them."""
        self.icmp = None if icmp is None else Icmp(*icmp)
        self.syns, self.syn_us, self.answer_us, self._way, self.is_odd, self.is_reported, again = state
        self.again, self._last_syn_us = list(again), self.syn_us
        if tally is not None:
            packets, sent, probes, windows, stalled_us, since, spoke, self.silence, self.is_foreign = tally
            self.packets, self.sent, self.probes, self.zero_windows = map(list, (packets, sent, probes, windows))
            self.stalled_us, self.stalled_since, self.spoke_us = list(stalled_us), list(since), list(spoke)
        if times is not None:
            self.again_from, self.again_until, self.zero_from = times


def _pair(counts: list[int]) -> tuple[int, int]:
    return counts[0], counts[1]


def _with(times: _Times, direction: int, ts: int) -> _Times:
    return (times[0], ts) if direction else (ts, times[1])


def opened(connection: Connection) -> Opened:
    """Whether the side that sent a SYN got a connection."""
    client, life = connection.client, connection.life
    if client is None or life.is_odd or life.syn_us is None:
        return "unknown"
    asks, answers = connection.halves[client], connection.halves[1 - client]
    if answers.isn is not None:
        return "yes"
    is_half_seen = answers.acked or answers.next is not None or answers.begins_late() or asks.has_begun
    if is_half_seen or asks.isn is None:
        return "unknown"
    if connection.reset_by is None:
        return "unanswered"
    return "refused" if connection.reset_by != client else "unknown"


def unacknowledged(connection: Connection, direction: int) -> int:
    """Bytes of a direction that were sent, and that no packet of the other side acknowledges."""
    half = connection.halves[direction]
    if half.next is None or half.first is None or not half.acked:
        return 0
    return max(half.next - max(half.acked, half.first), 0)
