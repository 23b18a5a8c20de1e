"""Kafka as everybody else asks for it: see decoder.protocol.WireProtocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from decoder.codec import Codec
from decoder.columns import Bools, Ints
from decoder.kafka.codec.embedded import EMBEDDING_APIS, embedded_messages
from decoder.kafka.codec.frame_records import FrameRecords, read_frame_records
from decoder.kafka.codec.messages import decode_frame
from decoder.kafka.codec.program import Programs, compile_programs
from decoder.kafka.errors import ERROR_MARKS, response_errors
from decoder.kafka.recognition import Recognition
from decoder.kafka.redaction.frames import redact_frame
from decoder.kafka.redaction.secrets import secret_apis
from decoder.kafka.stream.framing import KafkaFramer
from decoder.kafka.stream.pairing import KafkaPairer
from decoder.model import Direction, Frame, Message
from decoder.protocol import Context, Errors, Framer, FramerState, ManyRead, Pairer, Pasted, WireProtocol

if TYPE_CHECKING:
    from decoder.explain.describer import Describer
    from decoder.explain.explanation import Explanation
    from decoder.field_hash import FieldHash


class KafkaProtocol(WireProtocol):
    """Apache Kafka and what speaks as it does."""

    name = "kafka"
    title = "Kafka"
    begins_with_length = True
    error_marks = ERROR_MARKS

    @cached_property
    def _recognition(self) -> Recognition:
        return Recognition(Codec())

    def recognise(self, client: bytes, server: bytes, starts: Sequence[int] = ()) -> float:
        """See decoder.protocol.WireProtocol.recognise."""
        return self._recognition.recognise(client, server, starts)

    def pairer(self, state: Mapping[str, Any] | None = None) -> Pairer:
        """See decoder.protocol.WireProtocol.pairer."""
        return KafkaPairer(self._recognition.reads, state)

    def framer(self, direction: Direction, pairer: Pairer, state: FramerState | None = None) -> Framer:
        """See decoder.protocol.WireProtocol.framer."""
        return KafkaFramer(direction, pairer if isinstance(pairer, KafkaPairer) else None, state)

    def redact(self, frame: Frame, field_hash: FieldHash | None = None) -> Frame:
        """See decoder.protocol.WireProtocol.redact."""
        return redact_frame(frame, field_hash)

    def carries_credentials(self, frame: Frame) -> bool:
        """See decoder.protocol.WireProtocol.carries_credentials."""
        return frame.api_key in secret_apis()

    def compiled(self) -> Programs:
        """The schema as programs."""
        return compile_programs()

    def decode(
        self,
        compiled: Programs,
        frame: bytes,
        context: Context,
        trace: Callable[..., None] | None = None,
        *,
        strict: bool = False,
    ) -> Message:
        """See decoder.protocol.WireProtocol.decode."""
        direction, api_key, api_version, flags = context
        message = decode_frame(compiled, frame, direction, api_key, api_version, flags, trace, strict=strict)
        if message.api_key not in EMBEDDING_APIS:
            return message
        return replace(message, embedded=embedded_messages(compiled, message, direction, flags))

    def decode_many(
        self, frames: Sequence[bytes], is_response: Bools, keys: Ints, versions: Ints, flags: Ints
    ) -> ManyRead | None:
        """See decoder.protocol.WireProtocol.decode_many."""
        from decoder.kafka import batch  # noqa: PLC0415 - loading the kernel takes seconds

        return batch.read_many(frames, is_response, keys, versions, flags)

    def records(
        self, compiled: Programs, frame: bytes, context: Context, *, payload: bool = False
    ) -> FrameRecords | None:
        """See decoder.protocol.WireProtocol.records."""
        return read_frame_records(compiled, frame, *context, payload=payload)

    def response_errors(self, body: str) -> Errors:
        """See decoder.kafka.errors.response_errors."""
        return response_errors(body)

    def paste(self, data: bytes, context: Context, codec: Codec, *, is_direction_given: bool = False) -> Pasted:
        """See decoder.kafka.explain.paste.cut_kafka."""
        from decoder.kafka.explain.paste import cut_kafka  # noqa: PLC0415 - people ask, streams do not

        del is_direction_given
        return cut_kafka(data, context, codec)

    def explain(self, frame: bytes, context: Context, codec: Codec) -> Explanation:
        """See decoder.protocol.WireProtocol.explain."""
        from decoder.kafka.explain.fields import explain_frame  # noqa: PLC0415 - as above

        return explain_frame(frame, context, codec)

    def advise(self, explanation: Explanation, pasted: Pasted, codec: Codec) -> Iterator[str]:
        """See decoder.kafka.explain.advice.advise."""
        from decoder.kafka.explain.advice import advise  # noqa: PLC0415 - as above

        del codec
        direction, api_key, api_version, _ = pasted.context
        yield from advise(explanation, pasted.frame, direction, api_key, api_version, declared=pasted.declared)

    def describer(self) -> Describer:
        """See decoder.protocol.WireProtocol.describer."""
        from decoder.kafka.summaries.describer import KafkaDescriber  # noqa: PLC0415 - as above

        return KafkaDescriber(self.response_errors)

    def kind_of(self, message: Message) -> str:
        """A Kafka message without a name is of an api that is not known."""
        del message
        return "unknown api"
