"""From incidents down to bytes: what each screen shows, by values, of recorded traffic."""

from __future__ import annotations

import re
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pipeline.analysis.incidents.story import lines_of
from pipeline.commands.incidents import incident_sentences
from pipeline.commands.open.message_views import bytes_view, clock_of
from pipeline.commands.open.progress_views import Event, event_rows, folded
from pipeline.commands.open.screens import Rooms
from pipeline.commands.open.source import Reading, open_source
from pipeline.commands.open.view import (
    Bytes,
    Connections,
    Messages,
    OneConnection,
    OneExchange,
    OneFinding,
    OneIncident,
    Start,
    Target,
    View,
)
from pipeline.config.settings import Settings
from pipeline.dashboard.queries.overview.incidents import incidents
from pipeline.dashboard.queries.progress.groups import Group
from pipeline.dashboard.queries.progress.partitions import Place
from pipeline.dashboard.queries.scope import UnreadableError, ask_rows
from pipeline.dashboard.queries.traffic.exchange_search import Search
from pipeline.errors import UserError
from tests.paths import CAPTURES, ROOT
from tests.pipeline.commands.open.walks import leading, opened, rows_of, shown, walk
from tests.pipeline.lakes import diagnosed_lake

AT = datetime(2026, 11, 21, 4, 46, 8, 920304, timezone.utc)


@pytest.fixture(scope="module")
def rooms() -> Rooms:
    return Rooms(opened())


def test_the_first_screen_has_what_was_read_incidents_and_groups(rooms: Rooms) -> None:
    lines = shown(rooms.view(Start()))
    assert lines[:2] == [
        "  Read 5,463 packets, 16 connections, 1,330 exchanges (1 still without an",
        "  answer), 2026-11-21 04:46:02 to 04:46:34 UTC (33 s), no packets missing.",
    ]
    assert lines[3:12] == [
        "Incidents",
        "▸ CRITICAL  since 04:46:08  billing-1 (127.0.0.1) sets group billing back to",
        "                            offset 24 of payments-2 again and again, over the",
        "                            newer commits of billing-2",
        "",
        "Groups",
        "  group    most behind  lag  behind  trouble",
        "▸ billing  payments-2   108    26 s  stuck commits",
        "",
    ]


def test_an_incident_has_the_sentences_of_the_other_commands_and_each_line_leads_to_its_exchange(rooms: Rooms) -> None:
    source = opened()
    [short] = incidents(source.connection, source.scope)
    [row] = ask_rows(source.connection, "FROM gold.incidents")
    view = rooms.view(OneIncident(short["incident_id"]))
    sentences = [cells for block in view.blocks for cells in (row.cells for row in block.rows)]
    assert [cells for cells in incident_sentences(row) if cells not in sentences] == []
    story = lines_of(row)
    assert [one.cells[1] for one in rows_of(view, "What happened")] == [line["text"] for line in story]
    assert [one.opens.exchange_id for one in rows_of(view, "What happened")] == [  # type: ignore[union-attr]
        line["exchange_id"] for line in story
    ]
    assert [row.cells[0] for row in rows_of(view, "Evidence")] == [
        "stuck_commit billing/payments-2",
        "  competing_committers billing/payments-2 because the stale offset is committed over the newer one",
        "    commit_regressed billing/payments-2 because the stale offset is committed over the newer one",
    ]
    cluster = row["cluster"]
    assert [row.opens for row in rows_of(view, "Look at")][:2] == [
        Place(cluster, "payments", 2, "billing"), Group(cluster, "billing"),
    ]  # fmt: skip


def test_the_headline_and_what_to_do_now_are_on_the_first_screen_with_what_happened_first(rooms: Rooms) -> None:
    first = shown(walk(rooms, rooms.view(Start()), "CRITICAL"))[:22]
    for text in ("CRITICAL billing-1", "now ", "fix ", "▸ 04:46:08.92  billing-1 commits payments-2 at 24"):
        assert any(text in line for line in first)


