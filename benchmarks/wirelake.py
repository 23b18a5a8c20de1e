"""How does Wirelake read a frame, and a batch? A new reader is one more line in a list."""

from __future__ import annotations

import orjson

from benchmarks.candidates import Candidate, PerItem
from benchmarks.corpus import CorpusFrame
from decoder import Codec

_CODEC = Codec()


def _plain(frame: CorpusFrame) -> bool:
    message = _CODEC.decode(frame.data, direction=frame.direction, api_key=frame.api_key, api_version=frame.api_version)
    orjson.dumps(message.header)
    orjson.dumps(message.body)
    orjson.dumps(message.record_batches)
    return message.status == "ok"


FRAME_READERS: list[Candidate[CorpusFrame]] = [
    PerItem("Wirelake, plain reader", "JSON text, batch headers, checksums", _plain),
]

RECORD_READERS: list[Candidate[bytes]] = []
"""``PerItem`` with a function that reads the records of one batch (bytes) and says how many there were."""
