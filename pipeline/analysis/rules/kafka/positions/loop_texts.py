"""What is reported of a group that fetches from one offset again and again, and what to do: by what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.analysis.libraries import STORED_BY
from pipeline.analysis.rules.format import wait_or_waits
from pipeline.analysis.rules.kafka.records_behind import records_behind
from pipeline.humanize import clock, pluralize

SAME, SEEKS_BACK, NOTHING, EMPTY, MARKERS, BELOW, CUT = (
    "same_records", "seeks_back", "nothing", "empty_batch", "markers", "below", "cut_off",
)  # fmt: skip
_RESET = "kafka-consumer-groups.sh --bootstrap-server BROKER --reset-offsets"
_READ = (
    "kafka-console-consumer.sh --bootstrap-server BROKER --topic {topic} --partition {partition} --offset {offset} "
    "--max-messages 1"
)
_TO_NEXT = f"`{_RESET} --to-offset {{next}} --group {{group}} --topic {{place}} --execute`"
_NO_RECORDS = (
    f"Now: stop the group, set it to {{next}} ({_TO_NEXT}), and start it: no record is before offset {{next}}. "
    "Fix: update the library of {who}: it must continue behind batches without records, which compaction and "
    "transactions leave in a log."
)
ADVICE: Mapping[str, str] = {
    SAME: (
        f"Now: look for an exception about offset {{offset}} in the log of {{who}} (it cannot decode, decompress or "
        f"process what it gets), and read the record with another client (`{_READ}`). A restart alone fetches the same "
        "again. If there is an exception and the record may be skipped, stop the group, set it past the record "
        f"(`{_RESET} --to-offset {{after}} --group {{group}} --topic {{place}} --execute`; past the whole batch if it "
        "is about a codec or a checksum), and start it. If there is none, skip nothing: the application tries the same "
        "records again, as while a service that it needs is down. Fix: send what "
        "cannot be decoded or processed to a dead letter topic (Spring: ErrorHandlingDeserializer), install the codec "
        f"that producers compress with, and store the offset of each record that was processed ({STORED_BY})."
    ),
    SEEKS_BACK: (
        "Now: look in the log of {who} why it fails on the record at offset {offset} "
        f"(`{_READ}`); a restart does not help, it begins there again. Where the record may be left out, stop the "
        f"group, set it behind (`{_RESET} --to-offset {{after}} --group {{group}} --topic {{place}} --execute`), and "
        "start it. Fix: limit how often one record is tried, and send it to a dead letter topic then "
        "(Spring: DefaultErrorHandler with a back-off that ends and DeadLetterPublishingRecoverer)."
    ),
    NOTHING: (
        f"Now: read from there with another client (`{_READ}`). If records come, restart {{who}}: its fetch session or "
        "its limits (fetch.max.bytes, max.partition.fetch.bytes) keep them back. If none come, the leader cannot read "
        "what it has: look for this partition in the broker's log, and let another replica lead "
        "(`kafka-leader-election.sh --bootstrap-server BROKER --election-type preferred --topic {topic} --partition "
        "{partition}`). Fix: update the library of {who} and the broker; replace a disk with read errors."
    ),
    EMPTY: _NO_RECORDS,
    MARKERS: _NO_RECORDS,
    BELOW: (
        f"Now: restart {{who}}; if it fetches from {{offset}} again, stop the group, move it (`{_RESET} "
        "--to-offset {next} --group {group} --topic {place} --execute`), and start it: what the broker gives out ends "
        "below the position. Fix: update the library of {who}: it must continue behind a batch that compaction emptied."
    ),
    CUT: (
        "Now: raise max.partition.fetch.bytes of {who} (librdkafka, old clients: fetch.message.max.bytes) above the "
        "size of the record at offset {offset}, and restart it: with its version of Fetch the broker cuts a record "
        "off at that limit. Fix: set it no lower than max.message.bytes of topic {topic}, or update the library: since "
        "Fetch v3 (Kafka 0.10.1) a record above the limit comes whole."
    ),
}
"""By shape."""
_SEEK_ON = (
    "Now: let {who} continue at offset {next} (seek), or restart it: no record is before that, and no group holds its "
    "place. Fix: update its library: it must continue behind batches without records, which compaction and "
    "transactions leave in a log."
)
ALONE: Mapping[str, str] = {
    **ADVICE,
    SAME: (
        "Now: nothing if {who} is meant to read the same records again and again. Else look in its log for an "
        f"exception about offset {{offset}}, and read the record with another client (`{_READ}`). No group holds its "
        "place, so no tool can move it: where the record may be left out, let the application seek to {after} (past "
        "the whole batch if the exception is about a codec or a checksum). Fix: limit how often one record is tried, "
        "write what fails to a dead letter topic, and install the codec that producers compress with."
    ),
    SEEKS_BACK: (
        "Now: nothing if {who} is meant to go back again and again. Else look in its log why it fails on the record "
        f"at offset {{offset}} (`{_READ}`). No group holds its place, so no tool can move it: where the record may be "
        "left out, let the application seek to {after}. Fix: limit how often one record is tried, and write what fails "
        "to a dead letter topic."
    ),
    EMPTY: _SEEK_ON,
    MARKERS: _SEEK_ON,
    BELOW: _SEEK_ON,
}
"""The same for a reader of no group that is known."""
NO_GROUP = "of no known group"


def summary(group: str, place: str, first_us: int, last_us: int, details: Mapping[str, Any]) -> str:
    """What happened, in plain words; without a group it is one client that does not move."""
    moved, commits, offset = details["moved_us"], details["commits"], details["offset"]
    does = "did not move" if moved else "does not move"
    alive = "commits but " if commits else ""
    again = f" It committed {offset} {pluralize(commits, 'time')} meanwhile." if commits else ""
    end = f" At {clock(moved)} UTC it continued." if moved else ""
    if (read_on := details.get("read_on_us")) is not None:
        end = f" At {clock(read_on)} UTC it fetched further, but the group has not committed beyond {offset} since."
    who, it = (f"Group {group}", details["clients"]) if group else (f"{details['clients']}, {NO_GROUP},", "it")
    return (
        f"{who} {alive}{does} on {place}: {it} fetched from offset {offset} "
        f"{pluralize(details['fetches'], 'time')} from {clock(first_us)} to {clock(last_us)} UTC, {came(details)}, "
        "while "
        f"{records_behind(details)} {wait_or_waits(details['records_behind'])}.{again}{end}"
    )


def came(details: Mapping[str, Any]) -> str:
    """What came back."""
    records, last = details.get("records") or 0, (details.get("next_offset") or 0) - 1
    packed = f", compressed with {details['compression']}" if details.get("compression") else ""
    same = "records" if records > 1 else "record"
    size = f" of {details['size']:,} bytes" if details.get("size") else ""
    content = {
        SAME: f"the same {same}, up to {last}{packed}, each time",
        SEEKS_BACK: f"records (up to {last}) but goes back to {details['offset']} each time",
        NOTHING: "nothing",
        CUT: f"a piece{size} of a message, cut off at its fetch limit",
        MARKERS: f"only transaction markers, up to {last}",
        EMPTY: f"only batches without records, up to {last}",
        BELOW: f"only what ends below it, at {last}",
    }
    return f"and gets {content[details['again']]}"
