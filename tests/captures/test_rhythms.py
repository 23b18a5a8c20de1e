"""Recordings at real rhythms are whole and small; the matrix tables are made of what was judged."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.captures import matrix, rhythms
from tests.captures.variants import joined_after, pcap_of
from tests.pipeline.analysis.rules.incidents import RHYTHMS, Recording, recordings
from tests.scenarios import programs


@pytest.mark.parametrize("recording", recordings(RHYTHMS), ids=lambda one: one.name)
def test_a_recording_is_as_long_as_its_rhythm_needs(recording: Recording) -> None:
    assert recording.seconds >= (240 if recording.period_s == 1 else 600)
    assert {client["client_id"] for client in recording.log["clients"]} >= {
        event["client_id"] for event in recording.log["events"]
    }
    assert recording.story
    assert recording.is_healthy == (not recording.expected)


@pytest.mark.parametrize("recording", recordings(RHYTHMS), ids=lambda one: one.name)
def test_what_is_ill_heals_and_falls_ill_again(recording: Recording) -> None:
    kinds = [event["kind"] for event in recording.log["events"] if event["kind"] in {"incident", "healed"}]
    ill = {e["client_id"] for e in recording.log["events"] if e["kind"] == "incident"}
    assert kinds.count("incident") == kinds.count("healed") == 2 * len(ill)
    assert bool(ill) == (not recording.is_healthy)


def test_recordings_stay_small() -> None:
    sizes = [path.stat().st_size for path in rhythms.HERE.glob("*.pcap.zst")]
    assert max(sizes) < 3_500_000
    assert sum(sizes) < 44_000_000


def test_who_comes_late_misses_the_beginning_only() -> None:
    whole = pcap_of(rhythms.HERE / "sick_commit_1s.pcap.zst")
    late = joined_after(whole, 0.5)
    assert joined_after(whole, 0) == whole
    assert whole.endswith(late[24:])
    first, late_first = (struct.unpack_from("<I", pcap, 24)[0] for pcap in (whole, late))
    assert 115 < late_first - first < 135


def test_an_unknown_name_is_wrong_use() -> None:
    with pytest.raises(SystemExit) as ended:
        rhythms.main(["no_such_scenario"])
    assert ended.value.code == 2


def test_a_recording_is_skipped_where_its_tools_are_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(rhythms, "class_path", str)
    monkeypatch.setattr("tests.scenarios.programs.go_command", lambda: None)
    programs.go_program.cache_clear()
    assert rhythms.record_all(["healthy_sarama"], 1.0, tmp_path) == []
    assert capsys.readouterr().out.startswith("healthy_sarama: skipped. Go is missing: run make setup")
    assert not list(tmp_path.iterdir())


def a_recording(name: str, *expected: tuple[str, str], **log: Any) -> Recording:
    told = {"capture_start_ms": 0, "capture_end_ms": 600_000, "scenario": name, "events": [], **log}
    return Recording(name, Path("none.pcap"), told, frozenset(expected))


def a_row(rule: str, subject: str, severity: str = "critical", enough_us: int | None = None) -> dict[str, Any]:
    details = {} if enough_us is None else {"enough_us": enough_us}
    return {
        "rule": rule,
        "subject": subject,
        "severity": severity,
        "state": "ongoing",
        "details": details,
        "summary": "",
    }


def test_what_was_not_declared_is_a_false_alarm_if_it_is_above_info() -> None:
    recording = a_recording("healthy_made")
    rows = (a_row("stopped", "a/b"), a_row("acks0_producer", "c", "info"), a_row("capture_loss", "d", "warning"))
    assert [row["rule"] for row in matrix.Judged(recording, rows).unexpected] == ["stopped", "capture_loss"]
    assert [row["rule"] for row in matrix.Judged(recording, rows, "with loss").unexpected] == ["stopped"]
    assert len(matrix.Judged(recording, rows, "joined midway").unexpected) == 2
    text = matrix.tables([matrix.Judged(recording, rows)])
    assert "0.2 hours in 1 recordings, 2 findings above info: 12.0 false alarms an hour." in text
    assert "| healthy_made | healthy_made | 10 | `capture_loss`, `stopped` | `acks0_producer` |" in text


def test_delays_count_from_the_last_begin_before_and_in_periods() -> None:
    events = [{"kind": "incident", "client_id": "g-1", "ts_ms": ms} for ms in (100_000, 400_000)]
    other = {"kind": "incident", "client_id": "h-1", "ts_ms": 439_000}
    recording = a_recording("sick_made_30s", ("stopped", "g/t"), ("stalled", "h/t-0"), events=[*events, other])
    row = a_row("stopped", "g/t", enough_us=445_000_000)
    assert matrix.delay_s(recording, row) == 45
    assert matrix.delay_s(recording, a_row("stopped", "g/t")) is None
    text = matrix.tables([matrix.Judged(recording, (row,))])
    assert "| `stopped` | sick_made_30s | 1 | 45 s | 1.5 | ongoing |" in text
    assert "| `stalled` | sick_made_30s | **not found** | | | |" in text


def test_lines_of_some_incidents_take_their_place_among_those_of_others() -> None:
    first, second = (a_recording(f"sick_{name}_30s", ("stopped", "g/t")) for name in ("a", "b"))
    row = a_row("stopped", "g/t")
    healthy = matrix.Judged(a_recording("healthy_made"), ())
    known = [healthy, matrix.Judged(first, ()), matrix.Judged(second, (row,))]
    page = f"…\n{matrix.BEGIN}\n\n{matrix.tables(known)}\n\n{matrix.END}\n…"
    new = [matrix.Judged(first, (row,))]
    assert matrix.with_lines_of(new, page) == matrix.tables([healthy, *new, matrix.Judged(second, (row,))])
    third = matrix.Judged(a_recording("sick_c_1s", ("rewound", "g/t")), (a_row("rewound", "g/t"),))
    assert matrix.with_lines_of([third], page) == matrix.tables([*known, third])
    with pytest.raises(ValueError, match="all together"):
        matrix.with_lines_of([healthy], page)


def test_the_tables_take_the_place_of_the_old_ones(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{matrix.BEGIN}\nold\n{matrix.END}\nafter\n")
    matrix.write("new", page)
    assert page.read_text() == f"before\n{matrix.BEGIN}\n\nnew\n\n{matrix.END}\nafter\n"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="no place for the matrix"):
        matrix.write("new", page)


@pytest.mark.proof
@pytest.mark.parametrize("variant", ["", *matrix.VARIANTS])
@pytest.mark.parametrize("recording", recordings(RHYTHMS), ids=lambda one: one.name)
def test_rules_fire_where_they_must_and_nowhere_else(recording: Recording, variant: str) -> None:
    one = matrix.judged(recording, variant)
    surprising = [
        row for row in one.unexpected if not variant or (row["rule"], row["subject"]) not in recording.possible
    ]
    assert [(row["rule"], row["subject"], row["summary"]) for row in surprising] == []
    assert one.missing <= recording.unknown.get(variant, frozenset())
