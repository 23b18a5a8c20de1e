"""What does a capture cost the agent? Read as ``capture live`` and ``capture read`` do, in a process of its own."""

from __future__ import annotations

import contextlib
import cProfile
import multiprocessing
import pstats
import re
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

from pipeline.capture.landing.object_stores import open_store
from pipeline.capture.packets.packet import Packet
from pipeline.capture.runs.run import CaptureRun
from pipeline.capture.tcp.work_limits import WorkLimits

MIB = 2**20
_CONTEXT = multiprocessing.get_context("fork")
"""A child begins with the compiled code and the caches of its parent: they are the baseline."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading a capture took.

    Attributes:
        wire_bytes: of the packets, headers included.
        cpu_s: CPU time in all.
        later_s, later_bytes: of the second half, with the end: what it takes when all allowances are used up.
        memory: resident bytes at most, beyond those at the begin.
        is_cut: whether it was ended because it took too long; then it would have taken more.
        died: how the process ended, if it did not do so by itself.
    """

    wire_bytes: int
    cpu_s: float
    later_s: float
    later_bytes: int
    memory: int
    is_cut: bool = False
    died: str = ""

    @property
    def us_per_byte(self) -> float:
        return self.cpu_s * 1e6 / max(self.wire_bytes, 1)

    @property
    def sustained_us_per_byte(self) -> float:
        """Of the second half; of all of it if that was not reached."""
        return self.later_s * 1e6 / self.later_bytes if self.later_bytes else self.us_per_byte

    @property
    def mb_per_s(self) -> float:
        return 1 / max(self.us_per_byte, 1e-9)


class _OutOfTimeError(BaseException):
    """Not an Exception: the decoder turns those into messages."""


def _out_of_time(_signal: int, _frame: object) -> None:
    raise _OutOfTimeError


def warm_up(packets: Sequence[Packet]) -> None:
    """Load compiled code and fill caches, here and so in all children."""
    _read(packets, _nothing)


def cost(
    packets: Sequence[Packet], limit_s: float = 60.0, work: WorkLimits | None = None, *, is_live: bool = False
) -> Cost:
    """Read the packets in a child of this process.

    Args:
        packets: the capture.
        limit_s: CPU seconds after which it is ended.
        work: what reading connections may cost; None: the default.
        is_live: the packets do not wait until they are read.
    """
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_measure, args=(packets, limit_s, work, is_live, sender), daemon=True)
    process.start()
    sender.close()
    try:
        found = receiver.recv() if receiver.poll(20 * limit_s + 60) else None
    except EOFError:
        found = None
    process.kill()
    process.join()
    if found is None:
        size = sum(len(packet.data) for packet in packets)
        return Cost(size, limit_s, 0.0, 0, 0, True, f"exit code {process.exitcode}")
    assert isinstance(found, Cost)
    return found


def part_of_allowances(part: float) -> WorkLimits:
    """The default limits, but what anybody may cause at the begin: a part of that.

    An answered connection may take 20 s of CPU at once (100 s of a file): a short capture would show nothing else.
    """
    whole = WorkLimits()
    names = "unanswered_units", "all_unanswered_units", "answered_units", "all_answered_units", "live_answered_units"
    return replace(whole, **{name: max(int(getattr(whole, name) * part), 1) for name in names})


def hot_spots(packets: Sequence[Packet], count: int = 3, limit_s: float = 5.0) -> list[str]:
    """Where the time goes: functions with the part of the time that is spent in each itself, the most first."""
    profiler = cProfile.Profile()
    signal.signal(signal.SIGPROF, _out_of_time)
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    with contextlib.suppress(_OutOfTimeError):
        profiler.runcall(_read, packets, _nothing)
    signal.setitimer(signal.ITIMER_PROF, 0)
    profiler.create_stats()
    spent = {place: times[2] for place, times in pstats.Stats(profiler).stats.items()}  # type: ignore[attr-defined]
    total = max(sum(spent.values()), 1e-9)
    worst = sorted(spent, key=spent.__getitem__, reverse=True)[:count]
    return [f"{Path(file).stem}:{line} {name} {spent[file, line, name] / total:.0%}" for file, line, name in worst]


def _measure(
    packets: Sequence[Packet], limit_s: float, work: WorkLimits | None, is_live: bool, sender: Connection
) -> None:
    total = sum(len(packet.data) for packet in packets)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the most from here on
    begin, base = time.process_time(), _memory("VmRSS")
    marks: list[float] = []
    signal.signal(signal.SIGPROF, _out_of_time)
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    is_cut = False
    try:
        _read(packets, lambda: marks.append(time.process_time()), work, is_live=is_live)
    except _OutOfTimeError:
        is_cut = True
    signal.setitimer(signal.ITIMER_PROF, 0)
    end = time.process_time()
    later = sum(len(packet.data) for packet in packets[len(packets) // 2 :]) if marks else 0
    peak = max(_memory("VmHWM") - base, 0)
    sender.send(Cost(total, end - begin, end - marks[0] if marks else 0.0, later, peak, is_cut))


def _read(
    packets: Sequence[Packet], on_half: Callable[[], object], work: WorkLimits | None = None, *, is_live: bool = False
) -> None:
    half = len(packets) // 2
    with tempfile.TemporaryDirectory(prefix="adversary-") as landing:
        run = CaptureRun(open_store(landing), agent_id="adversary", work=work)
        if is_live:
            run.agent.hasten()
        run.hurry()
        with run:
            for number, packet in enumerate(packets):
                if number == half:
                    run.catch_up()
                    on_half()
                run.take(packet)
            run.finish()


def _nothing() -> None:
    pass


def _memory(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
