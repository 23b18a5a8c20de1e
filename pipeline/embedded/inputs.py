"""What may be judged: captures, as ``capture read`` takes them, or a landing zone; both become landed rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.analysis.connections import are_in
from pipeline.analysis.fit import fit
from pipeline.analysis.tables import Tables
from pipeline.capture.landing.manifests import (
    MOST_BYTES,
    MOST_MANIFEST_BYTES,
    Kind,
    fault_of,
    manifest_place,
    parsed,
    size_fault,
    start_of,
)
from pipeline.capture.landing.stores import LandingError
from pipeline.capture.packets.packet import CaptureError, CutStreamError
from pipeline.capture.runs.reading import read_capture
from pipeline.capture.stats import CaptureStats
from pipeline.capture.tcp.work_limits import WorkLimits
from pipeline.embedded.private_folder import of_private_folder, private_folder
from pipeline.errors import UserError
from pipeline.lake.arrow import arrow_type, with_optional
from pipeline.lake.path_checks import is_landing_zone
from pipeline.tables import FRAMES, GAPS, LANDING_COLUMNS

_LANDED = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in LANDING_COLUMNS])
_GAPS = "gaps"


@dataclass(frozen=True, slots=True)
class Landed:
    """Rows as the agent lands them, each once.

    Attributes:
        frames: columns of the landing zone.
        gaps: columns of ``bronze.gaps``.
        stats: what the capture held; None of a landing zone, which does not record it.
        set_aside: of a landing zone the files that are not what their manifests state, a sentence each.
    """

    frames: pa.Table
    gaps: pa.Table
    stats: CaptureStats | None
    set_aside: tuple[str, ...] = ()


class Inputs:
    """What was read, as files of a landing zone.

    Attributes:
        stats, set_aside: see Landed.
        cut: where standard input was cut off, as a sentence: what precedes that was read; else empty.
        rows: frames in all, as the files count them.
        has_connections: whether anything is known of connections without frames.
    """

    def __init__(self, zone: Path, stats: CaptureStats | None, *, is_ours: bool, cut: str = "") -> None:
        self.stats = stats
        self.cut = cut
        self.set_aside: tuple[str, ...] = ()
        self._frames, self._gaps = frame_files(zone), gap_files(zone)
        if not is_ours:
            self._frames, no_frames = checked(zone, "frames", self._frames)
            self._gaps, no_gaps = checked(zone, "gaps", self._gaps)
            self.set_aside = (*no_frames, *no_gaps)
        self.rows = sum(_rows_in(file) for file in self._frames)
        self.has_connections = not self.rows and _have_connections(self._gaps)

    @property
    def is_whole(self) -> bool:
        """Whether all was read that there should be. A file that is cut off at its end counts as whole."""
        is_damaged = self.stats is not None and self.stats.damaged_files > 0
        return not (self.cut or self.set_aside or is_damaged)

    def landed(self) -> Landed:
        """All rows at once. Raises UserError if a file cannot be read."""
        return Landed(*rows_of(self._frames, self._gaps), self.stats, self.set_aside)

    def gaps(self) -> pa.Table:
        """The gaps alone. Raises UserError if a file cannot be read."""
        return rows_of([], self._gaps)[1]

    def pieces(self, rows: int) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Frames and gaps in the order of time, at most this many frames of one file at once; all gaps come first.

        A file that is there under two names is read twice.

        Raises:
            UserError: a file cannot be read.
        """
        none, gaps = rows_of([], self._gaps)
        for file in self._frames:
            frames = rows_of([file], [])[0]
            for start in range(0, frames.num_rows, rows):
                yield frames.slice(start, rows), gaps
                gaps = gaps.slice(0, 0)
        if gaps.num_rows:
            yield none, gaps


@contextmanager
def open_inputs(
    paths: Iterable[str],
    *,
    allow_truncated: bool | None = False,
    tls_keylog: str | None = None,
    tls_embedded_keys: bool = False,
    work: WorkLimits | None = None,
    on_progress: Callable[[CaptureStats], None] | None = None,
) -> Iterator[Inputs]:
    """Read captures as ``wirelake capture read`` does, or a landing zone that it wrote.

    What is read of a capture is, redacted by the payload policy ``lengths``, in a private temporary folder meanwhile.
    Standard input that is cut off is read up to there, for it cannot be read again: see Inputs.cut.

    Args:
        paths: captures, directories of them, ``-`` for standard input; or one landing zone.
        allow_truncated, tls_keylog, tls_embedded_keys, work, on_progress: see pipeline.capture.runs.reading.

    Raises:
        CaptureError: a capture cannot be read.
        UserError: a landing file cannot be read, or the temporary folder not be written.
    """
    wanted = list(paths)
    if len(wanted) == 1 and is_landing_zone(wanted[0]):
        if tls_keylog is not None or tls_embedded_keys or allow_truncated:
            raise UserError(
                f"{wanted[0]} is a landing zone, which is read already: --tls-keylog, --tls-embedded-keys and "
                "--allow-truncated are for captures"
            )
        yield Inputs(Path(wanted[0]), None, is_ours=False)
        return
    cuts: list[str] = []

    def on_error(error: CaptureError) -> None:
        if not isinstance(error, CutStreamError):
            raise error
        cuts.append(str(error))

    with private_folder() as folder:
        try:
            stats = read_capture(
                wanted,
                folder,
                allow_truncated=allow_truncated,
                tls_keylog=tls_keylog,
                tls_embedded_keys=tls_embedded_keys,
                work=work,
                store_timeout_s=0.0,  # our waiting would not be seen, and nothing is lost that could not be read again
                are_read_once=True,
                on_progress=on_progress,
                on_error=on_error,
            )
        except LandingError as error:
            raise UserError(of_private_folder(str(error))) from error
        yield Inputs(folder, stats, is_ours=True, cut="; ".join(cuts))


