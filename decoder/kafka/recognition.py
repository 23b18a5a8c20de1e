"""Recognises Kafka by the first bytes of a connection: requests that read to their end, answers that fit no other."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from decoder import limits
from decoder.codec import Codec
from decoder.kafka.apis import ApiKey
from decoder.kafka.codec.quick_look import may_be
from decoder.kafka.codec.reading import ENOUGH_BYTES, Reading, read_request
from decoder.kafka.stream.evidence import DISTINCTIVE_BYTES, NoEvidence, Reads, is_distinctive_response
from decoder.kafka.stream.pairing import KafkaPairer
from decoder.kafka.stream.peek import HEADER_BYTES, MIN_REQUEST_BYTES, RequestPeek, peek_prefixed, peek_request
from decoder.kafka.stream.resync import GLANCE_ASKED, MAX_ASKED, RESPONSE_HEADER, KafkaSearch, may_follow
from decoder.model import Direction
from decoder.stream.resync import Found, Glance, behind_short_segments, lined_up

SURE = 1.0
"""The server's first bytes carry the correlation id of the client's first request."""
WHOLE = 0.95
"""A whole request, with nothing or another request behind it."""
FUTURE = 0.9
"""A whole request of an api that is not known, or ApiVersions in a version that is not, and nothing behind it; or many
requests of versions that are not known, all of one client."""
BEGUN = 0.85
"""The beginning of a request, or a whole one without a client id, or one with bytes behind it that is answered or
followed by another."""
MIDWAY = 0.6
"""Not the first bytes of both streams, but a frame boundary with a chain of frames was found further on."""

MAX_FUTURE_VERSION = 127
"""Of a request whose body cannot be read."""

MIN_CHAIN = 8
"""Requests in a row that are believed midway if their bodies cannot be read."""

MAX_CANDIDATES = 32
"""Places in a stream joined midway that look like a request, and that are read to see whether they are one."""

MAX_READ = 4
"""Of requests that begin where segments do, this many are read."""

BEGIN_BYTES = 2 * ENOUGH_BYTES
"""Of a request that is larger than all that is there: this many are read."""

MAX_TOKENS = 8
"""Of a client that authenticates without a handshake; GSSAPI takes three."""

_GSSAPI = b"\x60"
_API_VERSIONS, _SASL_HANDSHAKE = int(ApiKey.API_VERSIONS), int(ApiKey.SASL_HANDSHAKE)
_PREFIX = struct.Struct(">i")
_READABLE = re.compile(rb"[ -~]{3,}")  # a byte or two are soon printable
_NOT_READABLE = re.compile(rb"[^ -~]")


class Recognition:
    """See decoder.protocol.WireProtocol.recognise.

    Other protocols with a 4-byte length (ZooKeeper's), and Kafka's own responses, with small numbers and zeros behind
    it, show the header of a request, but not its body: so the body is read, too.
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self.reads = trial_decoder(codec)

    def recognise(self, client: bytes, server: bytes, starts: Sequence[int] = ()) -> float:
        """See decoder.protocol.WireProtocol.recognise."""
        first = self._first_frame(client)
        if first is None:
            return (
                self._behind_tokens(client) or self._midway(client, starts) if client else self._answers(server, starts)
            )
        reading, peek = first
        if reading is Reading.TRAILED:
            return self._in_spite_of_doubt(client, server, peek) or self._midway(client, starts)
        if peek.is_odd:
            is_whole = reading is Reading.WHOLE and _is_half_readable(peek.client_id or b"")
            return SURE if is_whole and self._is_answer(server, peek) else self._midway(client, starts)
        alone = _alone(reading, peek, client)
        if len(server) < 8:
            return alone
        if _correlation_id(server) == peek.correlation_id and (alone or reading is Reading.POSSIBLE):
            return SURE * bool(alone or peek.client_id)  # the id's echo, unless it may be one of many zeros
        return alone if alone == WHOLE and _correlation_id(server) is not None else min(alone, MIDWAY)

    def _first_frame(self, data: bytes) -> tuple[Reading, RequestPeek] | None:
        """How the request reads, and its header, if the stream may begin with one."""
        if len(data) < HEADER_BYTES:
            return None
        size = _PREFIX.unpack_from(data)[0]
        is_size = MIN_REQUEST_BYTES <= size <= limits.MAX_FRAME_BYTES
        peek = peek_request(data, 4, size) if is_size else None
        if peek is None or not (peek.possible or peek.is_odd):
            return None
        end = 4 + size
        is_begun = peek.known or peek.is_odd
        if len(data) != end and not (is_begun and (len(data) < end or _may_follow(data, end, peek))):
            return None
        return read_request(self._codec, data[4:end], size), peek

    def _in_spite_of_doubt(self, client: bytes, server: bytes, peek: RequestPeek) -> float:
        """Confidence in a first request that has bytes behind it, as librdkafka sent them before 1.0.

        ApiVersions v0 has no body, so that anything that looks like its header reads so: the answer must show it, or
        the next request of the same client.
        """
        rest = client[4 + _PREFIX.unpack_from(client)[0] :]
        following = self._first_frame(rest)
        is_followed = following is not None and _alone(*following, rest) == WHOLE
        is_same = following is not None and following[1].client_id == peek.client_id
        is_answered = int.from_bytes(server[:4], "big") >= DISTINCTIVE_BYTES and self._is_answer(server, peek)
        return BEGUN * (is_answered or (is_followed and is_same))

    def _is_answer(self, server: bytes, peek: RequestPeek) -> bool:
        """Whether a stream begins with a response that answers this request and decodes to its last byte."""
        end = 4 + int.from_bytes(server[:4], "big")
        if _correlation_id(server) != peek.correlation_id or len(server) < end:
            return False
        return bool(self.reads(server[4:end], "response", peek.api_key, peek.api_version))

    def _behind_tokens(self, client: bytes) -> float:
        """Confidence in a client that authenticates by GSSAPI without a handshake: requests follow its tokens."""
        requests = client[_end_of_tokens(client) :]
        first = self._first_frame(requests) if len(requests) < len(client) else None
        return WHOLE * (first is not None and _alone(*first, requests) == WHOLE)

    def _midway(self, client: bytes, starts: Sequence[int]) -> float:
        return MIDWAY if self._are_lined_up(client, starts) or self._is_found(client) else 0.0

    def _are_lined_up(self, client: bytes, starts: Sequence[int]) -> bool:
        """Whether requests follow one another up to the end of these bytes, each beginning where a segment does.

        One larger than all that is there begins behind a short segment.
        """

        def end_of(at: int) -> int | None:
            if at + HEADER_BYTES > len(client):
                return 0
            header = peek_prefixed(client, at)
            if header is None or not (header[1].known and header[1].client_id):
                return None
            return at + 4 + header[0]

        ends = lined_up(starts, len(client), end_of)
        whole = [at for at, end in ends.items() if end <= len(client)]
        begun = [at for at in behind_short_segments(starts) if ends.get(at, 0) > len(client)]
        return any(self._reads_as(Reading.WHOLE, client[at : ends[at]]) for at in whole[:MAX_READ]) or any(
            self._reads_as(Reading.BEGUN, client[at : at + BEGIN_BYTES]) for at in begun[:MAX_CANDIDATES]
        )

    def _reads_as(self, reading: Reading, data: bytes) -> bool:
        """Whether a request that begins with these bytes reads so."""
        return read_request(self._codec, data[4:], int(_PREFIX.unpack_from(data)[0])) is reading

    def _is_found(self, client: bytes) -> bool:
        """Whether a whole request is somewhere, with the end of what is there or another request behind it."""
        begin, glance = 0, Glance()
        for _ in range(MAX_CANDIDATES):
            found = KafkaSearch("request", NoEvidence(), glance).push(client[begin:], 0, is_segment_start=not begin)
            if found is None:
                break
            if self._is_request(found):
                return True
            begin += found.skipped + 1
        return False

    def _is_request(self, found: Found) -> bool:
        data = found.rest[0][0]
        size = _PREFIX.unpack_from(data)[0]
        reading = read_request(self._codec, data[4 : 4 + size], size)
        is_unknown = reading in (Reading.UNKNOWN_API, Reading.UNKNOWN_VERSION)
        return reading is Reading.WHOLE or (is_unknown and _is_chain_of_one_client(data))

    def _answers(self, server: bytes, starts: Sequence[int]) -> float:
        """Confidence in responses none of whose requests was captured."""
        if len(server) < DISTINCTIVE_BYTES:
            return 0.0
        return self._found_answers(server) or MIDWAY * self._are_answers_lined_up(server, starts)

    def _are_answers_lined_up(self, server: bytes, starts: Sequence[int]) -> bool:
        """Whether responses follow one another, each where a segment begins, and one of them can be no other's."""

        def end_of(at: int) -> int | None:
            if at + RESPONSE_HEADER.size > len(server):
                return 0
            size, _ = RESPONSE_HEADER.unpack_from(server, at)
            return at + 4 + int(size) if limits.MIN_FRAME_BYTES <= size <= limits.MAX_FRAME_BYTES else None

        ends = lined_up(starts, len(server), end_of)
        followed = [at for at, end in ends.items() if end in ends and end - at >= 4 + DISTINCTIVE_BYTES]
        ordered = [at for at in followed if may_follow(*(_id_at(server, place) for place in (at, ends[at])))]
        return any(is_distinctive_response(self.reads, server[at + 4 : ends[at]]) for at in ordered[:GLANCE_ASKED])

    def _found_answers(self, server: bytes) -> float:
        found = KafkaSearch("response", KafkaPairer(self.reads), Glance()).push(server, 0, is_segment_start=True)
        if found is None or not self._is_distinctive(found.rest[0][0]):
            return 0.0
        return MIDWAY if found.skipped else BEGUN

    def _is_distinctive(self, data: bytes) -> bool:
        """Whether one of the first responses can be no other protocol's."""
        at = asked = 0
        while asked < MAX_ASKED and at + 4 <= len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            frame = data[at + 4 : at + 4 + size]
            if len(frame) < size or size < limits.MIN_FRAME_BYTES:
                return False
            if size >= DISTINCTIVE_BYTES:
                asked += 1
                if is_distinctive_response(self.reads, frame):
                    return True
            at += 4 + size
        return False


def trial_decoder(codec: Codec) -> Reads:
    """Whether bytes read as a message of an api and version, to their last byte; None: too large to read."""

    def reads(frame: bytes, direction: Direction, api_key: int, api_version: int) -> bool | None:
        fits = may_be(frame, direction, api_key, api_version)
        falls_back = api_key == _API_VERSIONS and may_be(frame, direction, api_key, 0)
        if not fits and not falls_back:
            return fits
        message = codec.decode(frame, direction=direction, api_key=api_key, api_version=api_version, strict=True)
        return (
            None
            if message.status in (Reading.UNKNOWN_API.value, Reading.UNKNOWN_VERSION.value)
            else message.status == "ok"
        )

    return reads


def _alone(reading: Reading, peek: RequestPeek, data: bytes) -> float:
    """Confidence without an answer. No client id is too little to go by: many protocols have zeros there."""
    match reading:
        case Reading.WHOLE:
            return WHOLE if peek.client_id else BEGUN
        case Reading.BEGUN:
            return BEGUN if peek.client_id else 0.0
        case Reading.UNKNOWN_VERSION if (
            peek.api_key != _API_VERSIONS
        ):  # the request that clients of the future begin with
            return FUTURE * _is_chain_of_one_client(data)
        case Reading.UNKNOWN_API | Reading.UNKNOWN_VERSION:
            speaks = _READABLE.fullmatch(peek.client_id or b"") is not None
            return FUTURE * (speaks and peek.api_version <= MAX_FUTURE_VERSION)
        case _:
            return 0.0


def _is_half_readable(client_id: bytes) -> bool:
    """Whether half of the bytes are ASCII: numbers, which are there in other protocols, are small or random."""
    return 2 * len(_NOT_READABLE.sub(b"", client_id)) >= len(client_id)


def _end_of_tokens(client: bytes) -> int:
    """Where the GSSAPI tokens end that a client of 0.9 begins with; 0 if it does not, or no request follows yet."""
    if client[4:5] != _GSSAPI:
        return 0
    at = 0
    for _ in range(MAX_TOKENS):
        if len(client) < at + HEADER_BYTES:
            return 0
        header = peek_prefixed(client, at)
        if header is not None and header[1].known:
            return at
        at += 4 + max(_PREFIX.unpack_from(client, at)[0], 0)
    return 0


def _may_follow(data: bytes, at: int, first: RequestPeek) -> bool:
    """Whether a further request of this client may begin at ``at``, as far as it can be seen; or a SASL token."""
    size_bytes = data[at : at + 4]
    if int.from_bytes(size_bytes.ljust(4, b"\0"), "big") > limits.MAX_FRAME_BYTES:
        return False
    peek = peek_request(data, at + 4)
    is_of_same_client = peek is not None and peek.is_odd and peek.client_id == first.client_id
    return peek is None or peek.possible or is_of_same_client or first.api_key == _SASL_HANDSHAKE


def _is_chain_of_one_client(data: bytes) -> bool:
    """Whether nothing but requests of the same client follow each other, with ids of their own.

    In other protocols names vary; in Kafka's responses what looks like the id is zero in all.
    """
    at, count, last = 0, 0, None
    while at + HEADER_BYTES <= len(data):
        header = peek_prefixed(data, at)
        if header is None or not header[1].known or not header[1].client_id:
            return False
        size, peek = header
        if last is not None and (last.client_id != peek.client_id or last.correlation_id == peek.correlation_id):
            return False
        at, count, last = at + 4 + size, count + 1, peek
    return count >= MIN_CHAIN


def _id_at(server: bytes, at: int) -> int:
    return int(RESPONSE_HEADER.unpack_from(server, at)[1])


def _correlation_id(server: bytes) -> int | None:
    """Of the first response; None if there is none yet, or the bytes cannot be one."""
    if len(server) < 8:
        return None
    size, correlation_id = struct.unpack_from(">ii", server)
    return int(correlation_id) if limits.MIN_FRAME_BYTES <= size <= limits.MAX_FRAME_BYTES else None
