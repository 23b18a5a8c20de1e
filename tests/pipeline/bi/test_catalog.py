"""What `wirelake register` prints makes a lake's tables and views known to DuckDB; other engines get their own SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from pipeline.bi.catalog import VIEWS, Engine, read_only_statements, statements, tables_in, views_over
from pipeline.bi.panels import Panel, panels
from pipeline.cli import app
from pipeline.dashboard.sql import query
from pipeline.dashboard.views import View, views
from pipeline.tables import EXCHANGES, FINDINGS, OFFSET_TIMELINE, TABLES

LAKE = "/data/a lake/o'brien"
_SCAN = re.compile(r"delta_scan\('([^']+)'\)")


@pytest.fixture(scope="module")
def registered(samples: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB that ran the statements. Its extension `delta` cannot be had here: our own reader stands in for it."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")

        def rows(scan: re.Match[str]) -> str:
            name = Path(scan[1]).relative_to(samples).as_posix().replace("/", ".")
            source = f"rows_of_{name.replace('.', '_')}"
            connection.register(source, query(samples, f"FROM {name}"))
            return source

        for _ in range(2):  # they may be run again
            for statement in statements(Engine.DUCKDB, str(samples), tables_in(str(samples))):
                if not statement.endswith(" delta"):
                    connection.execute(_SCAN.sub(rows, statement))
        connection.execute(f"USE {VIEWS}")
        yield connection


@pytest.mark.parametrize("view", views(), ids=lambda view: view.name)
def test_views_answer_there_as_here(registered: duckdb.DuckDBPyConnection, samples: Path, view: View) -> None:
    there = registered.execute(f"FROM {view.name}")
    here = query(samples, f"FROM {view.name}")
    assert [column[0] for column in there.description or ()] == here.schema.names
    assert len(there.fetchall()) == here.num_rows


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel.name)
def test_panels_answer_there_as_here(registered: duckdb.DuckDBPyConnection, samples: Path, panel: Panel) -> None:
    there = registered.execute(panel.sql).fetchall()
    assert there
    assert len(there) == query(samples, panel.sql).num_rows


def test_comments_are_those_of_the_tables(registered: duckdb.DuckDBPyConnection) -> None:
    columns = registered.execute(
        "SELECT column_name, comment FROM duckdb_columns() WHERE schema_name = 'gold' AND table_name = 'findings'"
    ).fetchall()
    assert dict(columns) == {column.name: column.comment for column in FINDINGS.columns}
    (comment,) = (
        registered.execute("SELECT comment FROM duckdb_views() WHERE view_name = 'consumer_lag'").fetchone() or ()
    )
    assert comment.startswith("How far behind is each consumer group now")


@pytest.mark.parametrize("engine", Engine)
def test_a_prefix_is_before_every_schema(engine: Engine) -> None:
    made = "\n".join(statements(engine, "s3://bucket/lake", TABLES.values(), "acme_"))
    without_texts = re.sub(r"'(?:\\.|''|[^'])*'", "''", made)
    assert not re.findall(r"\b(?:bronze|silver|gold|ops|views)\.\w", without_texts)
    assert "acme_gold" in made
    assert ("acme_views.consumer_lag" in made) is (engine is not Engine.TRINO)


@pytest.mark.parametrize("engine", Engine)
def test_places_are_text_whatever_they_contain(engine: Engine) -> None:
    made = list(statements(engine, LAKE, [FINDINGS]))
    escaped = r"o\'brien" if engine is Engine.SPARK else "o''brien"
    assert any(f"'/data/a lake/{escaped}/gold/findings'" in one for one in made)


@pytest.mark.parametrize("engine", Engine)
def test_each_engine_has_its_own_name_for_s3(engine: Engine) -> None:
    made = "\n".join(statements(engine, "s3://bucket/lake?region=eu-west-1", [FINDINGS]))
    assert f"'{'s3a' if engine is Engine.SPARK else 's3'}://bucket/lake/gold/findings'" in made
    assert "region" not in made


def test_a_lake_without_a_table_has_no_view_of_it() -> None:
    names = {view.name for view in views_over([OFFSET_TIMELINE])}
    assert names == {"consumer_lag", "stuck_partitions"}
    assert "errors" in {view.name for view in views_over([EXCHANGES])}


def test_tables_of_the_server_are_views_that_nobody_writes_to() -> None:
    made = list(read_only_statements("/data/lake", TABLES.values()))
    assert not [one for one in made if one.startswith("CREATE TABLE")]
    (findings,) = [one for one in made if one.startswith("CREATE OR REPLACE VIEW gold.findings ")]
    assert "`rule` COMMENT 'Name of the rule'" in findings
    assert findings.endswith("FROM delta.`/data/lake/gold/findings`")


def test_the_command_prints_statements(samples: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["register", "--lake", str(samples), "--print", "spark"])
    assert done.exit_code == 0
    assert f"CREATE TABLE IF NOT EXISTS gold.findings USING delta LOCATION '{samples}/gold/findings';" in done.stdout
    assert not re.search(r"^\s*--", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lake", "nowhere", "--print", "duckdb"], "there is no lake at"),
        (["--lake", "{lake}", "--print", "duckdb", "--prefix", "a-b"], "use small letters"),
        (["--lake", "{lake}"], "name the Hive metastore"),
    ],
)
def test_wrong_use_is_a_sentence(samples: Path, options: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_CONF_DIR", "HIVE_CONF_DIR", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(app, ["register", *(option.format(lake=samples) for option in options)])
    assert said in str(done.exception)
