"""``wirelake capture read --follow``: all files of a ring as one capture that never ends, also across restarts.

The newest file is read as it grows. After each file, and when it has not grown for a while, the rows are published,
then the progress is replaced. A process that is killed in between does the file again and lands the same rows, which
the lake knows by their keys. No byte of the traffic is in the progress: a message that was not complete is read again
from the ring; if the ring does not hold it any more, that is a gap.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.capture.landing.object_stores import open_store
from pipeline.capture.landing.patience import PatientStore
from pipeline.capture.landing.stores import Store
from pipeline.capture.packets.growing import Growing
from pipeline.capture.packets.packet import CaptureError, DamagedCaptureError, Packet
from pipeline.capture.packets.pipe import Stop
from pipeline.capture.packets.sources import read_packets, read_stream
from pipeline.capture.runs.options import RunOptions
from pipeline.capture.runs.progress import FileId, Progress, ReadFile, damaged, load, save
from pipeline.capture.runs.reading import STOP_AFTER_S
from pipeline.capture.runs.ring import SETTLED_S, Ring, RingFile
from pipeline.capture.runs.run import CaptureRun
from pipeline.capture.stats import CaptureStats

if TYPE_CHECKING:
    from typing_extensions import Unpack

POLL_S = 0.5
"""How often the directory is looked at."""


def follow_ring(
    directory: str | Path,
    landing: str | Path | Store,
    *,
    until_idle_s: float | None = None,
    stop: Stop | None = None,
    on_progress: Callable[[CaptureStats], None] | None = None,
    on_problem: Callable[[str], None] = lambda _: None,
    **options: Unpack[RunOptions],
) -> CaptureStats:
    """Read the files of a ring into the landing zone, the newest as it grows, until a stop is asked for.

    Args:
        directory: where the capture rotates its files.
        landing: the landing zone, or its path or URL; see pipeline.capture.landing.object_stores.
        until_idle_s: end when there was nothing new for so long (s); a newest file that is compressed is read then,
            too, which else is left until it is finished.
        stop: asked to, it ends in good order.
        on_progress: called now and then.
        on_problem: called for files that disappeared unread, or are damaged.
        options: how the agent reads, and its frames land.

    Raises:
        CaptureError: the directory cannot be listed.
        LandingError: the landing zone cannot be written.
    """
    store = open_store(landing)
    with CaptureRun(store, on_progress=on_progress, **options) as run:
        run.agent.hasten()
        patient = PatientStore(store, run.store_timeout_s)
        follower = _Follower(Ring(directory, on_problem), run, patient, stop or Stop(), on_problem, until_idle_s)
        follower.resume()
        follower.follow()
        run.agent.count_open()
        return run.stats


@dataclass(slots=True)
class _Place:
    """How far the file that is being read was read.

    Attributes:
        bytes: of one that grows, else 0.
        is_noted: whether the progress states it.
        is_over: whether its end was reached, and not waited for more.
    """

    packets: int = 0
    bytes: int = 0
    is_noted: bool = True
    is_over: bool = False


class _Follower:
    def __init__(
        self,
        ring: Ring,
        run: CaptureRun,
        store: Store,
        stop: Stop,
        on_problem: Callable[[str], None],
        until_idle_s: float | None,
    ) -> None:
        self._ring = ring
        self._run = run
        self._store = store
        self._agent_id = run.agent.agent_id
        self._stop = stop
        self._on_problem = on_problem
        self._read: dict[FileId, ReadFile] = {}
        self._unread: set[FileId] = set()
        self._until_idle_s = until_idle_s
        self._news = time.monotonic()
        self._at: _Place
        self._damaged: set[FileId] = set()

    def resume(self) -> None:
        """Continue where the last process ended."""
        progress = load(self._store, self._agent_id, self._ring.directory)
        self._read = {read.file: read for read in progress.read}
        self._unread = set(progress.unread)
        try:
            self._run.agent.resume(progress.agent)
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(self._agent_id) from error
        files = [file for file in self._ring.look() if file.id in self._read]
        ends = [*(file.id.first_ts for file in files[1:]), None]
        for file, end in zip(files, ends, strict=False):
            if end is None or end > progress.agent.needs_from:
                self._read_again(file, progress.agent.needs_from)

    def follow(self) -> None:
        """Read what is new, again and again."""
        self._news = time.monotonic()
        while not self._stop.asked():
            is_idle = self._is_idle()
            files = self._look()
            new = [file for file in files if self._is_new(file) and (self._grows(file) or file.is_finished or is_idle)]
            for file in sorted(new, key=self._grows):  # which one is read as long as it grows
                if self._stop.asked():
                    return
                self._read_new(file)
            if new:
                continue
            if is_idle:
                return
            time.sleep(POLL_S)

    def _is_idle(self) -> bool:
        return self._until_idle_s is not None and time.monotonic() - self._news >= self._until_idle_s

    def _look(self) -> list[RingFile]:
        files = self._ring.look()
        there = {file.id for file in files}
        self._report_missed(sorted(self._unread - there))
        self._read = {id_: read for id_, read in self._read.items() if id_ in there}
        self._unread = there - self._read.keys()
        self._damaged &= there
        return files

    def _is_new(self, file: RingFile) -> bool:
        read = self._read.get(file.id)
        return read is None or file.size > read.size

    def _grows(self, file: RingFile) -> bool:
        """Whether it can be read while it is being written: not behind a damaged place."""
        return file.is_growing and file.id not in self._damaged

    def _read_again(self, file: RingFile, needs_from: int) -> None:
        """Only for the messages that were not complete."""
        left = self._read[file.id].packets
        try:
            for packet in read_packets(file.path):
                if not left:
                    return
                left -= 1
                if packet.ts_us >= needs_from:
                    self._run.add(self._run.agent.again(packet))
        except CaptureError:
            return  # it was reported when the file was read, or the file has gone: a gap shows the missing bytes

    def _read_new(self, file: RingFile) -> None:
        done = self._read.get(file.id)
        self._at, skip = _Place(), done.packets if done is not None else 0
        size, is_missed = file.size, False
        try:
            for packet in self._packets(file):
                self._at.packets += 1
                if self._at.packets > skip:
                    self._run.take(packet)
                    if self._stop.asked(STOP_AFTER_S if self._grows(file) else 0.0):
                        size = 0
                        break
        except DamagedCaptureError as error:
            is_amid = self._grows(file) and not self._at.is_over  # not where it only ends for now
            if is_amid or not self._is_written(file):
                self._report_damage(file, error)
        except CaptureError:  # it was there a moment ago
            is_missed = True
        size = size and max(size, self._at.bytes)
        self._unread.discard(file.id)
        if is_missed or self._ring.is_overwritten(file):
            self._report_missed([file.id])
        else:
            self._read[file.id] = ReadFile(file.id, max(self._at.packets, skip), size)
        self._checkpoint()

    def _packets(self, file: RingFile) -> Iterator[Packet]:
        if not self._grows(file):
            yield from read_packets(file.path, on_aside=self._run.agent.note)
            self._news = time.monotonic()
            return
        try:
            content = Growing(file.path, lambda: self._goes_on(file, content.position))
        except OSError as error:
            raise CaptureError(file.path, f"cannot be opened: {error.strerror}") from error
        with content:
            yield from read_stream(content, file.path, self._run.agent.note)

    def _goes_on(self, file: RingFile, position: int) -> bool:
        """All that is there of the newest file was read, up to ``position``: whether to wait for more."""
        if position > self._at.bytes:
            self._at.bytes, self._at.is_noted = position, False
            self._news = time.monotonic()
        self._run.catch_up()
        self._run.report_progress()
        if not self._at.is_noted and time.monotonic() - self._news >= SETTLED_S:
            self._read[file.id] = ReadFile(file.id, self._at.packets, 0)
            self._unread.discard(file.id)
            self._at.is_noted = True
            self._checkpoint()
        self._at.is_over = self._stop.asked() or self._is_idle() or not self._is_written(file)
        return not self._at.is_over

    def _is_written(self, file: RingFile) -> bool:
        """Whether more of a file may come, and nothing else is to be read: it is the newest, still."""
        try:
            files = self._ring.look()
        except CaptureError:  # whoever looks next reports it
            return False
        is_newest = [one.id for one in files if one.is_newest] == [file.id]
        return is_newest and not any(one.is_finished and one.id != file.id and self._is_new(one) for one in files)

    def _report_damage(self, file: RingFile, error: DamagedCaptureError) -> None:
        if file.id not in self._damaged:
            self._damaged.add(file.id)
            self._run.stats.count_cut(error)
            self._on_problem(self._run.stats.cut_off[-1])

    def _checkpoint(self) -> None:
        self._run.catch_up()
        agent = self._run.agent
        self._run.add(agent.release())
        self._run.publish()
        save(
            self._store,
            self._agent_id,
            Progress(self._ring.directory, tuple(self._read.values()), tuple(sorted(self._unread)), agent.state()),
        )

    def _report_missed(self, missed: list[FileId]) -> None:
        if not missed:
            return
        self._run.stats.ring_files_missed += len(missed)
        names = ", ".join(file.name for file in missed[:5]) + (" …" if len(missed) > 5 else "")
        self._on_problem(
            f"{len(missed):,} file{'s' * (len(missed) > 1)} of the ring disappeared before being read completely "
            f"({names}): what was in there is lost. "
            "Give the ring more or larger files (tcpdump -W/-C, dumpcap -b files:N), or read faster"
        )
