"""Words for incidents about how record batches are written: their size, format, checksum and acknowledgement."""

from __future__ import annotations

from pipeline.analysis.incidents.case import Case, arg, listed
from pipeline.analysis.incidents.words.model import LATER, LOSES, SEEN, WASTES, Words, topic_names, topics


def _names(case: Case, field: str) -> list[str]:
    return sorted({name for one in case.bundle.findings for name in one.details.get(field) or []})


def _old_format(case: Case) -> str:
    if writers := _names(case, "writers"):
        return f"Old message formats are written to {case.places} by {listed(writers)}"
    if stored := _names(case, "stored_for"):
        return f"{case.places} holds old message formats, which {listed(stored)} reads: who wrote them was not seen"
    readers = listed(_names(case, "readers")) or "old clients"
    return (
        f"{readers} reads {case.places} by requests that cannot take format v2: the broker converts for it, or its log "
        "holds old formats"
    )


def _old_format_fix(case: Case) -> str:
    if writers := _names(case, "writers"):
        return (
            f"Update {listed(writers)} (kafka-clients 0.11 or later), and log.message.format.version of old brokers. "
            "Kafka 4 takes only format v2."
        )
    if _names(case, "stored_for"):
        return "Nothing, if nobody writes them any more: retention removes what is old. Else find the old producer."
    return f"Update {listed(_names(case, 'readers')) or 'these clients'} (kafka-clients 0.11 or later)."


def _written(case: Case) -> str:
    """Topics that are written to."""
    return case.kinds


def _batches(case: Case) -> str:
    if "oversized" in case.details.get("kinds", ()):
        topics_ = topic_names(case)
        take = "does not take" if len(topics_) == 1 else "do not take"
        return f"{case.who} sends batches that {listed(topics_)} {take}: they are larger than max.message.bytes"
    names = sorted(entity[-1] for entity in case.bundle.named.get("client", ()))
    return (
        f"{listed(names) or 'A producer'} writes batches of about one record to {case.places}: brokers do little else"
    )


def _batches_now(case: Case) -> str:
    if "oversized" in case.details.get("kinds", ()):
        tool = "kafka-configs.sh --bootstrap-server BROKER --alter --topic"
        commands = listed(f"`{tool} {arg(topic)} --add-config max.message.bytes=N`" for topic in topic_names(case))
        return (
            f"These records were not written. Raise the limit if they are to pass: {commands}, and restart the "
            "producer."
        )
    return "Nothing has to be stopped."


def _batches_fix(case: Case) -> str:
    if "oversized" in case.details.get("kinds", ()):
        return (
            "Compress (compression.type), lower max.request.size / message.max.bytes of the producer so that it fails "
            "early, or put large values elsewhere."
        )
    return "linger.ms 5 to 100, batch.size, no flush per record."


BATCHES: dict[str, Words] = {
    "crc_mismatch": Words(
        lambda case: f"Batches of {case.who} to {case.places} are damaged: their checksums do not match",
        lambda case: (
            f"Stop {case.clients} or move it to another machine: what changes these bytes changes others, too."
        ),
        "Look at the memory of that host, the client library, and the network cards (checksum offloading); on a "
        "broker's disk `kafka-dump-log.sh --deep-iteration --files LOG_FILE` shows it.",
        f"{SEEN}the batch's own checksum was computed again.",
        LOSES,
        affected=topics,
    ),
    "oversized_or_tiny_batches": Words(
        _batches,
        _batches_now,
        _batches_fix,
        f"{SEEN}sizes and counts of the batches themselves.",
        WASTES,
        affected=topics,
        covers_info=True,
    ),
    "acks0_producer": Words(
        lambda case: f"{case.who} writes without asking for an answer (acks=0): losses go unnoticed",
        lambda _case: "Nothing has to be stopped.",
        "acks=all (the default since Kafka 3.0), unless losing these records is fine.",
        f"{SEEN}the requests say so.",
        LATER,
        affected=_written,
        covers_info=True,
    ),
    "old_message_format": Words(
        _old_format,
        lambda _case: "Nothing has to be stopped.",
        _old_format_fix,
        f"{SEEN}the batches' magic numbers.",
        LATER,
        affected=topics,
        covers_info=True,
    ),
}
