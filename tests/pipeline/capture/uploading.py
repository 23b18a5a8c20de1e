"""A process to be killed: it uploads a small landing file, and one of more than one part."""

from __future__ import annotations

import sys
from dataclasses import replace
from random import Random

from pipeline.capture.landing import files as landing_files
from pipeline.capture.landing.object_stores import open_store
from pipeline.capture.landing.writer import LandingWriter
from tests.pipeline.capture.landing.test_landing import FRAME, MIDNIGHT

LARGE = [1 << 19] * 23


def upload(url: str, small: int) -> None:
    """Write this many small frames and then the large ones: a file each, if this many rows fill one."""
    source = Random(1)
    with LandingWriter(open_store(url), "a") as writer:
        for seq, size in enumerate([3] * small + LARGE):
            writer.add(replace(FRAME, seq=seq, ts=MIDNIGHT + seq, frame=source.randbytes(size)))
        writer.publish()


if __name__ == "__main__":
    landing_files.ROWS_PER_FILE = int(sys.argv[2])
    upload(sys.argv[1], int(sys.argv[2]))
