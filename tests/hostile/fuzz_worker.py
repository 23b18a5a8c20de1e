"""Does every reader keep the invariants on every hostile frame? One process of the long fuzzing."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import re
import resource
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from decoder import Message
from tests.hostile.invariants import check
from tests.hostile.mutate import Hostile
from tests.hostile.readers import READERS, Reader
from tests.hostile.readers import mutator as mutator_for

WARM_UP = 10_000
"""Frames before memory counts: caches of the readers and of the samples fill."""

MEMORY_EVERY = 1000
"""Frames between two looks at the memory."""

CPU_US = 50_000
CPU_US_PER_BYTE = 20
"""The most CPU time that a call may take. The plain reader takes 1 to 2 µs a value; a byte holds at most two."""


class Report(ctypes.Structure):
    """What a worker reports while it runs, in shared memory: it survives the worker's sudden death."""

    _fields_ = (
        ("number", ctypes.c_int64),  # of the first frame of the call that runs
        ("done", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("cpu_us", ctypes.c_int64),
        ("memory_start", ctypes.c_int64),
        ("memory_now", ctypes.c_int64),
        ("slowest_us", ctypes.c_int64),
        ("slowest_bytes", ctypes.c_int64),
        ("slowest_number", ctypes.c_int64),
    )


@dataclass(frozen=True, slots=True)
class Job:
    """What one worker does: every ``step``-th frame from ``first``, ``count`` in all."""

    seed: int
    first: int
    step: int
    count: int
    readers: tuple[str, ...]
    memory_growth: int
    faults: Path
    timed: bool = True
    """Whether a call that takes absurdly long is a violation."""


class ViolationError(AssertionError):
    """Raised when a frame breaks an invariant."""


def work(job: Job, report: Any) -> None:
    """What the process does."""
    faulthandler.enable()
    gc.freeze()  # what is there for good is not searched again and again
    run(job, report)


def run(job: Job, report: Any) -> None:
    """Decode and check all frames of a job. Exit code 1 and a file in ``job.faults`` at the first violation."""
    mutator = mutator_for(job.readers, job.seed)
    readers = [READERS[name] for name in job.readers]
    at_once = frames_together(job.readers)
    mutator.frame(0)  # makes the samples
    report.memory_start = memory()
    for start in range(0, job.count, at_once):
        numbers = [job.first + job.step * index for index in range(start, min(start + at_once, job.count))]
        report.number = numbers[0]
        frames = [mutator.frame(number) for number in numbers]
        try:
            _compare(frames, [_read(reader, frames, job, report) for reader in readers])
            if start % MEMORY_EVERY < at_once:
                _check_memory(job, report)
        except Exception as error:  # whatever it is, it is a fault
            suspects = frames[numbers.index(report.number) :]
            path = write_fault(job, report.number, suspects, "".join(traceback.format_exception(error)))
            print(f"\n{type(error).__name__}: {error!s:.500}\nThe frames are in {path}", flush=True)
            raise SystemExit(1) from error
        report.done += len(frames)
    report.memory_now = memory()


def frames_together(readers: Sequence[str]) -> int:
    """How many frames these readers read before the next ones are made."""
    return max(max(READERS[name].at_once, READERS[name].compared) for name in readers)


def _read(reader: Reader, frames: list[Hostile], job: Job, report: Any) -> list[Message]:
    """One reader's messages, each checked, in the calls that it likes."""
    messages: list[Message] = []
    first = report.number
    for start in range(0, len(frames), reader.at_once):
        report.number = first + job.step * start
        part = frames[start : start + reader.at_once]
        size = sum(len(frame.data) for frame in part)
        begun = time.process_time_ns()
        found = reader.decode(part)
        spent = (time.process_time_ns() - begun) // 1000
        report.cpu_us += spent
        report.bytes += size
        if spent > report.slowest_us or spent > CPU_US + CPU_US_PER_BYTE * size:
            spent = min(spent, _again_us(reader, part))  # once may be another's doing
        if spent > report.slowest_us:
            report.slowest_us, report.slowest_bytes, report.slowest_number = spent, size, report.number
        if job.timed and spent > CPU_US + CPU_US_PER_BYTE * size:
            raise ViolationError(f"{spent} µs of CPU time for {size} bytes")
        if len(found) != len(part):
            raise ViolationError(f"{len(found)} messages for {len(part)} frames")
        for frame, message in zip(part, found, strict=True):
            check(message, len(frame.data))
        messages += found
    report.number = first
    if reader.compare is not None:
        reader.compare(frames, messages)
    return messages


def _again_us(reader: Reader, frames: Sequence[Hostile]) -> int:
    """A call's CPU time, the best of three."""
    times = []
    for _ in range(3):
        begun = time.process_time_ns()
        reader.decode(frames)
        times.append((time.process_time_ns() - begun) // 1000)
    return min(times)


def _compare(frames: list[Hostile], results: list[list[Message]]) -> None:
    for other in results[1:]:
        for frame, first, second in zip(frames, results[0], other, strict=True):
            if first != second:
                pairs = [(item.name, getattr(first, item.name), getattr(second, item.name)) for item in fields(Message)]
                names = [name for name, one, two in pairs if one != two]
                raise ViolationError(f"the readers differ in {', '.join(names)} of {frame}")


def _check_memory(job: Job, report: Any) -> None:
    report.memory_now = memory()
    if report.done <= WARM_UP:
        report.memory_start = report.memory_now
    elif report.memory_now - report.memory_start > job.memory_growth:
        grown = (report.memory_now - report.memory_start) / 2**20
        raise ViolationError(f"resident memory grew by {grown:.0f} MiB since frame {WARM_UP}")


def memory() -> int:
    """Resident bytes now; the most so far where the system has no /proc.

    Without pages of files, such as libraries: the system drops them, and reads them again, as it likes.
    """
    status = Path("/proc/self/status")
    if status.exists():
        own = re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB$", status.read_text(), re.MULTILINE)
        return sum(map(int, own)) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def write_fault(job: Job, number: int, frames: Sequence[Hostile], why: str) -> Path:
    """Everything that it takes to see the fault again."""
    job.faults.mkdir(parents=True, exist_ok=True)
    path = job.faults / f"fault-{job.seed}-{number}.txt"
    lines = [f"seed {job.seed}, from frame {number}, every {job.step}., readers {', '.join(job.readers)}", "", why]
    for frame in frames:
        context = f"{frame.direction} api_key={frame.api_key} api_version={frame.api_version} flags={frame.flags}"
        lines += [f"{context} ({frame.made_by})", frame.data.hex(), ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path