def test_the_screen_in_the_documents_is_what_is_shown(rooms: Rooms) -> None:
    lines = iter(shown(walk(rooms, rooms.view(Start()), "CRITICAL")))
    [block] = re.findall(r"```text\n(.*?)```", (ROOT / "docs" / "terminal.md").read_text(encoding="utf-8"), re.DOTALL)
    wanted = [line for line in block.splitlines() if line != "…"]
    assert len(wanted) > 12
    assert [line for line in wanted if line not in lines] == [], "in this order"


def test_a_finding_lists_its_exchanges(rooms: Rooms) -> None:
    view = walk(rooms, rooms.view(Start()), "CRITICAL", "stuck_commit billing/payments-2")
    rows = rows_of(view, "Evidence: 20 exchanges")
    assert len(rows) == 20
    assert rows[0].cells == (
        "04:46:17.471", "billing-1", "OffsetCommit v9", "815 µs", "billing payments-2 @24 gen 2 → ok",
    )  # fmt: skip
    assert isinstance(rows[0].opens, OneExchange)


def test_a_group_has_partitions_members_and_rebalances(rooms: Rooms) -> None:
    view = walk(rooms, rooms.view(Start()), "stuck commits")
    assert [row.cells for row in rows_of(view, "Partitions")] == [
        ("payments-2", "24", "132", "108", "26 s", "stuck commits"),
        ("payments-3", "114", "132", "18", "4.2 s", ""),
        ("payments-0", "132", "133", "1", "86 µs", ""),
        ("payments-1", "132", "132", "0", "0 s", ""),
    ]
    assert [row.cells[0] for row in rows_of(view, "Members")] == ["billing-1", "billing-2"]
    assert rows_of(view, "Members")[0].opens == Messages(
        Search(client_id="billing-1", group_id="billing"), "messages of billing-1"
    )
    assert rows_of(view, "Rebalances")[1].cells == (
        "04:46:06.303", "2", "2.7 s", "2 members, billing-1 continued with its work and asked late",
    )  # fmt: skip


def test_a_partition_over_time_is_in_order_and_each_commit_leads_to_its_exchange(rooms: Rooms) -> None:
    view = walk(rooms, rooms.view(Start()), "CRITICAL", "Partition payments-2")
    rows = rows_of(view, "What happened")
    assert [row.cells[0] for row in rows] == sorted(row.cells[0] for row in rows)
    at = next(number for number, row in enumerate(rows) if row.cells[0] == "04:46:08.921")
    assert [row.cells for row in rows[at : at + 5]] == [
        ("04:46:08.921", "billing-1", "commits 24"),
        ("04:46:09.019", "group billing", "rebalances to generation 2, 2 members, took 21 ms"),
        ("04:46:09.037", "billing-2", "owns it, generation 2"),
        ("04:46:09.335", "billing-1", "commits 24"),
        ("04:46:09.734", "billing-2", "commits 28"),
    ]
    lines = shown(rooms.view(rows[at].opens))  # type: ignore[arg-type]
    assert "  says      billing payments-2 @24 gen 1 → ok" in lines
    assert [row.cells for row in rows_of(view, "Who committed")] == [
        ("billing-1", "42", "0", "0", "5 to 24"), ("billing-2", "30", "0", "0", "28 to 115"),
    ]  # fmt: skip
    wanted = leading(view, "that name payments-2 and the group")
    assert wanted == Messages(Search(topic="payments", partition=2, group_id="billing"), "messages of payments-2")


def test_messages_are_the_newest_first_and_lead_to_older_ones(rooms: Rooms) -> None:
    every = Messages(Search(), "messages")
    seen: list[tuple[str, ...]] = []
    for _ in range(30):
        view = rooms.view(every)
        seen += [row.cells for block in view.blocks for row in block.rows if isinstance(row.opens, OneExchange)]
        older = [row.opens for block in view.blocks for row in block.rows if isinstance(row.opens, Messages)]
        if not older:
            break
        every = older[0]  # type: ignore[assignment]
    assert len(seen) == 1330
    assert [cells[0] for cells in seen] == sorted((cells[0] for cells in seen), reverse=True)


def test_a_search_that_finds_nothing_says_so(rooms: Rooms) -> None:
    assert shown(rooms.view(Messages(Search(topic="none"), "messages"))) == ["  No message matches."]


