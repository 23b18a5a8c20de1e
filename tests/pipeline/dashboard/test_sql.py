"""SQL without a JVM: what it answers, what it refuses, and how it prints."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pipeline.commands.sql.sql import sql
from pipeline.config.settings import SqlSettings
from pipeline.dashboard.query_sandbox.ask import TooSlowError, ask
from pipeline.dashboard.sql import query
from pipeline.errors import UserError
from pipeline.tables import EXCHANGES, OFFSET_TIMELINE, TABLES

LIMITS = SqlSettings()

app = typer.Typer()
app.command()(sql)


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    if done.exception:
        raise done.exception
    return done.stdout


def test_values_survive_not_only_counts(hand_made_lake: Path) -> None:
    table = query(hand_made_lake, "SELECT exchange_id, ts, error_names FROM silver.exchanges WHERE exchange_id = 'c1'")
    assert [str(f.type) for f in table.schema] == ["string", "timestamp[us, tz=UTC]", "list<l: string>"]
    assert table.to_pylist()[0]["error_names"] == ["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_can_be_read(hand_made_lake: Path, name: str) -> None:
    assert query(hand_made_lake, f"FROM {name}").schema.names == list(TABLES[name].column_names)


def test_json_is_one_object_a_row(hand_made_lake: Path) -> None:
    out = run("SELECT client_id, ts, sum(latency_us) AS s, error_codes FROM silver.exchanges "
              "WHERE exchange_id = 'c1' GROUP BY ALL", "--lake", str(hand_made_lake), "--json")  # fmt: skip
    assert json.loads(out) == {
        "client_id": "=cmd()",
        "ts": "2026-03-01T12:00:01Z",
        "s": 700,
        "error_codes": [22, 25],
    }


def test_a_line_a_column(hand_made_lake: Path) -> None:
    query = "SELECT client_id, ts, NULL AS nothing FROM silver.exchanges WHERE exchange_id >= 'c1'"
    out = run(f"{query} ORDER BY exchange_id LIMIT 2", "--lake", str(hand_made_lake), "--format", "line")
    first, second = out.split("-- row 2\n")
    assert first.splitlines() == [
        "-- row 1", "client_id  =cmd()", "ts         2026-03-01 12:00:01", "nothing    NULL",
    ]  # fmt: skip
    assert len(second.splitlines()) == 3


def test_csv_does_not_carry_formulas(hand_made_lake: Path) -> None:
    out = run(
        "SELECT client_id, -1 AS n, client_id AS client_id, NULL AS nothing, error_codes "
        "FROM silver.exchanges WHERE exchange_id = 'c1'",
        "--lake", str(hand_made_lake), "--csv",
    )  # fmt: skip
    assert out == "client_id,n,client_id_2,nothing,error_codes\n'=cmd(),-1,'=cmd(),,\"[22,25]\"\n"


def test_a_table_is_cut_and_marked_so(hand_made_lake: Path) -> None:
    out = run("SELECT range AS n FROM range(1000)", "--lake", str(hand_made_lake))
    assert all(f"│ {number:>6} │" in out for number in (0, 19, 980, 999))
    assert not any(f" {number} " in out for number in (20, 979))
    assert "1,000 rows (40 shown: --rows N, or --format csv for all)" in out


def test_the_wire_does_not_steer_the_terminal(hand_made_lake: Path) -> None:
    out = run("SELECT 'a' || chr(27) || '[2Jb [red]c' AS x", "--lake", str(hand_made_lake))
    assert "\x1b[2J" not in out
    assert "a\\x1b[2Jb [red]c" in out


def test_tables_are_listed_without_a_lake() -> None:
    out = run("--tables")
    assert all(name in out for name in (*TABLES, "consumer_lag"))
    listed = [json.loads(line) for line in run("--tables", "--json").splitlines()]
    assert [o["name"] for o in listed if o["kind"] == "table"] == list(TABLES)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM silver.exchanges",
        "COPY silver.exchanges TO '/tmp/out.csv'",
        "ATTACH '/tmp/other.db'",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "",
    ],
)
def test_only_one_query_is_taken(hand_made_lake: Path, statement: str) -> None:
    with pytest.raises(UserError, match="give one query"):
        query(hand_made_lake, statement)


def test_a_query_reads_the_lake_only(hand_made_lake: Path) -> None:
    with pytest.raises(UserError, match="the function read_text is not for queries"):
        query(hand_made_lake, "FROM read_text('/etc/hostname')")


def test_the_first_rows_come_a_few_at_a_time(hand_made_lake: Path) -> None:
    batches = ask(hand_made_lake, "SELECT repeat('x', 100000) FROM range(1000)", LIMITS, seconds=30, most=100, batch=16)
    assert [next(batches).num_rows for _ in range(2)] == [0, 16]
    batches.close()
    rows = ask(hand_made_lake, "FROM range(1000)", LIMITS, seconds=30, most=100, batch=16)
    assert sum(batch.num_rows for batch in rows) == 100


@pytest.mark.slow
def test_rows_stop_coming_when_the_time_is_over(hand_made_lake: Path) -> None:
    with pytest.raises(TooSlowError):  # noqa: PT012 - it comes with one of the batches
        for _ in ask(hand_made_lake, "FROM range(100000000)", LIMITS, seconds=1.5):
            time.sleep(0.1)


def test_an_answer_without_rows_has_columns(hand_made_lake: Path) -> None:
    (batch,) = ask(hand_made_lake, "SELECT 1 AS a WHERE false", LIMITS, seconds=30)
    assert (batch.schema.names, batch.num_rows) == (["a"], 0)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT CASE WHEN range < 900000 THEN 1 ELSE error('no more') END FROM range(1000000)", "no more"),
        ("SELECT TIMESTAMPTZ 'infinity'", "cast it to VARCHAR"),
    ],
)
def test_the_command_reports_an_error_while_rows_come(hand_made_lake: Path, sql: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        run(sql, "--lake", str(hand_made_lake), "--csv")


def test_an_error_names_tables_and_views(hand_made_lake: Path) -> None:
    with pytest.raises(UserError) as caught:
        query(hand_made_lake, "FROM silver.exchange")
    assert "silver.exchanges" in str(caught.value)
    assert "views: breaking_clients, consumer_lag, errors" in str(caught.value)
    assert "delta_silver" not in str(caught.value)


def test_no_lake_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no lake at"):
        run("SELECT 1", "--lake", str(tmp_path))


def test_a_young_lake_has_the_views_whose_tables_are_there(hand_made_lake: Path, tmp_path: Path) -> None:
    shutil.copytree(hand_made_lake / EXCHANGES.path, tmp_path / EXCHANGES.path)
    assert query(tmp_path, "FROM latency").num_rows == 2
    with pytest.raises(UserError, match=r"views: errors, latency$"):
        query(tmp_path, f"FROM {OFFSET_TIMELINE.full_name}")


@pytest.mark.slow
def test_a_query_that_takes_too_long_or_too_much_names_what_to_give(hand_made_lake: Path) -> None:
    with pytest.raises(UserError, match=r"^stopped after 1 seconds\. Ask for less .*--timeout SECONDS"):
        run("SELECT sleep_ms(60000)", "--lake", str(hand_made_lake), "--timeout", "1")
    with pytest.raises(UserError, match=r"^stopped: the query needs more than 64 MiB of memory .*--memory MIB"):
        run("SELECT list(range) FROM range(100000000)", "--lake", str(hand_made_lake), "--memory", "64")


@pytest.mark.slow
def test_the_settings_limit_how_much(hand_made_lake: Path, tmp_path: Path) -> None:
    conf = tmp_path / "settings.yaml"
    lake = ("--lake", str(hand_made_lake), "--conf", str(conf))
    conf.write_text("sql: {command_seconds: 1}", encoding="utf-8")
    with pytest.raises(UserError, match="stopped after 1 seconds"):
        run("SELECT sleep_ms(60000)", *lake)
    conf.write_text("sql: {temp_mb: 0, memory_mb: 64}", encoding="utf-8")
    with pytest.raises(UserError, match=r"needs more than 64 MiB of memory\. Ask"):
        run("SELECT list(range) FROM range(100000000)", *lake)


@pytest.mark.parametrize("arguments", [["SELECT 1"], ["--lake", "x"], ["SELECT 1", "--lake", "x", "--json", "--csv"]])
def test_wrong_use_names_what_to_give(arguments: list[str]) -> None:
    with pytest.raises(UserError, match="give "):
        run(*arguments)
