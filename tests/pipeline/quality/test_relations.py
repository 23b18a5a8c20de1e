"""What tables state of each other holds in the lake of every recording, and each way of not holding is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pipeline.analysis.fit import schema_of
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import diagnose
from pipeline.embedded.inputs import read_inputs
from pipeline.quality.landing_files import MANIFESTS
from pipeline.quality.model import Relation, Run
from pipeline.quality.reconcile import asked_by_spark, asked_here, compared, reconcile, tables_here
from pipeline.quality.relations import LONGEST_PAUSE_TIMES, RELATIONS, VOLUME_SHARE
from pipeline.streaming.spark.session import build_session
from pipeline.streaming.storage.lake import Lake
from pipeline.tables import (
    API_LATENCY,
    CLIENTS,
    EXCHANGES,
    FINDINGS,
    FRAMES,
    GAPS,
    INCIDENTS,
    LANDING_FILES,
    MONGO_COMMANDS,
    MONGO_MINUTES,
    OFFSET_EVENTS,
    OFFSET_TIMELINE,
    PENDING_EXCHANGES,
    RECORD_BATCHES,
    STATE_EVENTS,
    STREAM_PROGRESS,
    TABLES,
    Table,
)
from tests.paths import CAPTURES
from tests.pipeline.lakes import diagnosed_lake
from tests.pipeline.rows import T0, row
from tests.requirements import require_java

Tables = Mapping[str, pa.Table]
Rows = list[dict[str, Any]]
Differing = dict[str, list[tuple[str, int, int]]]
"""By relation what differs: subject, expected, found."""
NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
EVERY = sorted(
    [*CAPTURES.rglob("*.pcap"), *CAPTURES.rglob("*.pcap.zst")], key=lambda path: path.relative_to(CAPTURES).as_posix()
)
SOME = ("stuck_commit.pcap", "lossy.pcap", "troubled_mongodb.pcap", "certificate_refused.pcap.zst")


def table_of(rows: Rows, table: Table) -> pa.Table:
    return pa.Table.from_pylist(rows, schema_of(table))


def key(relation: Relation) -> str:
    return f"{relation.table.full_name}/{relation.name}"


def differing(tables: Tables, *, now: datetime = NOW, since: date | None = None) -> Differing:
    """Relations that do not hold."""
    known = {**TABLES, MANIFESTS.full_name: MANIFESTS}
    whole = {name: tables.get(name, schema_of(table).empty_table()) for name, table in known.items()}
    found = {}
    with asked_here(whole) as ask:
        for relation in RELATIONS:
            counts = compared(relation, ask, now=now, since=since).to_pylist()
            differ = [(c["subject"], c["expected"], c["found"]) for c in counts if c["expected"] != c["found"]]
            if differ:
                found[key(relation)] = differ
    return found


def stated(place: str, day: date, rows: int) -> dict[str, Any]:
    """The manifest of a file that was there before any file that was read."""
    return row(MANIFESTS, query="frames", file=f"/zone/{place}", place=place, day=day, rows=rows, seen_us=0)


def landed(tables: Tables) -> Tables:
    """With files noted in ``ops.landing_files`` out of which its frames came, and their manifests."""
    days = tables[FRAMES.full_name].column("date").value_counts().to_pylist()
    places = {one["values"]: f"date={one['values']}/a-1-1.parquet" for one in days}
    files = [
        row(LANDING_FILES, query="frames", file=f"file:/zone/{places[one['values']]}", rows=one["counts"])
        for one in days
    ]
    manifests = [stated(places[one["values"]], one["values"], one["counts"]) for one in days]
    frames = sum(one["counts"] for one in days)
    progress = [row(STREAM_PROGRESS, query="frames", checkpoint="x", rows_in=frames, rows_out=frames)]
    noted = {
        table.full_name: table_of(rows, table)
        for table, rows in ((LANDING_FILES, files), (STREAM_PROGRESS, progress), (MANIFESTS, manifests))
    }
    return {**tables, **noted}


@cache
def diagnosed(*captures: Path) -> Tables:
    return landed(diagnose(read_inputs([str(path) for path in captures]), StreamSettings()).tables)


@pytest.mark.parametrize(
    "capture",
    [
        pytest.param(path, marks=() if path.name in SOME else pytest.mark.proof, id=str(path.relative_to(CAPTURES)))
        for path in EVERY
    ],
)
def test_tables_of_a_recording_state_the_same(capture: Path) -> None:
    assert differing(diagnosed.__wrapped__(capture)) == {}


def base() -> Tables:
    names = ("stuck_commit.pcap", "mongodb/troubled_mongodb.pcap")
    return diagnosed(*(CAPTURES / name for name in names))


def changed(tables: Tables, table: Table, change: Callable[[Rows], Rows]) -> Tables:
    rows = change(tables[table.full_name].to_pylist())
    return {**tables, table.full_name: table_of(rows, table)}


def without_first(rows: Rows) -> Rows:
    return rows[1:]


def with_values(is_it: Callable[[dict[str, Any]], bool] = lambda _: True, **values: Any) -> Callable[[Rows], Rows]:
    """The first row that fits gets other values."""

    def change(rows: Rows) -> Rows:
        place = next(number for number, one in enumerate(rows) if is_it(one))
        new = {name: value(rows[place]) if callable(value) else value for name, value in values.items()}
        return [*rows[:place], rows[place] | new, *rows[place + 1 :]]

    return change


def event_of_nothing(tables: Tables) -> Tables:
    event = tables[OFFSET_EVENTS.full_name].to_pylist()[0]
    place = {name: event[name] for name in ("exchange_id", "partition", "kind")}

    def without_its_row(rows: Rows) -> Rows:
        number = next(n for n, one in enumerate(rows) if place.items() <= one.items())
        return [*rows[:number], *rows[number + 1 :]]

    return changed(changed(tables, OFFSET_EVENTS, with_values(exchange_id="lost")), OFFSET_TIMELINE, without_its_row)


def one_command_less(rows: Rows) -> Rows:
    return with_values(lambda one: one["commands"] > 0, commands=lambda one: one["commands"] - 1)(rows)


def falling_high_watermark(tables: Tables) -> Tables:
    events = tables[OFFSET_EVENTS.full_name].to_pylist()
    fetched = [e for e in events if e["kind"] == "fetched" and e["high_watermark"] and e["leader_epoch"] is not None]
    ways = {}
    for event in sorted(fetched, key=lambda one: one["ts"]):
        way = tuple(event[name] for name in ("server", "client", "topic", "topic_id", "partition", "leader_epoch"))
        ways.setdefault(way, []).append(event)
    last = next(some for some in ways.values() if len(some) > 2)[-1]
    return changed(tables, OFFSET_EVENTS, with_values(lambda one: one == last, high_watermark=0, last_stable_offset=0))


def seven_more(tables: Tables, *those: Table) -> Tables:
    for table in those:
        tables = changed(tables, table, with_values(rows=lambda one: one["rows"] + 7))
    return tables


def another_file(tables: Tables, **noted: Any) -> Tables:
    """One that has a manifest; ``noted``: how ``ops.landing_files`` has it."""
    day = tables[MANIFESTS.full_name].column("day")[0].as_py()
    place = f"date={day}/a-2-1.parquet"
    tables = changed(tables, MANIFESTS, lambda rows: [*rows, stated(place, day, 5)])
    if not noted:
        return tables
    one = row(LANDING_FILES, query="frames", file=f"file:///zone/{place}", rows=0, checkpoint="", **noted)
    return changed(tables, LANDING_FILES, lambda rows: [*rows, one])


def the_same_batch_again(rows: Rows) -> Rows:
    batch = next(one for one in rows if one["source"] == "fetch")
    return [*rows, batch | {"ordinal": batch["ordinal"] + 1}]


PLANTED: dict[str, Callable[[Tables], Tables]] = {
    "bronze.frames/frames_as_landed": lambda t: seven_more(t, LANDING_FILES, MANIFESTS),
    "ops.landing_files/rows_as_manifest": lambda t: seven_more(t, MANIFESTS),
    "ops.landing_files/manifest_is_noted": another_file,
    "bronze.gaps/set_aside_is_gap": lambda t: another_file(t, status="damaged"),
    "silver.exchanges/frames_in_exchanges": lambda t: changed(t, PENDING_EXCHANGES, lambda rows: [*rows, rows[0]]),
    "silver.offset_events/has_exchange": event_of_nothing,
    "silver.record_batches/has_exchange": lambda t: changed(t, RECORD_BATCHES, with_values(exchange_id="lost")),
    "silver.state_events/has_exchange": lambda t: changed(t, STATE_EVENTS, with_values(exchange_id="lost")),
    "silver.mongo_commands/has_exchange": lambda t: changed(
        changed(t, MONGO_COMMANDS, with_values(exchange_id="lost")), MONGO_MINUTES, one_command_less
    ),
    "silver.mongo_commands/commands_as_exchanges": lambda t: changed(
        changed(t, MONGO_COMMANDS, without_first), MONGO_MINUTES, one_command_less
    ),
    "gold.offset_timeline/events_in_timeline": lambda t: changed(t, OFFSET_TIMELINE, without_first),
    "gold.api_latency/exchanges_in_latency": lambda t: changed(t, API_LATENCY, without_first),
    "gold.mongo_commands/commands_in_minutes": lambda t: changed(t, MONGO_MINUTES, without_first),
    "gold.incidents/root_is_finding": lambda t: changed(t, INCIDENTS, with_values(root_id="lost")),
    "gold.incidents/members_are_findings": lambda t: changed(
        t, INCIDENTS, with_values(findings=lambda one: [*one["findings"], "lost"])
    ),
    "gold.findings/finding_in_incident": lambda t: changed(t, FINDINGS, with_values(incident_id="another")),
    "gold.clients/clients_of_exchanges": lambda t: changed(t, CLIENTS, with_values(client_ip="198.51.100.9")),
    "silver.record_batches/magic_fits_version": lambda t: changed(
        t, RECORD_BATCHES, with_values(lambda one: one["source"] == "produce", magic=1)
    ),
    "silver.offset_events/high_watermark_ascends": falling_high_watermark,
    "silver.record_batches/batches_ascend": lambda t: changed(t, RECORD_BATCHES, the_same_batch_again),
    "bronze.frames/responses_echo_ids": lambda t: changed(
        t,
        FRAMES,
        with_values(
            lambda one: one["protocol"] == "kafka" and one["direction"] == "response" and one["exchange_id"],
            correlation_id=lambda one: one["correlation_id"] + 1,
        ),
    ),
}
OTHERWISE = {"bronze.frames/volume_as_before", "bronze.frames/landing_goes_on"}


def test_each_relation_has_a_planted_defect() -> None:
    assert PLANTED.keys() | OTHERWISE == {key(relation) for relation in RELATIONS}
    assert len({key(relation) for relation in RELATIONS}) == len(RELATIONS)


def test_each_expected_file_is_named() -> None:
    found = differing(PLANTED["ops.landing_files/rows_as_manifest"](base()))
    ((subject, expected, read),) = found["ops.landing_files/rows_as_manifest"]
    assert (subject.startswith("frames date="), expected - read) == (True, 7)


def test_a_file_that_may_wait_to_be_read_is_not_missed() -> None:
    """It came with, or after, the newest file that was read."""
    late = int(T0.timestamp() * 1e6)
    waiting = changed(another_file(base()), MANIFESTS, lambda rows: [*rows[:-1], rows[-1] | {"seen_us": late}])
    assert differing(waiting) == {}


@pytest.mark.parametrize("status", ["lost", "unreadable"])
def test_what_is_lost_and_has_its_gap_is_not_missed(status: str) -> None:
    lost = another_file(base(), status=status)
    place = lost[MANIFESTS.full_name].column("place").to_pylist()[-1]
    assert differing(lost).keys() == {"bronze.gaps/set_aside_is_gap"}
    assert differing(changed(lost, GAPS, lambda rows: [*rows, row(GAPS, connection_id=f"file:{place}")])) == {}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_defect_makes_exactly_its_relation_fail(name: str) -> None:
    assert differing(base()) == {}
    assert differing(PLANTED[name](base())).keys() == {name}


LOST: dict[str, tuple[Callable[[Tables], Tables], set[str]]] = {
    "28 % of the frames": (
        lambda t: changed(t, FRAMES, lambda rows: rows[: len(rows) * 72 // 100]),
        {"bronze.frames/frames_as_landed", "silver.exchanges/frames_in_exchanges"},
    ),
    "every commit": (
        lambda t: changed(t, OFFSET_EVENTS, lambda rows: [one for one in rows if one["kind"] != "committed"]),
        {"gold.offset_timeline/events_in_timeline"},
    ),
    "every finding": (
        lambda t: changed(t, FINDINGS, lambda _: []),
        {"gold.incidents/root_is_finding", "gold.incidents/members_are_findings"},
    ),
    "every exchange of one connection": (
        lambda t: changed(
            t, EXCHANGES, lambda rows: [one for one in rows if one["connection_id"] != rows[0]["connection_id"]]
        ),
        {"silver.exchanges/frames_in_exchanges"},
    ),
}


@pytest.mark.parametrize("what", LOST)
def test_rows_that_are_lost_are_missed(what: str) -> None:
    lose, by = LOST[what]
    assert by <= differing(lose(base())).keys()


def test_counts_state_how_many_rows_are_missing() -> None:
    frames = base()[FRAMES.full_name]
    found = differing({**base(), FRAMES.full_name: frames.slice(100)})
    missing = sum(expected - held for _, expected, held in found["bronze.frames/frames_as_landed"])
    assert missing == 100


def test_rows_that_came_twice_may_be_fewer_in_bronze() -> None:
    """Of a batch of which bronze held 40 rows before, a day may lack 40; not 41."""
    frames = base()[FRAMES.full_name]
    less = changed(base(), STREAM_PROGRESS, with_values(rows_out=frames.num_rows - 40))
    name = "bronze.frames/frames_as_landed"
    assert name not in differing({**less, FRAMES.full_name: frames.slice(40)})
    assert name in differing({**less, FRAMES.full_name: frames.slice(41)})


def test_what_was_erased_is_not_missed() -> None:
    frames = base()[FRAMES.full_name]
    day = frames.column("date")[0].as_py()
    erased = row(LANDING_FILES, query="frames", file=f"erased/date={day}/7", rows=-40, status="erased", checkpoint="")
    noted = changed(base(), LANDING_FILES, lambda rows: [*rows, erased])
    name = "bronze.frames/frames_as_landed"
    assert name not in differing({**noted, FRAMES.full_name: frames.slice(40)})
    assert name in differing({**noted, FRAMES.full_name: frames.slice(41)})


def test_what_cannot_be_asked_fails_alone() -> None:
    class Counts:
        def add_dataframe_asset(self, name: str) -> None:
            raise AssertionError(name)

    def ask(_: str) -> pa.Table:
        raise duckdb.IOException("a file is damaged")

    result = reconcile(Counts(), ask, Run.at(NOW), RELATIONS[0])
    assert (result.success, result.severity) == (False, "critical")
    assert result.message.endswith("could not be checked: IOException")


def test_days_that_maintenance_has_dropped_are_not_missed() -> None:
    day = max(base()[FRAMES.full_name].column("date").to_pylist())
    nothing = {**base(), FRAMES.full_name: base()[FRAMES.full_name].slice(0, 0)}
    assert "bronze.frames/frames_as_landed" in differing(nothing, since=day)
    assert "bronze.frames/frames_as_landed" not in differing(nothing, since=day + timedelta(days=1))


FEW = 100 // VOLUME_SHARE


@pytest.mark.parametrize(("last", "is_few"), [(100, False), (FEW, False), (FEW - 1, True)])
def test_a_day_with_few_frames_is_told(last: int, is_few: bool) -> None:
    days = [100, 90, 110, 100, last, 1]
    first = date(2026, 2, 1)
    frames = [row(FRAMES, date=first + timedelta(n), seq=seq) for n, count in enumerate(days) for seq in range(count)]
    found = differing({FRAMES.full_name: table_of(frames, FRAMES)})
    assert ("bronze.frames/volume_as_before" in found) is is_few


@pytest.mark.parametrize(("minutes", "is_late"), [(LONGEST_PAUSE_TIMES, False), (LONGEST_PAUSE_TIMES + 1, True)])
def test_a_landing_zone_that_falls_silent_is_told(minutes: int, is_late: bool) -> None:
    times = [NOW - timedelta(minutes=minutes + n) for n in range(12)]
    files = [row(LANDING_FILES, query="frames", file=f"f{n}", modified_at=at) for n, at in enumerate(times)]
    found = differing({LANDING_FILES.full_name: table_of(files, LANDING_FILES)})
    assert ("bronze.frames/landing_goes_on" in found) is is_late


@pytest.mark.spark
def test_spark_answers_the_same(tmp_path: Path) -> None:
    """Of the lake of a diagnosis, from which rows of several tables were taken."""
    require_java()
    lake = diagnosed_lake(tmp_path / "lake", "stuck_commit", "mongodb/troubled_mongodb")
    for table in (FRAMES, OFFSET_TIMELINE, API_LATENCY, MONGO_MINUTES):
        some = DeltaTable(str(lake / table.path)).to_pyarrow_table()
        write_deltalake(str(lake / table.path), some.slice(some.num_rows // 3), mode="overwrite")
    beside = {MANIFESTS.full_name: base()[MANIFESTS.full_name]}
    with asked_here({**tables_here(str(lake), TABLES.values()), **beside}) as here:
        ours = {key(one): sorted(compared(one, here, now=NOW).to_pylist(), key=repr) for one in RELATIONS}
    tables = [*TABLES.values(), MANIFESTS]
    with asked_by_spark(build_session("wirelake-tests"), Lake.at(lake), tables, beside) as by_spark:
        theirs = {key(one): sorted(compared(one, by_spark, now=NOW).to_pylist(), key=repr) for one in RELATIONS}
    assert ours == theirs
    differ = {name for name, rows in ours.items() if any(one["expected"] != one["found"] for one in rows)}
    assert differ == {
        "bronze.frames/frames_as_landed",
        "silver.exchanges/frames_in_exchanges",
        "gold.offset_timeline/events_in_timeline",
        "gold.api_latency/exchanges_in_latency",
        "gold.mongo_commands/commands_in_minutes",
    }
