"""``wirelake capture read``: capture files and standard input into the landing zone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.capture.landing.object_stores import open_store
from pipeline.capture.landing.stores import Store
from pipeline.capture.packets.packet import CaptureError, CutStreamError, DamagedCaptureError
from pipeline.capture.packets.pipe import Stop
from pipeline.capture.packets.sources import STDIN, Extent, capture_files, captures, extent, read_packets
from pipeline.capture.runs.one_capture import check_link_types, decryption_of
from pipeline.capture.runs.options import RunOptions
from pipeline.capture.runs.run import CaptureRun
from pipeline.capture.stats import CaptureStats
from pipeline.config.memory_limits import has_room_to_compile, is_capture_code_compiled

if TYPE_CHECKING:
    from typing_extensions import Unpack

LARGE_BYTES = 16 * 1024 * 1024
"""Files of this size, all pieces of a capture together, are read by the block."""

COMPILED_LARGE_BYTES = 1024 * 1024
"""Where the code for that was compiled before, files of this size are."""

LIVE_S = 60.0
"""Standard input whose first packet is younger is a capture under way: what is not read soon is lost to the one who
captures."""

STOP_AFTER_S = 1.0
"""How long standard input is read on once a stop was asked for: whoever writes into the pipe was asked, too."""


def _raise(error: CaptureError) -> None:
    raise error


def read_capture(
    paths: Iterable[str | Path],
    landing: str | Path | Store,
    *,
    allow_truncated: bool | None = False,
    tls_keylog: str | Path | None = None,
    tls_embedded_keys: bool = False,
    stop: Stop | None = None,
    on_progress: Callable[[CaptureStats], None] | None = None,
    on_error: Callable[[CaptureError], None] = _raise,
    **options: Unpack[RunOptions],
) -> CaptureStats:
    """Read captures into the landing zone. A landing file appears as soon as its rows are complete.

    Of a damaged file the landing files stay that were complete before the damage; reading it with ``allow_truncated``,
    or whole, adds the rest. Files that follow each other in time are pieces of one capture:
    their connections continue (see pipeline.capture.packets.sources.captures). Standard input lands as it comes, also
    what precedes the place where it is cut off. To be decrypted every file is alone, because tshark reads it beside us.

    Args:
        paths: capture files, directories of them, ``-`` for standard input; see :func:`frames_of`. Standard input whose
            first packet is younger than LIVE_S is read as ``capture live`` reads (see WorkLimits.when_live).
        landing: the landing zone, or its path or URL; see pipeline.capture.landing.object_stores.
        allow_truncated, tls_keylog, tls_embedded_keys, on_progress: see :func:`frames_of`.
        stop: asked to, standard input ends.
        on_error: called for every file that cannot be read; the others are read. By default it is raised, before any
            other file is read.
        options: how the agent reads, and its frames land; ``publish_every_s`` counts for standard input alone.

    Raises:
        LandingError: the landing zone cannot be written.
    """
    store, total = open_store(landing), CaptureStats()
    files = list(_files(paths, on_error))
    if STDIN in files:
        try:
            with decryption_of(
                [STDIN], tls_keylog, use_embedded=tls_embedded_keys
            ):  # refuses: it would have to be read twice
                run = CaptureRun(store, on_progress=on_progress, **options)
                total.add(_read_standard_input(run, stop or Stop(), bool(allow_truncated), on_error))
        except CaptureError as error:
            on_error(error)
    files = [file for file in files if file != STDIN]
    allows = allow_truncated is not False
    extents = [Extent(file) for file in files] if len(files) == 1 else list(_extents(files, allows, on_error))
    options = {**options, "publish_every_s": None}
    decrypts = tls_keylog is not None or tls_embedded_keys
    for pieces in [[file.path] for file in extents] if decrypts else captures(extents):
        try:
            with decryption_of(pieces, tls_keylog, use_embedded=tls_embedded_keys) as decryption:
                run = CaptureRun(store, decryption, on_progress=on_progress, **options)
                total.add(_read_pieces(pieces, run, allows))
        except CaptureError as error:
            on_error(error)
    return total


def _files(paths: Iterable[str | Path], on_error: Callable[[CaptureError], None]) -> Iterable[str]:
    for path in paths:
        try:
            yield from capture_files([path])
        except CaptureError as error:
            on_error(error)


def _extents(files: Iterable[str], allow_truncated: bool, on_error: Callable[[CaptureError], None]) -> Iterable[Extent]:
    for file in dict.fromkeys(files):
        try:
            yield extent(file, allow_truncated=allow_truncated)
        except CaptureError as error:
            on_error(error)


def _read_pieces(pieces: Sequence[str], run: CaptureRun, allow_truncated: bool) -> CaptureStats:
    read = _read_by_blocks if _are_large(pieces) and has_room_to_compile() else _read_one_by_one
    with run:
        for number, path in enumerate(pieces, 1):
            try:
                read(path, run)
            except DamagedCaptureError as error:
                if not allow_truncated:
                    raise
                run.stats.count_cut(error)
            if number < len(pieces):
                run.publish()
        run.finish()
        check_link_types(run.stats, pieces[0])
        return run.stats


def _are_large(pieces: Sequence[str]) -> bool:
    size = sum(Path(path).stat().st_size for path in pieces)
    return size >= LARGE_BYTES or (size >= COMPILED_LARGE_BYTES and is_capture_code_compiled())


def _read_by_blocks(path: str, run: CaptureRun) -> None:
    from pipeline.capture.fast_path.block import read_blocks  # noqa: PLC0415

    agent = run.hurry()
    for block in read_blocks(path, agent.note):
        run.add(agent.take_block(block))
        run.report_progress()


def _read_one_by_one(path: str, run: CaptureRun) -> None:
    for packet in read_packets(path, on_aside=run.agent.note):
        run.take(packet)


def _read_standard_input(
    run: CaptureRun, stop: Stop, allow_truncated: bool, on_error: Callable[[CaptureError], None]
) -> CaptureStats:
    def on_wait() -> bool:
        run.wait()
        return not stop.asked(STOP_AFTER_S)

    with run:
        try:
            for packet in read_packets(STDIN, on_wait, run.agent.note):
                if not run.stats.packets and time.time() - packet.ts_us / 1e6 < LIVE_S:
                    run.agent.hasten()
                run.take(packet)
        except DamagedCaptureError as error:
            if not stop.asked():
                if allow_truncated:
                    run.stats.count_cut(error)
                else:
                    on_error(CutStreamError(STDIN, error.problem, error.offset))
        run.finish()
        check_link_types(run.stats, STDIN)
        return run.stats
