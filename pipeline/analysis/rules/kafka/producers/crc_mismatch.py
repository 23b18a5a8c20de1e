"""Rule ``crc_mismatch``."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.analysis.claims.kafka.producers import CRC_MISMATCH
from pipeline.analysis.libraries import CHECKS_CRCS
from pipeline.analysis.rules.case.entities import CLIENT, PARTITION
from pipeline.analysis.rules.case.texts import LOSES, SEEN, Texts, topics
from pipeline.analysis.rules.counted import CountedRule, clients, place, when
from pipeline.analysis.rules.episode import Episode
from pipeline.analysis.rules.kafka.producers.batch_windows import finding_of_windows, grouped, span_of, windows_of
from pipeline.analysis.rules.kafka.producers.oversized_or_tiny_batches import OversizedOrTinyBatches
from pipeline.analysis.rules.model import Finding, Sources
from pipeline.analysis.rules.rule import OF_CLIENT, Link
from pipeline.analysis.rules.shown_by import ShownBy
from pipeline.humanize import pluralize

_REFUSED = (
    "Now: stop this client. Fix: something on the way changes bytes: look at its memory and library, and at the "
    "network."
)
CORRUPT = (
    "Now: stop that client if it is in what is sent, take the broker's disk out of use if it is in what is "
    "read (`kafka-dump-log.sh --deep-iteration --files LOG_FILE` shows it). Fix: something on the way changes bytes: "
    f"memory, library, disk or network; {CHECKS_CRCS}."
)


class CrcMismatch(CountedRule):
    """The checksum of a record batch does not match its content."""

    name = "crc_mismatch"
    title = "Checksum mismatch"
    protocol = "kafka"
    about = "producers"
    severities = ("critical",)
    reads = ("batches", "exchanges")
    advice = (_REFUSED, CORRUPT)
    urgency = LOSES
    shown_by = ShownBy(what="requests")
    texts = Texts(
        headline=lambda case: f"Batches of {case.who} to {case.places} are damaged: their checksums do not match",
        now=lambda case: (
            f"Stop {case.clients} or move it to another machine: what changes these bytes changes others, too."
        ),
        fix="Look at the memory of that host, the client library, and the network cards (checksum offloading); on a "
        "broker's disk `kafka-dump-log.sh --deep-iteration --files LOG_FILE` shows it.",
        reasoning=f"{SEEN}the batch's own checksum was computed again.",
        affected=topics,
    )
    gathered = OF_CLIENT
    subject = (None, CLIENT)
    effects = (Link(("produce_refused", "sequence_gap"), (CLIENT, PARTITION), "a damaged batch is not taken"),)
    claims = CRC_MISMATCH

    @classmethod
    def summary(cls, episode: Episode) -> str:
        """Whose batches were refused."""
        return f"The broker refused batches of {clients(episode)} to {place(episode)} as corrupt {when(episode)}."

    @classmethod
    def detect(cls, sources: Sources, settings: OversizedOrTinyBatches.Thresholds) -> Iterator[Finding]:
        """Damaged batches that were seen, then those that brokers refused."""
        bad = [row for row in windows_of(sources, settings) if row.bad]
        for group in grouped(bad, lambda r: (r.cluster, r.topic, r.partition, r.client_id, r.source)):
            row, times = group[0], sum(r.bad for r in group)
            verb = "sent to" if row.source == "produce" else "got from"
            place = f"{row.topic}-{row.partition}"
            summary = (
                f"The checksum of {pluralize(times, 'batch', 'batches')} that {row.client_id or '?'} {verb} {place} "
                f"does not match {'its' if times == 1 else 'their'} content, {span_of(group)}."
            )
            subject = f"{place}/{row.client_id or '?'}"
            figures = {"batches": times, "source": row.source}
            yield finding_of_windows(
                cls.name, "critical", subject, summary, CORRUPT, group, times, figures, sources, settings
            )
        yield from super().detect(sources, settings)
