"""Where a Kafka message begins and ends in pasted bytes, and what is missing to read it."""

from __future__ import annotations

from decoder.codec import Codec
from decoder.kafka.explain.guess import guess_response
from decoder.kafka.explain.prefix import SIZE, split_length_prefix
from decoder.protocol import Context, MissingContextError, Pasted

_GUESSES = 5


def cut_kafka(data: bytes, context: Context, codec: Codec) -> Pasted:
    """See decoder.protocol.WireProtocol.paste."""
    direction, api_key, api_version, _ = context
    if direction == "response" and (api_key is None or api_version is None):
        raise MissingContextError(_how_to_name(data, api_key))
    split = split_length_prefix(data, direction, api_key, api_version, codec)
    base = 0 if split.declared is None else SIZE
    return Pasted(split.frame, context, base, split.declared, (split.remark,) if split.remark else ())


def _how_to_name(data: bytes, api_key: int | None) -> str:
    """What to add for a response, with what it may be."""
    text = "a Kafka response does not name its api: add --api-key and --api-version of its request"
    declared = int.from_bytes(data[:SIZE], "big")
    frame = data[SIZE:] if declared == len(data) - SIZE else data
    found = [one for one in guess_response(frame) if api_key in (None, one.api_key)]
    if not found:
        return f"{text}. No known response fits these bytes: they may be cut off, or more than one message"
    lines = [f"{text}. These fit to the last byte, the likeliest first:"]
    for one in found[:_GUESSES]:
        first, last = one.versions[0], one.versions[-1]
        versions = f"v{last}" if first == last else f"v{first} to v{last}"
        lines.append(f"  {one.api_name + ' ' + versions:<34} --api-key {one.api_key} --api-version {last}")
    if len(found) > _GUESSES:
        lines.append(f"  and {len(found) - _GUESSES} more")
    return "\n".join(lines)
