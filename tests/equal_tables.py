"""Do two checkouts derive the same tables from every recording? ``python -m tests.equal_tables BEFORE AFTER [FILE …]``.

Each diagnoses the captures of the second one, or those named, in its own folder (:mod:`tests.equal_outputs`), and gives
a digest of the sorted rows of each table. Exits with 1 if any differs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.equal_outputs import Checkout, captures

_DIGESTS = """
import hashlib, json, sys
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import open_inputs
from pipeline.config.settings import StreamSettings
for capture in sys.argv[1:]:
    digests = {}
    try:
        with open_inputs([capture]) as inputs:
            for name, rows in diagnose(inputs.landed(), StreamSettings()).tables.items():
                lines = sorted(map(repr, zip(*(column.cast("string").to_pylist() if str(column.type).startswith(
                    ("timestamp", "date")) else column.to_pylist() for column in rows.columns))))
                digests[name] = [rows.num_rows, hashlib.sha256("\\n".join(lines).encode()).hexdigest()]
    except Exception as error:
        digests = {"failed": [0, type(error).__name__]}
    print(json.dumps([capture, digests]), flush=True)
"""


def digests(checkout: Checkout, files: list[Path]) -> dict[str, dict[str, list[object]]]:
    """By capture and table, how many rows there are and their digest."""
    code, out, errors = checkout.run("-c", _DIGESTS, *map(str, files))
    if code:
        raise SystemExit(f"{checkout.folder}: {errors.decode()}")
    return dict(map(json.loads, out.splitlines()))


def main(before: Path, after: Path, *wanted: Path) -> int:
    files = list(wanted) or captures(after)
    with tempfile.TemporaryDirectory(prefix="wirelake-equal-") as compiled:
        both = [Checkout(folder.resolve(), Path(compiled, name)) for name, folder in (("b", before), ("a", after))]
        for checkout in both:
            checkout.check()
        old, new = (digests(checkout, files) for checkout in both)
    differences = [
        f"{capture}: {table}: {old[capture].get(table)} before, {found} after"
        for capture, tables in new.items()
        for table, found in tables.items()
        if old[capture].get(table) != found
    ]
    tables = sum(map(len, new.values()))
    rows = sum(int(str(count)) for found in new.values() for count, _ in found.values())
    print("\n".join(differences))
    print(f"{len(new)} captures, {tables:,} tables, {rows:,} rows, {len(differences)} differences")
    return 1 if differences or len(old) != len(new) or not new else 0


if __name__ == "__main__":
    raise SystemExit(main(*map(Path, sys.argv[1:])))
