"""Do two checkouts say the same of every recorded capture? ``python -m tests.equal_outputs BEFORE AFTER``.

Each runs ``wirelake decode --json`` on the captures of the second one, of messages and of records with their payload,
and ``wirelake explain --frame N`` on the first message, every hundredth and the last, in its own folder and with a
folder of its own for compiled code. What they print is compared byte by byte. Exits with 1 if anything differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

EVERY = 100
SHOWN = 12
"""Lines that differ, of which that is printed."""
_ENDINGS = (".pcap", ".pcapng", ".cap", ".gz", ".zst")
# One process explains all messages of a capture: most of an explanation's time is the start of its process.
_EXPLAIN = """
import sys
from pipeline.cli import main
capture, *numbers = sys.argv[1:]
for number in numbers:
    sys.argv[1:] = ["explain", capture, "--frame", number]
    try:
        main()
    except SystemExit as end:
        print("frame", number, "exit code", end.code, flush=True)
"""


@dataclass(frozen=True)
class Checkout:
    """A folder with the program; ``compiled``: where it keeps machine code."""

    folder: Path
    compiled: Path

    def run(self, *arguments: str) -> tuple[int, bytes, bytes]:
        """Run Python there; exit code, output and errors."""
        environment = {
            **os.environ, "PYTHONPATH": str(self.folder), "NUMBA_CACHE_DIR": str(self.compiled), "COLUMNS": "120",
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env=environment, capture_output=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def check(self) -> None:
        """Raise SystemExit unless it is this folder's program that runs."""
        _, out, errors = self.run("-c", "import decoder, pipeline; print(decoder.__file__, pipeline.__file__)")
        if [Path(place).parents[1] for place in out.decode().split()] != [self.folder] * 2:
            raise SystemExit(f"{self.folder} does not run its own program: {out.decode()}{errors.decode()}")

    def decode(self, capture: Path, *options: str) -> tuple[int, bytes, bytes]:
        return self.run("-m", "pipeline.cli", "decode", "--json", *options, str(capture))

    def explain(self, capture: Path, numbers: list[int]) -> tuple[int, bytes, bytes]:
        return self.run("-c", _EXPLAIN, str(capture), *map(str, numbers))


def captures(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "tests" / "captures").rglob("*") if path.suffix in _ENDINGS)


def numbers(messages: int) -> list[int]:
    """The first, every hundredth, the last."""
    return sorted({1, *range(EVERY, messages + 1, EVERY), messages} - {0})


def difference(one: bytes, other: bytes) -> Iterator[str]:
    """Of each line that differs what is around the first byte that does; of ``SHOWN`` lines."""
    lines, others = one.splitlines(), other.splitlines()
    if len(lines) != len(others):
        yield f"{len(lines)} lines before, {len(others)} after"
    pairs = enumerate(zip(lines, others, strict=False), 1)
    for number, (old, new) in islice((pair for pair in pairs if pair[1][0] != pair[1][1]), SHOWN):
        at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        for name, line in (("before", old), ("after", new)):
            yield f"line {number} {name}: …{line[max(0, at - 80) : at + 400].decode(errors='replace')}"


def main(before: Path, after: Path) -> int:
    files = captures(after)
    counts = Counter(differences=0)
    with tempfile.TemporaryDirectory(prefix="wirelake-equal-") as compiled:
        both = [Checkout(folder.resolve(), Path(compiled, name)) for name, folder in (("b", before), ("a", after))]
        for checkout in both:
            checkout.check()
        for file in files:
            decoded = [checkout.decode(file) for checkout in both]
            messages = decoded[0][1].count(b"\n")
            asked = numbers(messages)
            records = [checkout.decode(file, "--records", "--payload", "full") for checkout in both]
            explained = [checkout.explain(file, asked) for checkout in both]
            for what, (one, other) in (("decode", decoded), ("records", records), ("explain", explained)):
                for part, old, new in zip(("exit code", "output", "errors"), one, other, strict=True):
                    if old != new:
                        counts["differences"] += 1
                        print(f"{file.name}: {what}: {part} differs")
                        texts = (str(value).encode() if isinstance(value, int) else value for value in (old, new))
                        print("\n".join(f"    {line}" for line in difference(*texts)))
            for name, count in {
                "captures": 1, "messages": messages, "bytes": len(decoded[1][1]), "records": records[1][1].count(b"\n"),
                "bytes of records": len(records[1][1]), "explained": len(asked), "bytes of these": len(explained[1][1]),
            }.items():  # fmt: skip
                counts[name] += count
            print(f"{file.name}: {messages} messages", flush=True)
    print(", ".join(f"{count:,} {name}" for name, count in counts.items()) or "no captures")
    return 1 if counts["differences"] or not files else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2])))
