"""Does a fuzzer that is guided by coverage find a frame that breaks an invariant? ``atheris_target.py [libFuzzer …]``.

Atheris is no dependency of the project. Where it has a wheel (Linux, x86-64):

    uv pip install atheris
    python -m tests.hostile.atheris_target -max_total_time=600

The input is the direction (1 byte: response if odd), api key and version (2 bytes each), flags (2 bytes), then the
frame. Without a folder among the arguments it starts from a made frame of every api, version and kind, and keeps what
it finds in the cache for the next run.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["decoder"]):
    from decoder import Codec

from tests.brokers.cache import CACHE
from tests.hostile.invariants import check
from tests.hostile.samples import made_of_every_version

_CODEC = Codec()
_CONTEXT = struct.Struct(">BhhH")


def test_one_input(data: bytes) -> None:
    """Decode and check one input; an exception is a finding."""
    if len(data) < _CONTEXT.size:
        return
    kind, key, version, flags = _CONTEXT.unpack_from(data)
    frame = data[_CONTEXT.size :]
    direction = "response" if kind & 1 else "request"
    message = _CODEC.decode(frame, direction=direction, api_key=key, api_version=version, flags=flags)
    check(message, len(frame))


def main() -> None:
    """Run libFuzzer with the arguments of the command line."""
    arguments = sys.argv
    if all(argument.startswith("-") for argument in arguments[1:]):
        arguments = [*arguments, str(_seeds(CACHE / "atheris"))]
    atheris.Setup(arguments, test_one_input)
    atheris.Fuzz()


def _seeds(folder: Path) -> Path:
    """What libFuzzer finds worth keeping it adds to this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, sample in enumerate(made_of_every_version()):
        context = _CONTEXT.pack(sample.direction == "response", sample.api_key, sample.api_version, 0)
        (folder / f"made-{index}").write_bytes(context + sample.data)
    return folder


if __name__ == "__main__":
    main()