def test_a_connection_step_by_step_marks_what_is_looked_at(rooms: Rooms) -> None:
    view = walk(rooms, rooms.view(Start()), "CRITICAL", "billing-1 commits payments-2 at 24", "Its connection")
    rows = rows_of(view, "In order of time")
    looked_at = [row.cells[2] for row in rows if row.style == "bold"]
    assert looked_at == ["→ OffsetCommit v9 billing payments-2 @24 gen 1", "← OffsetCommit v9 ok"]
    assert any(text.startswith("  TCP: opened at 2026-11-21 04:46:02 UTC") for text in shown(view))
    later = leading(view, "Later on this connection")
    assert isinstance(later, OneConnection)
    assert rows_of(rooms.view(later), "In order of time")[-1].cells[0] > rows[-1].cells[0]


def test_all_connections_and_how_each_ended(rooms: Rooms) -> None:
    rows = rows_of(rooms.view(Connections()), "16 rows")
    assert len(rows) == 16
    assert rows[0].cells[1:3] == ("127.0.0.1:35898", "127.0.0.1:9092")
    assert {row.cells[-1] for row in rows} >= {"open", "open, request open", "closed by the client"}


def test_a_message_has_each_field_and_each_field_its_bytes(rooms: Rooms) -> None:
    view = walk(rooms, rooms.view(Start()), "CRITICAL", "billing-1 commits payments-2 at 24")
    fields = {row.cells[2].strip(): row for row in rows_of(view, "Request, 111 B: ok")}
    assert fields["groupId"].cells == ("20-27", "08 62 69 6c …", "groupId", "compact string", "'billing'")
    assert fields["groupId"].opens == Bytes("groupId", "compact string 'billing'", b"\x08billing", 20)
    assert rows_of(view, "Response, 29 B: ok")[0].cells[2:] == ("correlationId", "int32", "57")
    assert shown(rooms.view(fields["groupId"].opens)) == [
        "  field  groupId",
        "  value  compact string 'billing'",
        "  bytes  20 to 27 of the message (8 bytes)",
        "",
        "  000014  08 62 69 6c 6c 69 6e 67                          .billing",
    ]


def test_of_many_bytes_the_first_are_shown() -> None:
    lines = shown(bytes_view(Bytes("records", "records", bytes(range(256)) * 100, 7)))
    assert lines[4] == "  000007  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................"
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "  … and 9,216 more bytes"


def test_what_does_not_decode_says_where_it_stops() -> None:
    source = opened("version_negotiation.pcap")
    [row] = ask_rows(source.connection, "FROM silver.exchanges WHERE response_status = 'partial'")
    lines = shown(Rooms(source).view(OneExchange(row["exchange_id"], row["ts"])))
    assert any(re.match(r"  stopped at byte \d+", line) for line in lines)


def test_what_is_compressed_in_a_mongodb_message_is_below_it() -> None:
    source = opened("mongodb/zlib.pcap")
    found = ask_rows(source.connection, "FROM silver.exchanges ORDER BY ts")
    rooms = Rooms(source)
    titles = [block.title for row in found for block in rooms.view(OneExchange(row["exchange_id"], row["ts"])).blocks]
    assert any(title.startswith("Uncompressed, as if sent by itself") for title in titles)


def test_a_capture_without_incidents_says_so() -> None:
    lines = shown(Rooms(opened("healthy.pcap")).view(Start()))
    assert "  Nothing found that looks wrong." in lines
    assert "Groups" in lines


def test_connections_without_any_message_can_be_opened() -> None:
    rooms = Rooms(opened("connections/certificate_refused.pcap.zst"))
    view = walk(rooms, rooms.view(Start()), "All connections")
    assert shown(walk(rooms, view, "TLS alert unknown_ca by the client"))[0].startswith("  TCP: opened at 2026-11-29")
    assert rooms.view(Start()).blocks[1].rows[0].cells == ("warning: not read: 33 connections, encrypted (TLS)",)


