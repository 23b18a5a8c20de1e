"""Sentences about connections on which client and server do not both speak Kafka or MongoDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from decoder.protocols import protocols
from pipeline.capture.sessions.foreign_protocols import NOTHING, UNKNOWN
from pipeline.capture.stats import CaptureStats, OtherTalk
from pipeline.humanize import pluralize
from pipeline.other_protocols import TLS, remedy

_SHOWN = 3


def misunderstandings(stats: CaptureStats) -> list[str]:
    """A sentence for each server that answers in another protocol than it is asked in, the most frequent first."""
    found = Counter({talk: count for talk, count in stats.other_talk.items() if _is_misunderstanding(talk)})
    sentences = [
        f"the server {_server(talk)} {_does(talk)} ({pluralize(count, 'connection')}): "
        f"{remedy(talk.asks, talk.answers)}"
        for talk, count in found.most_common(_SHOWN)
    ]
    more = len(found) - _SHOWN
    return (
        [*sentences, f"and {pluralize(more, 'more server')} like that (--json lists them)"] if more > 0 else sentences
    )


def other_protocols(stats: CaptureStats) -> str:
    """Which other protocols are spoken with which servers, the most frequent first; empty if unknown."""
    found: Counter[tuple[str, str]] = Counter()
    for talk, count in stats.other_talk.items():
        kind = talk.answers if talk.asks in (NOTHING, UNKNOWN) else talk.asks
        if not _is_misunderstanding(talk) and kind != NOTHING:
            found[kind, _server(talk)] += count
    shown = [f"{kind} with {server}: {count:,}" for (kind, server), count in found.most_common(_SHOWN)]
    return ", ".join([*shown, "…"] if len(found) > _SHOWN else shown)


def _is_misunderstanding(talk: OtherTalk) -> bool:
    if talk.asks in _titles() or talk.asks == TLS:
        return talk.answers != talk.asks
    return talk.answers == TLS


def _titles() -> Iterator[str]:
    return (protocol.title for protocol in protocols().values())


def _server(talk: OtherTalk) -> str:
    host = f"[{talk.server_ip}]" if ":" in talk.server_ip else talk.server_ip
    return f"{host}:{talk.server_port}"


def _does(talk: OtherTalk) -> str:
    asked = "TLS handshakes" if talk.asks == TLS else f"{talk.asks} requests"
    return f"answers {talk.answers} to {asked}" if talk.answers != NOTHING else f"closes {asked} without an answer"
