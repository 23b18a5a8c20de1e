"""What does the agent make of a recording, and what did pymongo say of the same commands? Compared one by one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoder import Codec, Frame
from decoder.field_hash import FieldHash
from decoder.model import FrameFlags, PayloadPolicy
from decoder.mongodb.extractors import CommandFacts, Half, command_facts
from pipeline.capture.runs.one_capture import frames_of

CODEC = Codec()
UNKNOWN = "noSuchCommand"
"""A command that no server has: nobody knows what its value means."""
UNTOLD = {"hello", "ismaster", "isMaster"}
"""Commands of pymongo's that its monitoring does not tell."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with its response, as the agent paired them."""

    request: Frame | None
    response: Frame | None

    @property
    def facts(self) -> CommandFacts:
        return command_facts(*(half_of(frame) for frame in (self.request, self.response)))


def half_of(frame: Frame | None) -> Half | None:
    if frame is None:
        return None
    message = CODEC.decode(frame.frame, protocol="mongodb", direction=frame.direction, flags=frame.flags)
    assert message.status in ("ok", "redacted"), message
    return Half(message.header, message.body, frame.flags)


HASH = FieldHash(b"a key of this deployment")


def frames(path: Path, policy: PayloadPolicy = "full") -> list[Frame]:
    return [item for item in frames_of(path, payload_policy=policy, field_hash=HASH) if isinstance(item, Frame)]


def exchanges(found: Iterable[Frame]) -> list[Exchange]:
    """By exchange id, in the order of their first frame."""
    halves: dict[str, dict[str, Frame]] = defaultdict(dict)
    for frame in sorted(found, key=lambda f: f.ts):
        assert frame.direction not in halves[frame.exchange_id]
        halves[frame.exchange_id][frame.direction] = frame
    return [Exchange(half.get("request"), half.get("response")) for half in halves.values()]


def truth(path: Path) -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads(path.with_suffix(".truth.json").read_text())
    events: list[dict[str, Any]] = document["events"]
    return events


def told(event: dict[str, Any]) -> dict[str, Any]:
    """The facts as pymongo's monitoring told them."""
    command, reply = event["document"], event.get("reply") or event.get("failure")
    name = event["command"]
    cursor = reply.get("cursor", {})
    batch = cursor.get("firstBatch", cursor.get("nextBatch"))
    statements = [command[key] for key in ("documents", "updates", "deletes") if key in command]
    errors = reply.get("writeErrors", [])
    failed = reply if not reply["ok"] else errors[0] if errors else {}
    collection = command.get("collection") if name == "getMore" else command[name] if name != UNKNOWN else None
    return {
        "command": name,
        "database": event["database"],
        "collection": collection if isinstance(collection, str) else None,
        "documents_in": sum(map(len, statements)) if statements else None,
        "documents_out": len(batch) if batch is not None else None,
        "cursor_left": cursor.get("id"),
        "n": reply.get("n"),
        "n_modified": reply.get("nModified"),
        "ok": bool(reply["ok"]),
        "error_code": failed.get("code"),
        "write_errors": len(errors),
    }


def is_silent(event: dict[str, Any]) -> bool:
    return event["document"].get("writeConcern", {}).get("w") == 0


def of_a_command(exchange: Exchange) -> bool:
    """Whether monitoring should have told of it; a further response is a command of its own there."""
    if exchange.request is None:
        assert exchange.response is not None
        assert exchange.response.flags & FrameFlags.FOLLOWING_RESPONSE
        return True
    return exchange.facts.command not in UNTOLD