def test_what_comes_again_in_a_row_is_one_line() -> None:
    times = [AT + timedelta(seconds=number) for number in range(4)]
    events = [Event(ts, who, "commits 24") for ts, who in zip(times, ("a", "a", "b", "a"), strict=True)]
    assert [row.cells for row in event_rows(folded(events))] == [
        ("04:46:08.920", "a", "commits 24 (2 times, until 04:46:09.920)"),
        ("04:46:10.920", "b", "commits 24"),
        ("04:46:11.920", "a", "commits 24"),
    ]


def test_times_of_several_days_have_their_day() -> None:
    assert clock_of([AT])(AT) == "04:46:08.920"
    assert clock_of([AT, AT + timedelta(days=1)])(AT) == "11-21 04:46:08.920"


@pytest.mark.parametrize(
    "target",
    [
        OneIncident("none"), OneFinding("none"), OneExchange("none", None), OneConnection("none", AT),
        Group("none", "none"), Place("none", "none", 0, "none"),
    ],
    ids=lambda target: type(target).__name__,
)  # fmt: skip
def test_what_is_not_there_is_a_sentence(rooms: Rooms, target: Target) -> None:
    lines = shown(rooms.view(target))
    assert len(lines) in (1, 2)
    assert re.search(r"no such|not in the tables|[Nn]othing was seen|No exchange is known", lines[0])


def test_a_table_that_cannot_be_read_costs_its_screen_alone(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise UnreadableError("A table is damaged.")

    monkeypatch.setattr("pipeline.dashboard.queries.traffic.connections.connections", fails)
    assert shown(rooms.view(Connections())) == ["  A table is damaged."]
    assert not rooms.errors


def test_a_fault_of_ours_costs_its_screen_alone_and_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise KeyError("secret of the payload")

    rooms = Rooms(opened())
    monkeypatch.setattr("pipeline.dashboard.queries.traffic.connections.connections", fails)
    text = " ".join(shown(rooms.view(Connections())))
    assert "screen Connections: internal error" in text
    assert "secret" not in text
    assert [error.error for error in rooms.errors] == ["KeyError"]


class TestSources:
    def test_a_lake_shows_what_its_capture_shows(self, tmp_path: Path) -> None:
        lake = diagnosed_lake(tmp_path / "lake", "stuck_commit")
        source = open_source([str(lake)], Settings(), Reading(), tmp_path)
        assert source.notes == ("Seen 2026-11-21 04:46:02 to 04:46:34 UTC, 33 s.",)
        of_lake, of_capture = Rooms(source), Rooms(opened())
        todo: list[Target] = [row.opens for row in every_row(of_capture.view(Start())) if row.opens is not None]
        kinds = set()
        for target in todo:
            view = of_capture.view(target)
            assert of_lake.view(target) == view
            kinds.add(type(target))
            if len(todo) < 60:
                todo += [row.opens for row in every_row(view) if row.opens is not None and row.opens not in todo][:8]
        assert len(kinds) == 9
        assert not of_lake.errors

    def test_a_lake_that_is_damaged_shows_the_rest(self, tmp_path: Path) -> None:
        lake = diagnosed_lake(tmp_path / "lake", "stuck_commit")
        shutil.rmtree(lake / "silver" / "connections" / "_delta_log")
        rooms = Rooms(open_source([str(lake)], Settings(), Reading(), tmp_path))
        assert any("CRITICAL" in line for line in shown(rooms.view(Start())))
        assert shown(rooms.view(Connections())) == ["  This lake has no table of that yet."]

    @pytest.mark.parametrize("name", ["none.pcap", "empty"])
    def test_what_cannot_be_read_is_refused(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "empty").mkdir()
        with pytest.raises(UserError):
            open_source([str(tmp_path / name)], Settings(), Reading(), tmp_path)

    def test_a_lake_is_opened_alone(self, tmp_path: Path) -> None:
        lake = diagnosed_lake(tmp_path / "lake", "stuck_commit")
        with pytest.raises(UserError, match="name it alone"):
            open_source([str(lake), str(CAPTURES / "healthy.pcap")], Settings(), Reading(), tmp_path)


def every_row(view: View) -> list:  # type: ignore[type-arg]
    return [row for block in view.blocks for row in block.rows]
