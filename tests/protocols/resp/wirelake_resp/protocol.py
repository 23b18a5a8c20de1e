"""RESP as Wirelake asks for it: see decoder.protocol.WireProtocol."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from decoder.model import Direction, Frame, Message
from decoder.protocol import Context, Errors, Framer, FramerState, Pairer, Pasted, WireProtocol
from wirelake_resp.framing import RespFramer, begins
from wirelake_resp.messages import decode_message, response_errors
from wirelake_resp.pairing import RespPairer
from wirelake_resp.redaction import is_secret, redact_frame
from wirelake_resp.values import Extent, MalformedError, command_of, values

if TYPE_CHECKING:
    from decoder.codec import Codec
    from decoder.explain.describer import Describer
    from decoder.explain.explanation import Explanation
    from decoder.field_hash import FieldHash

ANSWERED, WHOLE, MIDWAY = 1.0, 0.9, 0.6
"""Confidence: both sides begin with a whole message; the client's does; a segment further on does."""
_INLINE = re.compile(rb"(?:PING|INFO|GET|SET|AUTH|QUIT|EXISTS|INCR|DEL)\b[ -~]*\r?\n", re.IGNORECASE)
_KINDS = {
    "*": "array", "$": "bulk string", "+": "simple string", "-": "error", ":": "integer", "%": "map", "~": "set",
    ">": "push", "_": "null", "#": "boolean", ",": "double", "(": "big number", "!": "bulk error", "=": "verbatim",
    "|": "attribute", "\0": "word",
}  # fmt: skip


class RespProtocol(WireProtocol):
    """Redis, Valkey and what speaks as they do."""

    name = "resp"
    title = "Redis"
    rules = ("wirelake_resp.rules",)

    def recognise(self, client: bytes, server: bytes, starts: Sequence[int] = ()) -> float:
        """See decoder.protocol.WireProtocol.recognise. An inline command is believed only with an answer."""
        if not client:
            return 0.0
        is_answered = begins(server, "response")
        if begins(client, "request") or (is_answered and _INLINE.match(client)):
            is_whole = _is_whole(client)
            return ANSWERED if is_whole and is_answered else WHOLE if is_whole and not server else MIDWAY * is_answered
        return MIDWAY if any(begins(client[at:], "request") for at in starts if at) else 0.0

    def pairer(self, state: Mapping[str, Any] | None = None) -> Pairer:
        """See decoder.protocol.WireProtocol.pairer."""
        return RespPairer(state)

    def framer(self, direction: Direction, pairer: Pairer, state: FramerState | None = None) -> Framer:
        """See decoder.protocol.WireProtocol.framer."""
        del pairer
        return RespFramer(direction, state)

    def redact(self, frame: Frame, field_hash: FieldHash | None = None) -> Frame:
        """See decoder.protocol.WireProtocol.redact."""
        del field_hash
        return redact_frame(frame)

    def carries_credentials(self, frame: Frame) -> bool:
        """See decoder.protocol.WireProtocol.carries_credentials."""
        return frame.direction == "request" and is_secret(command_of(frame.frame))

    def decode(
        self,
        compiled: None,
        frame: bytes,
        context: Context,
        trace: Callable[..., None] | None = None,
        *,
        strict: bool = False,
    ) -> Message:
        """See decoder.protocol.WireProtocol.decode."""
        del compiled, trace, strict
        return decode_message(frame, context.direction, context.flags)

    def response_errors(self, body: str) -> Errors:
        """See decoder.protocol.WireProtocol.response_errors."""
        return response_errors(body)

    def may_be(self, data: bytes) -> bool:
        """See decoder.protocol.WireProtocol.may_be."""
        return begins(data, "request") or _is_response(data)

    def paste(self, data: bytes, context: Context, codec: Codec, *, is_direction_given: bool = False) -> Pasted:
        """See decoder.protocol.WireProtocol.paste."""
        del codec
        is_response = context.direction == "response" if is_direction_given else not begins(data, "request")
        direction: Direction = "response" if is_response else "request"
        try:
            end = Extent(is_request=not is_response).end(data) or len(data)
        except MalformedError:
            end = len(data)
        rest = len(data) - end
        remarks = (f"{rest} bytes follow this message: the next one begins there",) if rest else ()
        return Pasted(data[:end], Context(direction), remarks=remarks)

    def describer(self) -> Describer:
        """See decoder.protocol.WireProtocol.describer."""
        from wirelake_resp.summaries import RespDescriber  # noqa: PLC0415 - people ask

        return RespDescriber(self.response_errors)

    def explain(self, frame: bytes, context: Context, codec: Codec) -> Explanation:
        """See decoder.protocol.WireProtocol.explain."""
        from decoder.explain.explanation import Explanation, Line, error_line, hex_text, short  # noqa: PLC0415 - people ask

        message = codec.decode(frame, protocol=self.name, **context._asdict())
        lines = []
        try:
            for number, value in enumerate(values(frame, is_request=context.direction == "request")):
                content = frame[value.content : value.content_end]
                shown = "" if not any(content) else content.decode(errors="replace")
                text = f"{value.size} bytes, overwritten" if content and not shown else short(shown)
                where = (value.start, value.end, value.depth, f"[{number}]", _KINDS[chr(value.kind)], text)
                lines.append(Line(*where, hex_text(frame, value.start, value.end)))
        except MalformedError:
            lines += error_line(frame, message)
        return Explanation(message, tuple(lines), len(frame))


def _is_whole(client: bytes) -> bool:
    try:
        return Extent(is_request=True).end(client) is not None
    except MalformedError:
        return False


def _is_response(data: bytes) -> bool:
    try:
        return begins(data, "response") and Extent(is_request=False).end(data) == len(data)
    except MalformedError:
        return False
