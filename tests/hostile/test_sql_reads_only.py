"""Texts that want more of the lake than to read it; each is refused, and the views stay what they are."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from pipeline.dashboard.read_only import REFUSED_FUNCTIONS
from pipeline.dashboard.sql import query
from pipeline.errors import UserError
from pipeline.tables import FINDINGS
from tests.pipeline.rows import row, write

_HARMLESS = {
    "current_connection_id", "current_query", "current_query_id", "current_transaction_id", "error", "gen_random_uuid",
    "random", "sleep_ms", "stats", "uuid", "uuidv4", "uuidv7", "vector_type",
}  # fmt: skip
"""Functions that DuckDB lists as having side effects, and that change nothing."""

_ATTACKS = (
    "EXPLAIN ANALYZE CREATE OR REPLACE VIEW latency AS SELECT 1",
    "EXPLAIN ANALYZE DROP VIEW gold.findings",
    "/* ä */ explain /* x */ analyze -- y\n DROP VIEW gold.findings",
    "EXPLAIN (ANALYZE) DROP VIEW gold.findings",
    "EXPLAIN (ANALYZE, FORMAT json) SELECT 1",
    "EXPLAIN DROP VIEW gold.findings",
    "WITH x AS (DELETE FROM gold.findings RETURNING *) FROM x",
    "EXPLAIN ANALYZE WITH x AS (DELETE FROM gold.findings RETURNING *) FROM x",
    "WITH x AS (INSERT INTO gold.findings BY NAME SELECT 'x' AS rule RETURNING *) FROM x",
    "SELECT 1; DROP VIEW gold.findings",
    "DROP VIEW gold.findings",
    "INSERT INTO gold.findings VALUES (1)",
    "MERGE INTO gold.findings USING gold.findings f ON true WHEN MATCHED THEN DELETE",
    "COPY gold.findings TO '/tmp/out.csv'",
    "EXPORT DATABASE '/tmp/out'",
    "ATTACH '/tmp/other.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '100GB'",
    "RESET lock_configuration",
    "USE memory",
    "PREPARE p AS DROP VIEW gold.findings",
    "EXECUTE p",
    "CALL enable_logging()",
    "PRAGMA enable_profiling",
    "CHECKPOINT",
    "VACUUM",
    "FROM query('DROP VIEW gold.findings')",
    "FROM query('FROM enable_logging()')",
    "FROM system.main.query('SELECT 1')",
    "FROM query_table('gold.findings')",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 42'))",
    "SELECT json_serialize_plan('FROM enable_logging()')",
    "FROM enable_logging(storage := 'file', storage_path := '/tmp/x')",  # ended the whole process with DuckDB 1.5
    "FROM enable_profiling(save_location := '/tmp/x.json', format := 'json')",
    "FROM disable_logging()",
    "FROM truncate_duckdb_logs()",
    "FROM checkpoint()",
    "FROM force_checkpoint()",
    "FROM duckdb_logs()",
    "FROM duckdb_secrets()",
    "FROM duckdb_settings()",
    "FROM which_secret('s3://x', 's3')",
    "FROM glob('/etc/*')",
    "FROM read_text('/etc/hostname')",
    "FROM read_blob('/etc/hostname')",
    "FROM read_csv('/etc/passwd')",
    "FROM sniff_csv('/etc/passwd')",
    "FROM parquet_metadata('/etc/hostname')",
    "FROM '/etc/passwd'",
    "FROM 'http://127.0.0.1:9/x.parquet'",
    "FROM arrow_scan(1, 1, 1)",
    "FROM pandas_scan(1)",
    "FROM seq_scan('gold.findings')",
    "SELECT write_log('x')",
    "SELECT (SELECT \"WRITE_LOG\"('x'))",
    "SELECT system.main.write_log('x')",
    "SELECT setseed(0.5)",
    "SELECT nextval('s')",
    "SELECT getenv('HOME')",
    "SELECT * FROM _spill",  # a name of this program
    "SELECT " + "+".join(["1"] * 900),
    "SELECT '" + "x" * 100_000 + "'",
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lake")
    write(place, FINDINGS, [row(FINDINGS, finding_id="1")])
    return place


@pytest.mark.parametrize("sql", _ATTACKS, ids=lambda sql: sql[:60])
def test_what_does_more_than_read_is_refused(lake: Path, sql: str) -> None:
    with pytest.raises(UserError):
        query(lake, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM gold.findings",
        'SELECT finding_id FROM "GOLD"."Findings"',
        "WITH x AS (FROM gold.findings) FROM x UNION ALL FROM x",
        "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 3) FROM r",
        "EXPLAIN FROM gold.findings",
        "/* ä */ EXPLAIN /* x */ ANALYZE -- y\n FROM gold.findings",
        "DESCRIBE gold.findings",
        "SUMMARIZE gold.findings",
        "SHOW ALL TABLES",
        "FROM duckdb_views() WHERE view_name = 'findings'",
        "VALUES (random())",
        "SELECT row_number() OVER (), f.* FROM gold.findings f JOIN range(3) r ON true QUALIFY true",
        "FROM (SELECT finding_id, 1 AS n FROM gold.findings) PIVOT (sum(n) FOR finding_id IN ('1'))",
        "FROM gold.findings;",
    ],
)
def test_what_only_reads_is_answered(lake: Path, sql: str) -> None:
    assert query(lake, sql).num_rows > 0


def test_each_function_with_side_effects_is_refused_or_known() -> None:
    with duckdb.connect() as connection:
        named = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE has_side_effects"
        effects = {name for (name,) in connection.execute(named).fetchall()}
    assert effects - REFUSED_FUNCTIONS - _HARMLESS == set()
