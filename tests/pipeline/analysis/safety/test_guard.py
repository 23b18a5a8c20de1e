"""A planted fault at each step of the analysis costs that step alone, and is reported without payload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from pipeline.analysis import derive as derivations
from pipeline.analysis import pairing
from pipeline.analysis.incidents import incidents, report
from pipeline.analysis.ownership import fetch_sessions, transactions
from pipeline.analysis.rules import rule, run
from pipeline.analysis.rules.kafka import groundwork
from pipeline.analysis.safety import guard
from pipeline.analysis.safety.guard import MOST_NOTED, InternalError, Noted, TooMuchToJudge, attempt, by_parts, noting
from pipeline.analysis.statements import hot, kafka, mongodb
from pipeline.analysis.timeline import carry_columns
from pipeline.analysis.timeline import rows as timeline_rows
from pipeline.analysis.timeline.offset_state import OffsetState
from pipeline.config.settings import StreamSettings
from pipeline.embedded.diagnosis import Diagnosis, diagnose
from pipeline.embedded.inputs import Landed, read_inputs
from tests.paths import CAPTURES

CANARY = "canary-in-a-message"


class PlantedError(Exception):
    """The fault."""


def fails(*_: Any, **__: Any) -> Any:
    raise PlantedError(CANARY)


def fails_once(function: Callable[..., Any], holds: Callable[..., bool]) -> Callable[..., Any]:
    """The function, but where ``holds`` its arguments."""

    def planted(*arguments: Any, **named: Any) -> Any:
        return fails() if holds(*arguments, **named) else function(*arguments, **named)

    return planted


@pytest.fixture(scope="module")
def stuck() -> Landed:
    return read_inputs([str(CAPTURES / "stuck_commit.pcap")])


@pytest.fixture(scope="module")
def stalled() -> Landed:
    return read_inputs([str(CAPTURES / "stalled_lso.pcap")])


@pytest.fixture(scope="module")
def mongo() -> Landed:
    return read_inputs([str(CAPTURES / "mongodb" / "plain.pcap")])


_WHOLE: dict[int, Diagnosis] = {}


def whole_of(landed: Landed) -> Diagnosis:
    """The diagnosis without a fault."""
    if id(landed) not in _WHOLE:
        _WHOLE[id(landed)] = judged(landed)
    return _WHOLE[id(landed)]


def judged(landed: Landed) -> Diagnosis:
    return diagnose(landed, StreamSettings())


def rules_of(found: Diagnosis) -> set[str]:
    return set(found.findings.column("rule").to_pylist())


def silver(found: Diagnosis) -> dict[str, pa.Table]:
    return {name: rows for name, rows in found.tables.items() if name.startswith("silver.")}


def test_a_rule_that_fails_costs_its_own_findings(stuck: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_of(stuck)
    assert whole.errors == ()
    broken = tuple(
        replace(one, find=fails) if "stuck_commit" in {r.name for r in one.rules} else one for one in rule.families()
    )
    monkeypatch.setattr(run, "families", lambda: broken)
    found = judged(stuck)
    (error,) = found.errors
    assert "stuck_commit" in error.step
    assert error.error == "PlantedError"
    lost = set(error.step.removeprefix("rule ").split(", "))
    assert rules_of(found) == rules_of(whole) - lost


def test_nothing_of_the_message_is_reported(stuck: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groundwork, "newest_versions", fails)
    assert CANARY not in " ".join(map(str, judged(stuck).errors))


@pytest.mark.parametrize(
    "shared", ["collect_traffic", "_ends_of_servers", "exchange_symptoms", "newest_versions", "steps"]
)
def test_what_rules_share_fails_and_rules_still_run(
    stuck: Landed, monkeypatch: pytest.MonkeyPatch, shared: str
) -> None:
    monkeypatch.setattr(run if hasattr(run, shared) else groundwork, shared, fails)
    found = judged(stuck)
    assert [error.error for error in found.errors] == ["PlantedError"]
    assert "stuck_commit" in rules_of(found)


def test_a_finding_that_cannot_be_written_costs_itself(stuck: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_of(stuck)
    row = run.Finding.row
    monkeypatch.setattr(run.Finding, "row", fails_once(row, lambda finding: finding.rule == "stuck_commit"))
    found = judged(stuck)
    assert {error.step for error in found.errors} == {"rule stuck_commit"}
    assert rules_of(found) == rules_of(whole) - {"stuck_commit"}


def test_an_exchange_whose_statements_fail_costs_itself(stuck: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_of(stuck)
    seen: list[object] = []

    def is_first_fetch(item: kafka.ParsedExchange, _: object) -> bool:
        seen.extend([item] if item.api_key == 1 else [])
        return item.api_key == 1 and item is seen[0]

    monkeypatch.setattr(kafka, "KERNEL_AFTER", 10**9)
    monkeypatch.setattr(kafka, "_stated", fails_once(kafka._stated, is_first_fetch))
    found = judged(stuck)
    (error,) = found.errors
    events = found.tables["silver.offset_events"]
    all_events = whole.tables["silver.offset_events"]
    others = [one for one in all_events.column("exchange_id").to_pylist() if one != error.subject]
    assert error.step == "statements of an exchange"
    assert sorted(events.column("exchange_id").to_pylist()) == sorted(others)
    assert len(others) < all_events.num_rows


def test_an_exchange_of_mongodb_likewise(mongo: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_of(mongo).tables["silver.mongo_commands"].num_rows
    calls: list[int] = []

    def is_third(*_: object) -> bool:
        calls.append(1)
        return len(calls) == 3

    monkeypatch.setattr(mongodb, "command_facts", fails_once(mongodb.command_facts, is_third))
    found = judged(mongo)
    assert [error.step for error in found.errors] == ["statements of an exchange"]
    assert found.tables["silver.mongo_commands"].num_rows == whole - 1


def test_an_event_that_the_timeline_cannot_take_costs_itself(stuck: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_of(stuck)
    calls: list[int] = []

    def is_tenth(*_: object) -> bool:
        calls.append(1)
        return len(calls) == 10

    monkeypatch.setattr(timeline_rows, "KERNEL_AFTER", 10**9)
    monkeypatch.setattr(OffsetState, "take", fails_once(OffsetState.take, is_tenth))
    found = judged(stuck)
    (error,) = found.errors
    assert error.step == "table gold.offset_timeline"
    assert found.tables["gold.offset_timeline"].num_rows == whole.tables["gold.offset_timeline"].num_rows - 1
    assert silver(found) == silver(whole)


def test_reading_one_by_one_takes_the_place_of_compiled_code_that_fails(
    stuck: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = whole_of(stuck)

    monkeypatch.setattr(hot, "hot_statements", fails)
    monkeypatch.setattr(carry_columns, "timelines", fails)
    for module in (kafka, timeline_rows):
        monkeypatch.setattr(module, "KERNEL_AFTER", 1)
        monkeypatch.setattr(module, "COMPILING_AFTER", 1)
    found = judged(stuck)
    assert {error.step for error in found.errors} == {"statements of an exchange", "table gold.offset_timeline"}
    for name, rows in (silver(whole) | {"gold.offset_timeline": whole.tables["gold.offset_timeline"]}).items():
        assert sorted(map(str, found.tables[name].to_pylist())) == sorted(map(str, rows.to_pylist())), name


def test_a_producer_whose_transactions_fail_costs_its_own(stalled: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_of(stalled).tables["silver.transactions"]
    first: list[object] = []

    def is_first(_: str, rows: object, __: int) -> bool:
        first.append(rows)
        return len(first) == 1

    monkeypatch.setattr(transactions, "follow_producer", fails_once(transactions.follow_producer, is_first))
    found = judged(stalled)
    assert [error.step for error in found.errors] == ["table silver.transactions"]
    assert 0 < found.tables["silver.transactions"].num_rows < whole.num_rows


def test_a_fetch_session_that_fails_costs_itself(stuck: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "follow_session", fails)
    found = judged(stuck)
    assert {error.step for error in found.errors} == {"table silver.fetch_sessions"}
    assert found.tables["silver.fetch_sessions"].num_rows == 0
    assert "stuck_commit" in rules_of(found)


@pytest.mark.parametrize(
    "derivation",
    ["all_copies", "transactions", "timeline", "brokers", "topics", "assignments", "api_latency", "clients",
     "mongo_minutes", "with_handshakes"],
)  # fmt: skip
def test_a_derivation_that_fails_costs_its_table(
    stuck: Landed, monkeypatch: pytest.MonkeyPatch, derivation: str
) -> None:
    monkeypatch.setattr(derivations, derivation, fails)
    found = judged(stuck)
    (error,) = found.errors
    assert error.step.startswith("table ")
    assert found.tables["silver.exchanges"].num_rows > 0


def test_a_connection_whose_pairing_fails_costs_itself(stuck: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_of(stuck).tables["silver.exchanges"]
    broken = whole.column("connection_id")[0].as_py()

    def holds(frames: pa.Table, *_: object) -> bool:
        return broken in frames.column("connection_id").to_pylist()

    monkeypatch.setattr(pairing, "_paired", fails_once(pairing._paired, holds))
    found = judged(stuck)
    (error,) = found.errors
    ids = found.tables["silver.exchanges"].column("connection_id").to_pylist()
    assert error.subject == broken
    assert sorted(ids) == sorted(one for one in whole.column("connection_id").to_pylist() if one != broken)


def test_errors_of_a_response_that_cannot_be_read_are_unknown(stuck: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_of(stuck)
    monkeypatch.setattr(pairing, "response_errors", fails)
    found = judged(stuck)
    assert {error.step for error in found.errors} == {"errors of a response"}
    known = dict(errors_by_exchange(found))
    with_errors = [name for name, codes in errors_by_exchange(whole) if codes]
    assert with_errors
    assert [name for name in with_errors if known[name] is not None] == []
    assert [codes for codes in known.values() if codes] == []


def errors_by_exchange(found: Diagnosis) -> list[tuple[str, list[int] | None]]:
    exchanges = found.tables["silver.exchanges"]
    return list(zip(*(exchanges.column(name).to_pylist() for name in ("exchange_id", "error_codes")), strict=True))


def test_an_incident_without_words_is_reported_plainly(stuck: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_of(stuck)
    monkeypatch.setattr(incidents, "incident_row", fails)
    found = judged(stuck)
    assert {error.error for error in found.errors} == {"PlantedError"}
    of_both = [
        one.incidents.select(["rule", "incident_id", "root_id"]).sort_by("incident_id") for one in (found, whole)
    ]
    assert of_both[0] == of_both[1]


def test_findings_that_cannot_be_grouped_stand_alone(stuck: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents, "trees_of", fails)
    found = judged(stuck)
    assert [error.step for error in found.errors] == ["incidents: grouping"]
    assert found.incidents.num_rows == found.findings.num_rows > 0


def test_without_a_place_to_note_them_failures_are_raised() -> None:
    with pytest.raises(PlantedError):
        attempt("a step", fails, list)


def test_a_disk_that_fails_is_no_fault_of_a_step() -> None:
    def full() -> list[object]:
        raise OSError(28, "No space left on device")

    with noting() as noted, pytest.raises(OSError, match="No space"):
        attempt("a step", full, list)
    assert noted.errors == ()


def test_what_is_too_much_is_told_in_words() -> None:
    def stop() -> list[object]:
        raise TooMuchToJudge("12,000,000 pairs of members and partitions")

    with noting() as noted:
        assert attempt("rule stuck_commit", stop, list) == []
    assert str(noted.errors[0]) == "rule stuck_commit: too much to judge: 12,000,000 pairs of members and partitions"


def test_a_failure_names_the_innermost_line_of_ours() -> None:
    def read() -> object:
        return guard.pc.cast(pa.array(["x"]), pa.int64())

    with noting() as noted:
        assert by_parts("a step", lambda _: pa.table({"n": read()}), pa.table({"id": ["a"]}), "id") == []
    (error,) = noted.errors
    assert error.place.startswith("pipeline.analysis.safety.guard:")
    assert error.subject == "a"


def test_a_million_failures_are_noted_a_thousand_times() -> None:
    noted = Noted()
    noted.add(InternalError("a step", str(number), "KeyError", "here") for number in range(2 * MOST_NOTED))
    assert len(noted.errors) == MOST_NOTED


def test_words_that_fail_are_replaced_by_those_of_the_rule(stuck: Landed) -> None:
    whole = whole_of(stuck)
    rows = run.finding_rows(whole.findings)
    plain = report.plain_row(incidents.alone(rows[0]))
    assert set(plain) == set(incidents.grouped(rows).incidents[0])


@pytest.mark.parametrize("error", [MemoryError(), pa.ArrowMemoryError("malloc"), duckdb.OutOfMemoryException("block")])
def test_a_step_without_memory_had_too_much_to_judge(error):
    def work():
        raise error

    with noting() as noted:
        assert attempt("rule lag_growing", work, lambda: 7) == 7
    (found,) = noted.errors
    assert found.is_excess
    assert str(found) == "rule lag_growing: too much to judge: it takes more memory than there is"
