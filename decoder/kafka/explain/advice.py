"""What to do about a message that does not decode, in words: which length, its value, what it needs."""

from __future__ import annotations

from collections.abc import Iterator

from decoder.errors import ErrorCode
from decoder.explain.explanation import Explanation
from decoder.kafka.codec.bodies import LENGTH
from decoder.kafka.explain.guess import guess_response
from decoder.kafka.explain.habit_text import habit_text
from decoder.kafka.explain.habits import find_habit
from decoder.kafka.explain.repair import Repair, find_repair, path_text
from decoder.kafka.schema.table import api_versions
from decoder.model import Direction

_PREVIEW = 40
_GUESSES = 3
_FAR = 50
"""Versions or api keys beyond the newest that a coming release may have."""


def advise(
    explanation: Explanation,
    frame: bytes,
    direction: Direction,
    api_key: int | None,
    api_version: int | None,
    *,
    declared: int | None = None,
) -> list[str]:
    """Sentences about the error of an explained message; none if it decodes. Arguments as for Codec.decode.

    Args:
        declared: bytes that the length prefix in front of it announces, None if there is none.
    """
    message = explanation.message
    if message.status in ("redacted", "truncated") or message.error_code in (None, ErrorCode.CONNECTION_CLOSED):
        return []
    if message.status == "unknown_version" and message.api_key is not None:
        low, high = api_versions()[message.api_key]
        return [
            f"{message.api_name} has versions {low} to {high}.",
            *_no_message(message.api_version, high, direction),
            *_as_response(frame, direction),
        ]
    if message.status == "unknown_api":
        return [
            f"Api keys go from {min(api_versions())} to {max(api_versions())}.",
            *_no_message(message.api_key, max(api_versions()), direction),
            *_as_response(frame, direction),
        ]
    if message.status == "orphan_response":
        fits = [f"{one.api_name} v{one.versions[-1]}" for one in guess_response(frame)[:_GUESSES]]
        return [f"By its bytes it may be of {', '.join(fits)}, the likeliest first."] if fits else []
    advice = list(_length_facts(explanation))
    remedy = _remedy(frame, direction, api_key, api_version, f"{message.api_name} v{message.api_version}")
    if remedy is not None:
        text, size = remedy
        advice.append(text)
        if declared not in (None, size):
            prefix = size.to_bytes(4, "big").hex(" ")
            advice.append(f"The message is then {size} bytes long: its length prefix must be {prefix}, not {declared}.")
    elif message.error_code in (ErrorCode.BUFFER_UNDERFLOW, ErrorCode.LENGTH_OVERRUN):
        advice.append("No other value of one length makes the message whole: it may be cut off, or of another version.")
    return advice + ([] if remedy else _as_response(frame, direction))


def _remedy(
    frame: bytes, direction: Direction, api_key: int | None, api_version: int | None, version: str
) -> tuple[str, int] | None:
    """What would make a message whole, in a sentence, and its size then."""
    habit = find_habit(frame, direction, api_key, api_version, lengths=False)
    if habit is not None:
        return habit_text(habit, direction, version), habit.size
    repair = find_repair(frame, direction, api_key, api_version)
    if repair is None or not repair.is_plausible:
        habit = find_habit(frame, direction, api_key, api_version, lengths=True)
        if habit is not None:
            return habit_text(habit, direction, version), habit.size
    if repair is None:
        return None
    return _repair_text(repair, frame, version), len(frame) - (repair.end - repair.start) + len(repair.written)


def _no_message(value: int | None, greatest: int, direction: Direction) -> list[str]:
    """What bytes are likely to be whose api key or version is far from those of all releases."""
    if value is None or direction == "response" or 0 <= value <= greatest + _FAR:
        return []
    return [
        f"{value} is far from any release, so these bytes are probably no Kafka request: the middle of one, another "
        "protocol, or bytes that a dump of words has swapped (use hexdump -C)."
    ]


def _length_facts(explanation: Explanation) -> Iterator[str]:
    """What the length states at which reading stopped, and what really follows."""
    message = explanation.message
    for line in explanation.lines:
        if not line.type.endswith(LENGTH) or line.start != message.error_offset or not message.error_path:
            continue
        type_ = line.type.removesuffix(f" {LENGTH}")
        unit = "elements" if type_.endswith("array") else "bytes"
        size = explanation.size - line.end
        note = (
            ", written one larger as compact lengths are" if type_.startswith("compact") and line.value != "-1" else ""
        )
        yield (
            f"The length of {path_text(message.error_path)} ({line.hex} at byte {line.start}) says "
            f"{line.value} {unit}{note}; {size} bytes follow it."
        )


def _repair_text(repair: Repair, frame: bytes, version: str) -> str:
    name = path_text(repair.path)
    now = frame[repair.start : repair.end].hex(" ")
    written = repair.written.hex(" ")
    unit = "" if not repair.type.endswith("array") else f" element{'' if repair.needs == 1 else 's'}"
    if repair.other_form:
        kind = "a compact length" if repair.type.startswith("compact") else "a fixed one"
        text = (
            f"{name} has its length as {repair.other_form} ({now} at byte {repair.start}: {repair.needs}); {version} "
            f"wants {kind}, {written}: with that"
        )
    else:
        stated = "null" if repair.stated is None else repair.stated
        text = (
            f"With {repair.needs}{unit} instead of {stated} as the length of {name} "
            f"({written} instead of {now} at byte {repair.start})"
        )
    return f"{text} the message decodes to its last byte{_value(repair)}."


def _value(repair: Repair) -> str:
    if not repair.type.endswith("string") or not isinstance(repair.value, str):
        return ""
    value = repair.value if len(repair.value) <= _PREVIEW else repair.value[:_PREVIEW] + "…"
    return f", and {path_text(repair.path)} is {value!r}"


def _as_response(frame: bytes, direction: Direction) -> list[str]:
    """Whether what was taken for a request reads well as a response."""
    if direction == "response":
        return []
    found = [one for one in guess_response(frame) if not one.doubts]
    if not found:
        return []
    best = found[0]
    return [
        f"As a response it would fit {best.api_name} v{best.versions[-1]}: if it is one, add --direction response "
        f"--api-key {best.api_key} --api-version {best.versions[-1]}."
    ]
