"""The frames of one capture, from its first packet to its last; and what its reading needs beside the agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from decoder.model import Frame, Gap
from pipeline.capture.packets.packet import CaptureError, DamagedCaptureError
from pipeline.capture.packets.sources import read_packets
from pipeline.capture.runs.agent import Agent
from pipeline.capture.runs.options import AgentOptions
from pipeline.capture.sessions.decryption import Decryption
from pipeline.capture.stats import CaptureStats

if TYPE_CHECKING:
    from typing_extensions import Unpack

_PROGRESS_EVERY = 4096


def frames_of(
    *pieces: str | Path,
    allow_truncated: bool | None = False,
    tls_keylog: str | Path | None = None,
    tls_embedded_keys: bool = False,
    stats: CaptureStats | None = None,
    on_progress: Callable[[CaptureStats], None] | None = None,
    **options: Unpack[AgentOptions],
) -> Iterator[Frame | Gap]:
    """The frames of one capture, redacted, and its losses.

    A request comes just before its response, or when it has waited for too long. The capture stands for itself:
    connections do not continue in the next one.

    Args:
        pieces: pcap or pcapng, also gzip or zstd; ``-`` is standard input. Several files are the pieces of one
            capture, in their order (see pipeline.capture.packets.sources.captures).
        allow_truncated: read a file that is cut off or damaged up to that place; None: likewise, but not standard
            input, whose rest could not be read.
        tls_keylog: key log (SSLKEYLOGFILE) to decrypt a single file with.
        tls_embedded_keys: decrypt a single pcapng file with the keys that it holds.
        stats: counts what is seen.
        on_progress: called every few thousand packets.
        options: how the agent reads.

    Raises:
        CaptureError: a file cannot be read, or not be decrypted.
        DamagedCaptureError: after the frames that precede the damage, unless ``allow_truncated``.
    """
    with decryption_of(pieces, tls_keylog, use_embedded=tls_embedded_keys) as decryption:
        agent = Agent(stats=stats, decryption=decryption, **options)
        for path in map(str, pieces):
            try:
                for packet in read_packets(path, on_aside=agent.note):
                    yield from agent.take(packet)
                    if agent.stats.packets % _PROGRESS_EVERY == 0:
                        agent.lives.take()  # not used here
                        if on_progress is not None:
                            on_progress(agent.stats)
            except DamagedCaptureError as error:
                if allow_truncated is False:
                    raise
                agent.stats.count_cut(error)
        yield from agent.finish()
        check_link_types(agent.stats, str(pieces[0]))


def decryption_of(
    pieces: Sequence[str | Path], tls_keylog: str | Path | None, *, use_embedded: bool
) -> AbstractContextManager[Decryption | None]:
    """What decrypts a capture: that of one file alone, since tshark reads it beside us."""
    return Decryption(str(pieces[0]), tls_keylog, use_embedded=use_embedded) if len(pieces) == 1 else nullcontext()


def check_link_types(stats: CaptureStats, path: str) -> None:
    """Call it at the end of a capture.

    Raises:
        CaptureError: not one packet was of a link type that is supported.
    """
    unknown = {reason: n for reason, n in stats.skipped.items() if reason.startswith("link_type_")}
    if stats.packets and sum(unknown.values()) == stats.packets:
        numbers = ", ".join(sorted(reason.removeprefix("link_type_") for reason in unknown))
        raise CaptureError(
            path,
            f"link type {numbers} is not supported (Ethernet, Linux cooked, BSD loopback, raw IP and PKTAP are); "
            "capture on another interface, e.g. tcpdump -i any",
        )
