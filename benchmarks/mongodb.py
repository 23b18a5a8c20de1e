"""Measures how fast a MongoDB message is decoded, beside tshark on the same file and pymongo on the same documents."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

import bson
import numpy as np
import orjson
from bson import json_util

from benchmarks.candidates import CONSOLE, AllAtOnce, Candidate, PerItem, measure, show
from benchmarks.corpus import CAPTURES, CorpusFrame, recorded
from benchmarks.tshark import MONGODB, ROUNDS, FromCapture, Tshark, copies, version
from benchmarks.wirelake import Batch, batches, with_plain
from decoder import Codec
from decoder.columns import Bools
from decoder.mongodb.batch import read_batch, read_fronts
from decoder.mongodb.codec.documents import as_json, document_end
from decoder.mongodb.codec.messages import open_message
from decoder.mongodb.codec.summary import summarise
from decoder.mongodb.codec.wire import OP_COMPRESSED
from decoder.mongodb.kernel import fronts as kernel_fronts
from decoder.mongodb.kernel import messages as kernel

MESSAGES = 10_000
"""In a round, by repeating the recorded ones."""
_CODEC = Codec()
_AS_MONGODB = ("-d", f"tcp.port=={MONGODB.port},mongo", "-Y", "mongo")
_FIELDS = ("frame.number", "mongo.request_id", "mongo.response_to", "mongo.opcode", "mongo.full_collection_name")
_JSON = json_util.RELAXED_JSON_OPTIONS


def main() -> None:
    """Two tables: messages beside tshark, and their documents beside pymongo."""
    messages = samples()
    common = [message for message in messages if _decode(message)]
    kinds = len({(message.direction, message.data) for message in common})
    plain = [message for message in common if message.api_key != OP_COMPRESSED]
    CONSOLE.print(
        f"\nMongoDB: {len(messages):,} recorded messages, {len(common):,} decode ({kinds:,} different ones), "
        f"mean {sum(len(message.data) for message in common) / len(common):.0f} bytes"
    )
    for title, part in (
        ("Not compressed", plain),
        ("Compressed", [one for one in common if one.api_key == OP_COMPRESSED]),
    ):
        given = batches(part)
        read, fronts = (sum(int(marks(one).sum()) for one in given) for marks in (_read, _fronts_read))
        CONSOLE.print(f"\n{title}: {len(part):,}, of which the kernel reads {read:,}, and the fronts of {fronts:,}")
        beside_tshark(copies(part, MESSAGES))
    beside_pymongo(list(documents(common)))


def samples() -> list[CorpusFrame]:
    """Every message of the recordings, compressed ones too."""
    return recorded(sorted((CAPTURES / "mongodb").glob("*.pcap")))


def beside_tshark(messages: Sequence[CorpusFrame]) -> None:
    """All read the same messages; in memory is where Spark has them."""
    candidates: list[Candidate[CorpusFrame]] = [
        AllAtOnce("Wirelake, kernel, fronts, in memory", "header, flags, command, namespace", batches, _fronts),
        PerItem("Wirelake, summarise, in memory", "header, flags, command, namespace", _front),
        AllAtOnce("Wirelake, kernel, in memory", "JSON text, all fields", batches, _by_kernel),
        PerItem("Wirelake, plain reader, in memory", "JSON text, all fields", _decode),
        FromCapture("Wirelake, agent and plain reader", "JSON text, all fields", wire=MONGODB),
    ]
    if shutil.which("tshark") is None:
        CONSOLE.print("tshark is not installed (Debian: apt-get install tshark)")
    else:
        candidates += _tsharks()
    results = measure(candidates, [messages] * len(candidates), ROUNDS)
    show(
        f"CPU time of all processes, {ROUNDS} rounds in turn, tshark's start not counted",
        results,
        len(messages),
        "messages",
    )


def _tsharks() -> list[Tshark]:
    only_tcp = ("-Y", "tcp", "-w", "/dev/null", "--disable-protocol", "mongo")
    empty = Tshark("", "", only_tcp, wire=MONGODB)
    empty.load([])
    start = empty.round(ROUNDS) / ROUNDS
    CONSOLE.print(f"tshark {version()}, {start:.2f} s for its start; a packet a message, every copy other connections")
    fields = [part for name in _FIELDS for part in ("-e", name)]
    ways = {
        "reads and follows TCP only": ("nothing", only_tcp),
        "-T fields": (f"text, {len(_FIELDS)} fields", (*_AS_MONGODB, "-T", "fields", *fields)),
        "-T json": ("JSON text, all fields", (*_AS_MONGODB, "-T", "json", "-J", "mongo")),
    }
    return [
        Tshark(f"tshark {name}", gives, arguments, wire=MONGODB, start=start)
        for name, (gives, arguments) in ways.items()
    ]


def beside_pymongo(found: Sequence[bytes]) -> None:
    """The documents alone, one by one."""
    size = sum(map(len, found)) / max(len(found), 1)
    CONSOLE.print(f"\nTheir documents alone: {len(found):,}, mean {size:.0f} bytes; pymongo {bson.__name__} in C")
    candidates: list[Candidate[bytes]] = [
        PerItem("Wirelake", "checked, values for JSON", lambda data: as_json(data, 0, len(data))),
        PerItem("Wirelake", "checked, JSON text", lambda data: orjson.dumps(as_json(data, 0, len(data)))),
        PerItem("pymongo bson.decode", "Python objects", bson.decode),
        PerItem(
            "pymongo json_util.dumps", "JSON text", lambda data: json_util.dumps(bson.decode(data), json_options=_JSON)
        ),
    ]
    results = measure(candidates, [found] * len(candidates), ROUNDS)
    show(f"over and over in each of {ROUNDS} rounds in turn, CPU time of one core", results, len(found), "documents")


def documents(messages: Sequence[CorpusFrame]) -> Iterator[bytes]:
    """Every document of the messages, those of sections and legacy opcodes, decompressed."""
    for message in messages:
        opened = open_message(message.data)
        for place in opened.outline.places if opened.outline is not None else ():
            at = place.start
            while at < place.end:
                end = document_end(opened.data, at, place.end)
                yield opened.data[at:end]
                at = end


def _front(message: CorpusFrame) -> bool:
    return summarise(message.data, message.direction) is not None


def _fronts_read(given: Batch) -> Bools:
    is_read: Bools = read_fronts(given.data, given.is_response, given.flags).rows[:, kernel_fronts.READ] != 0
    return is_read


def _read(given: Batch) -> Bools:
    is_read: Bools = read_batch(given.data, given.is_response, given.flags).outcomes != kernel.GIVEN_BACK
    return is_read


def _fronts(given: list[Batch]) -> Bools:
    """With ``summarise`` for what the kernel gives back."""
    return np.concatenate([with_plain(_fronts_read(batch), batch.frames, _front) for batch in given])


def _by_kernel(given: list[Batch]) -> Bools:
    """As in Spark: with the plain reader for what the kernel gives back."""
    return np.concatenate([with_plain(_read(batch), batch.frames, _decode) for batch in given])


def _decode(message: CorpusFrame) -> bool:
    found = _CODEC.decode(message.data, protocol="mongodb", direction=message.direction)
    orjson.dumps(found.header)
    orjson.dumps(found.body)
    return found.status == "ok"
