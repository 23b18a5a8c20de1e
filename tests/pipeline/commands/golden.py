"""What the terminal commands print, at three widths: ``python -m tests.pipeline.commands.golden`` writes it again.

Look at what changed (``git diff tests/pipeline/commands/golden``) before it is committed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from typer.testing import CliRunner

from pipeline.cli import app
from pipeline.errors import UserError
from pipeline.tables import GAPS
from tests.golden_files import write_anew
from tests.paths import CAPTURES, ROOT
from tests.pipeline.lakes import diagnosed_lake
from tests.pipeline.rows import write

FOLDER = Path(__file__).parent / "golden"
WIDTHS = (80, 120, 200)
STUCK = "stuck_commit.pcap"
_WIDE = "SELECT " + ", ".join(f"range * {n} AS column_{n}" for n in range(1, 31)) + " FROM range(3)"
_TYPES = (
    "SELECT range AS number, range / 7 AS ratio, range % 2 = 0 AS is_even, 'name ' || repeat('x', range * 9) AS text, "
    "TIMESTAMPTZ '2026-11-21 04:46:08.5Z' + to_seconds(range) AS ts, [range, range + 1] AS list, "
    "CASE WHEN range = 1 THEN NULL ELSE {'a': range} END AS struct, DATE '2026-11-21' AS date, "
    "chr(27) || '[31m<b>|_x_|</b>' AS hostile, 1.50::DECIMAL(9, 2) AS amount FROM range(4)"
)
PRINTED: dict[str, tuple[str, ...]] = {
    "decode": ("decode", STUCK, "--since", "04:46:08.7", "--until", "04:46:09.1"),
    "decode_begin": ("decode", "version_negotiation.pcap", "--client", "rdkafka-*"),
    "decode_transactions": ("decode", "changing_hands.pcap", "--client", "relay*"),
    "decode_errors": ("decode", "incidents/stale_readers.pcap", "--errors"),
    "decode_refused": ("decode", "incidents/evicted.pcap", "--api", "OffsetCommit", "--errors"),
    "decode_mongodb": ("decode", "mongodb/plain.pcap"),
    "decode_old_mongodb": ("decode", "mongodb/old_opcodes.pcap"),
    "decode_records": ("decode", "version_negotiation.pcap", "--records"),
    "explain": ("explain", "version_negotiation.pcap", "--frame", "12"),
    "explain_exchange": ("explain", "version_negotiation.pcap", "--frame", "85", "--exchange"),
    "explain_exchange_mongodb": ("explain", "mongodb/plain.pcap", "--frame", "10", "--exchange"),
    "explain_offset": ("explain", "changing_hands.pcap", "--follow-offset", "stock", "0", "3"),
    "diagnose": ("diagnose", STUCK),
    "diagnose_healthy": ("diagnose", "healthy.pcap"),
    "diagnose_flat": ("diagnose", "incidents/evicted.pcap", "--flat"),
    "findings": ("findings", "--lake", "DIAGNOSED"),
    "findings_flat": ("findings", "--lake", "DIAGNOSED", "--flat"),
    "findings_open": ("findings", "--lake", "DIAGNOSED", "--ongoing", "--severity", "critical"),
    "findings_rule": ("findings", "--lake", "DIAGNOSED", "--rule", "poison_record"),
    "explain_hex": ("explain", "--hex", "00 12 00 00 00 00 00 07 00 04 64 65 6d 6f"),
    "capture_read": ("capture", "read", STUCK, "--landing", "NEW"),
    "tables": ("tables",),
    "tables_lake": ("tables", "--lake", "DIAGNOSED"),
    "describe_table": ("describe", "gold.incidents"),
    "sql_columns": ("sql", _WIDE, "--lake", "LAKE"),
    "sql_types": ("sql", _TYPES, "--lake", "LAKE"),
    "sql_rows": ("sql", "SELECT range AS n FROM range(12345)", "--lake", "LAKE", "--rows", "6"),
    "sql_markdown": ("sql", _TYPES, "--lake", "LAKE", "--format", "markdown"),
    "sql_csv": ("sql", _TYPES, "--lake", "LAKE", "--format", "csv"),
    "sql_json": ("sql", _TYPES, "--lake", "LAKE", "--format", "json"),
    "sql_no_table": ("sql", "FROM gold.findigs", "--lake", "LAKE"),
    "sql_no_column": ("sql", "SELECT byte_lost FROM bronze.gaps", "--lake", "LAKE"),
    "describe_view": ("describe", "consumer_lag"),
}  # fmt: skip
"""Names of files, and what is run for each; captures are those of tests/captures."""


def make_places(folder: Path) -> dict[str, Path]:
    """A lake in which queries run that ask for no rows of it, one that has rows, and what is not there yet."""
    write(folder / "lake", GAPS, [])
    diagnosed = diagnosed_lake(folder / "diagnosed", "stuck_commit", "mongodb/troubled_mongodb")
    return {"LAKE": folder / "lake", "DIAGNOSED": diagnosed, "NEW": folder / "new"}


def printed(arguments: tuple[str, ...], columns: int, places: Mapping[str, Path]) -> str:
    """What a command prints into a terminal of so many columns, or the error that ends it."""
    shutil.rmtree(places["NEW"], ignore_errors=True)
    given = [str(CAPTURES / part) if part.endswith(".pcap") else str(places.get(part, part)) for part in arguments]
    done = CliRunner().invoke(app, given, env={"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": None})
    if done.exception is not None and not isinstance(done.exception, (UserError, SystemExit)):
        raise done.exception
    text = done.stdout + (f"error: {done.exception}\n" if isinstance(done.exception, UserError) else "")
    for name, place in places.items():
        text = text.replace(str(place), name)
    return text.replace(f"{ROOT}/", "")


def file_of(name: str, columns: int) -> Path:
    """Where it is kept."""
    return FOLDER / f"{name}.{columns}.txt"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="wirelake-golden-") as folder:
        places = make_places(Path(folder))
        texts = (
            (file_of(name, columns), printed(arguments, columns, places))
            for name, arguments in PRINTED.items()
            for columns in WIDTHS
        )
        write_anew(texts, FOLDER)


if __name__ == "__main__":
    main()
