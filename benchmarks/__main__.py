"""Speed beside peers: ``python -m benchmarks [PART]``, a part of PARTS; else all.

``capture`` and ``questions`` may name a FILE, ``endless`` a number of exchanges, ``pipeline`` and
``scale`` a number of frames.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import (
    capture,
    decode,
    endless,
    follow,
    live,
    longer,
    mongodb,
    once,
    picture,
    pipeline,
    questions,
    records,
    scale,
    skewed,
    spark,
    through_lake,
    variant,
)

PARTS = {
    "capture": capture.main,
    "decode": decode.main,
    "endless": endless.main,
    "follow": follow.main,
    "live": live.main,
    "longer": longer.main,
    "mongodb": mongodb.main,
    "once": once.main,
    "picture": picture.main,
    "pipeline": pipeline.main,
    "questions": questions.main,
    "records": records.main,
    "scale": scale.main,
    "skewed": skewed.main,
    "spark": spark.main,
    "through_lake": through_lake.main,
    "variant": variant.main,
}
_OF_FILES = {"capture": capture.main, "questions": questions.main}
_NUMBERED = {"endless": endless.main, "pipeline": pipeline.main, "scale": scale.main}


def main(arguments: list[str]) -> int:
    """Run the parts that were asked for."""
    if arguments and arguments[0] not in PARTS:
        print(f"unknown part {arguments[0]!r}; known: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    if len(arguments) == 2 and arguments[0] in _OF_FILES:
        _OF_FILES[arguments[0]](Path(arguments[1]))
        return 0
    if len(arguments) == 2 and arguments[0] in _NUMBERED:
        _NUMBERED[arguments[0]](int(arguments[1]))
        return 0
    for name in arguments or PARTS:
        PARTS[name]()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