def read_inputs(paths: Iterable[str]) -> Landed:
    """All rows of captures, or of a landing zone, at once. See :func:`open_inputs`."""
    with open_inputs(paths) as inputs:
        return inputs.landed()


def _have_connections(files: Iterable[Path]) -> bool:
    return are_in(rows_of([], list(files))[1])


def _rows_in(file: Path) -> int:
    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{file} cannot be read: {error}. Read the capture again, or take the file away") from error


def frame_files(zone: Path) -> list[Path]:
    """The files of a landing zone that hold frames, in the order of their first frames."""
    return sorted(zone.glob("date=????-??-??/[!.]*.parquet"), key=lambda file: (start_of(file.stem), file))


def gap_files(zone: Path) -> list[Path]:
    """Those that hold gaps."""
    return sorted((zone / _GAPS).rglob("[!.]*.parquet"), key=lambda file: (start_of(file.stem), file))


def checked(zone: Path, kind: Kind, files: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Those that are what their manifests state, or have none; of the others why they are not read."""
    good, aside = [], []
    for file in files:
        fault = _fault(zone, kind, file)
        if fault is None:
            good.append(file)
        else:
            aside.append(f"{file} {fault}: it is left out")
    return good, aside


def _fault(zone: Path, kind: Kind, file: Path) -> str | None:
    place = zone / manifest_place(kind, file.stem)
    try:
        with place.open("rb") as read:
            manifest: bytes | None = read.read(MOST_MANIFEST_BYTES)
    except FileNotFoundError:
        manifest = None
    except OSError as error:
        return f"has a manifest that cannot be read ({error.strerror})"
    try:
        size = file.stat().st_size
        if manifest is None:
            return size_fault(size)
        stated = parsed(manifest, file.relative_to(zone).as_posix())
        if stated is None or size != stated.size or size > MOST_BYTES:
            return fault_of(size, "", stated)
        with file.open("rb") as content:
            return fault_of(size, _digest(content), stated)
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _digest(content: IO[bytes]) -> str:
    found = hashlib.sha256()
    while some := content.read(1 << 20):
        found.update(some)
    return found.hexdigest()


def rows_of(frames: list[Path], gaps: list[Path]) -> tuple[pa.Table, pa.Table]:
    """What files of a landing zone hold, each row once. See Landed.

    Raises:
        UserError: one of them cannot be read.
    """
    return (
        _once(_read(frames, _LANDED), FRAMES.key, ("ts", "payload_policy")),
        _once(fit(_dated(_read(gaps, None)), GAPS), GAPS.key, ("ts",)),
    )


def _read(files: list[Path], schema: pa.Schema | None) -> pa.Table:
    found = []
    for file in files:
        try:
            rows = pq.ParquetFile(file).read()
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{file} cannot be read: {error}. Read the capture again, or take the file away") from error
        if schema is not None:
            rows = with_optional(rows, LANDING_COLUMNS).select(schema.names).cast(schema)
        found.append(rows)
    if found:
        return pa.concat_tables(found, promote_options="default")
    return schema.empty_table() if schema is not None else pa.table({})


def _dated(rows: pa.Table) -> pa.Table:
    if not rows.num_rows:
        return rows
    return rows.append_column("date", rows.column("ts").cast(pa.timestamp("us")).cast(pa.date32(), safe=False))


def _once(rows: pa.Table, key: tuple[str, ...], order: tuple[str, ...]) -> pa.Table:
    """Each row once: the same capture may have been read twice."""
    tables = Tables({"rows": rows})
    try:
        (counted,) = tables.rows(f"SELECT count(*) AS rows, count(DISTINCT ({', '.join(key)})) AS keys FROM rows")
        if counted.rows == counted.keys:
            return rows
        first = f"row_number() OVER (PARTITION BY {', '.join(key)} ORDER BY {', '.join(order)}) = 1"
        return tables.table(f"SELECT * FROM rows QUALIFY {first}").cast(rows.schema)
    finally:
        tables.close()
