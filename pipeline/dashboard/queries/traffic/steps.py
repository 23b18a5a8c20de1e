"""A connection as steps in order of time: what was sent and answered, what waited, what the capture lost, TCP's ends.

Pure: rows in, steps out. A step is a place in a picture whose distances are not those of time: a burst and a pause of
minutes have room beside each other, and each step says how long after the one before it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any, Literal, get_args

from decoder.model import MIDWAY

Kind = Literal["opened", "lost", "joined", "request", "response", "again", "full", "ended"]
_KINDS: Mapping[str, int] = {kind: number for number, kind in enumerate(get_args(Kind))}
"""The order of those that come at one time."""

_PAUSES = 8
"""A pause is so many times as long as what usually passes between two steps of the same connection …"""
_LEAST_PAUSE = timedelta(milliseconds=20)
"""… and no shorter than this."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened on a connection.

    Attributes:
        at: its place, from 0.
        ts: first byte of a request or response; when a loss was noticed.
        kind: ``lost``: the capture lost bytes; ``joined``: it met the connection in the middle of an exchange;
            ``opened`` and ``ended``: what TCP did; ``again``: a side sent a segment again; ``full``: it asked to be
            sent nothing.
        exchange_id: the exchange it belongs to; None: none.
        label: the api or command with its version, or what was lost.
        words: what it says.
        after: time since the step before; None for the first.
        is_pause: whether that is much longer than usual on this connection.
        is_wrong: whether a response has an error, or what was sent could not be read.
        direction: of a loss, and of what TCP did: ``request``: from the client; empty where unknown. That of a
            request or response is its kind.
    """

    at: int
    ts: datetime
    kind: Kind
    exchange_id: str | None
    label: str
    words: str
    after: timedelta | None = None
    is_pause: bool = False
    is_wrong: bool = False
    direction: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """From a request to its response.

    Attributes:
        exchange_id: of both.
        first, last: their places; of one that has no answer the last place of all.
        lane: from 0, so that waits that overlap (pipelined requests) are beside each other.
        ending: ``answered``; ``open``: not answered yet; ``closed``: the connection ended before; ``unknown``.
        latency: last byte of the request to first byte of the response; None without one.
        is_wrong: whether the answer is an error.
    """

    exchange_id: str
    first: int
    last: int
    lane: int
    ending: str
    latency: timedelta | None
    is_wrong: bool


@dataclass(frozen=True, slots=True)
class Connection:
    """A part of a connection."""

    steps: Sequence[Step]
    waits: Sequence[Wait]


_ENDINGS = {"unanswered": "closed", "pending": "open"}


def sequence(
    exchanges: Sequence[Mapping[str, Any]],
    losses: Sequence[Mapping[str, Any]],
    life: Mapping[str, Any] | None = None,
    *,
    is_first: bool = True,
    is_last: bool = True,
) -> Connection:
    """The steps of some exchanges of one connection.

    Args:
        exchanges: rows of ``silver.exchanges`` with ``words``, in any order; status ``pending``: of
            ``silver.pending_exchanges``.
        losses: rows of ``bronze.gaps``.
        life: of ``silver.connections`` how it was opened and how it ended; None: nothing is known.
        is_first, is_last: whether these are the first, and the last, exchanges of the connection.
    """
    found = [step for row in exchanges for step in _steps(row)] + [_loss(row) for row in losses]
    if found and life is not None:
        times = [step["ts"] for step in found]
        begin, end = None if is_first else min(times), None if is_last else max(times)
        found += _of_tcp(life, is_first=is_first, is_last=is_last)
        found += [
            step for step in _trouble(life)
            if (begin is None or step["ts"] >= begin) and (end is None or step["ts"] <= end)
        ]  # fmt: skip
    found.sort(key=lambda step: (step["ts"], _KINDS[step["kind"]]))
    spaces = [later["ts"] - earlier["ts"] for earlier, later in pairwise(found)]
    pause = max(_LEAST_PAUSE, median(spaces) * _PAUSES) if spaces else _LEAST_PAUSE
    steps = [
        Step(at=at, after=after, is_pause=after is not None and after >= pause, **step)
        for at, (step, after) in enumerate(zip(found, [None, *spaces], strict=False))
    ]
    return Connection(steps, _waits(exchanges, steps))


def _steps(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    version = "" if row["api_version"] is None else f" v{row['api_version']}"
    asked, arrow, answer = row["words"].partition("→")
    label = f"{row['api_name'] or 'not known'}{version}"
    of_all = {"exchange_id": row["exchange_id"]}
    steps: list[dict[str, Any]] = []
    if row["request_ts"] is not None:
        wrong = row["request_status"] not in ("ok", "redacted")
        words = f"{asked.strip()}{'' if not wrong else ' (' + str(row['request_status']) + ')'}".strip()
        steps.append({**of_all, "ts": row["request_ts"], "kind": "request", "label": label, "words": words,
                      "is_wrong": wrong})  # fmt: skip
    if row["response_ts"] is not None:
        errors = ", ".join(row["error_names"] or ())
        unreadable = row["response_status"] not in ("ok", "redacted")
        words = (answer if arrow else row["words"] if not steps else "").strip() or errors
        words = f"{words} ({row['response_status']})".strip() if unreadable else words
        if not steps and row["status"] == "orphan_response":
            unseen = "request not seen: it was sent before the capture met this connection, or was lost"
            steps.append({**of_all, "ts": row["response_ts"], "kind": "joined", "label": label, "words": unseen})
        steps.append({**of_all, "ts": row["response_ts"], "kind": "response", "label": label, "words": words,
                      "is_wrong": bool(errors) or unreadable})  # fmt: skip
    return steps


def _of_tcp(life: Mapping[str, Any], *, is_first: bool, is_last: bool) -> Iterator[dict[str, Any]]:
    if is_first and life["opened"] == "yes":
        yield {
            "ts": life["first_ts"], "kind": "opened", "exchange_id": None, "label": "SYN",
            "words": "opens the connection", "direction": "request",
        }  # fmt: skip
    if is_last and life["is_closed"]:
        by, label = (
            (life["reset_by"], "RST") if life["reset_by"] else (life["closed_by"], "FIN" if life["closed_by"] else "")
        )
        yield {
            "ts": life["last_ts"], "kind": "ended", "exchange_id": None, "label": label, "words": life["ended"],
            "direction": {"client": "request", "server": "response"}.get(by or "", ""),
        }  # fmt: skip


def _trouble(life: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Of each side the first and the last segment that it sent again, and when it first asked to be sent nothing."""
    for side, direction in (("client", "request"), ("server", "response")):
        first, last = life.get(f"{side}_first_sent_again_ts"), life.get(f"{side}_last_sent_again_ts")
        of_all = {"exchange_id": None, "direction": direction}
        if first is not None:
            number = life[f"{side}_sent_again"]
            words = f"by the {side}" if number == 1 else f"by the {side}, the first of {number:,} segments"
            yield {**of_all, "ts": first, "kind": "again", "label": "sent again", "words": words}
            if last is not None and number > 1:
                words = f"by the {side}, the last of {number:,} segments"
                yield {**of_all, "ts": last, "kind": "again", "label": "sent again", "words": words}
        if (full := life.get(f"{side}_first_zero_window_ts")) is not None:
            for_ms = life[f"{side}_stalled_us"] / 1000
            words = f"of the {side}, which did not read for {for_ms:,.0f} ms in all"
            yield {**of_all, "ts": full, "kind": "full", "label": "zero window", "words": words}


def _loss(row: Mapping[str, Any]) -> dict[str, Any]:
    count, of = row["bytes_lost"], "from the client" if row["direction"] == "request" else "from the server"
    amount = "bytes" if not count else f"{count:,} byte{'s' if count != 1 else ''}"
    if str(row.get("method") or "").startswith(MIDWAY):
        words = f"{amount} {of} that began, or were asked for, before the capture met this connection"
        return {
            "ts": row["ts"], "kind": "joined", "exchange_id": None, "label": "joined midway", "words": words,
            "direction": row["direction"],
        }  # fmt: skip
    return {
        "ts": row["ts"], "kind": "lost", "exchange_id": None, "label": "not captured", "words": f"{amount} {of} lost",
        "direction": row["direction"],
    }  # fmt: skip


def _waits(exchanges: Sequence[Mapping[str, Any]], steps: Sequence[Step]) -> list[Wait]:
    places = {(step.exchange_id, step.kind): step for step in steps}
    end = len(steps) - 1
    waits: list[Wait] = []
    busy: list[int] = []
    asked = [row for row in exchanges if (row["exchange_id"], "request") in places]
    for row in sorted(asked, key=lambda row: places[row["exchange_id"], "request"].at):
        if row["status"] == "no_response_expected":
            continue
        request, response = (places.get((row["exchange_id"], kind)) for kind in ("request", "response"))
        first, last = request.at if request else 0, response.at if response else end
        lane = next((number for number, until in enumerate(busy) if until <= first), len(busy))
        busy[lane : lane + 1] = [last]
        ending = "answered" if response else _ENDINGS.get(row["status"], "unknown")
        latency = None if row["latency_us"] is None else timedelta(microseconds=row["latency_us"])
        waits.append(
            Wait(row["exchange_id"], first, last, lane, ending, latency, response is not None and response.is_wrong)
        )
    return waits
