"""``wirelake register``: makes a lake's tables and views known to the catalog of another engine."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from pipeline.bi.catalog import Engine, absolute, statements, tables_in
from pipeline.commands.lake import spark_session, steps
from pipeline.config.common_options import Conf, required
from pipeline.config.settings import Settings, load_settings
from pipeline.errors import UserError
from pipeline.humanize import pluralize
from pipeline.terminal.console import Console

_METASTORE = ("hive.metastore.uris", "javax.jdo.option.ConnectionURL")
_CONF_FOLDERS = ("SPARK_CONF_DIR", "HIVE_CONF_DIR", "HADOOP_CONF_DIR")
_PREFIX = re.compile(r"[a-z][a-z0-9_]{0,63}")


def register(
    lake: Annotated[str | None, typer.Option(help="The lake's folder or URL.")] = None,
    engine: Annotated[
        Engine | None,
        typer.Option("--print", metavar="ENGINE", help="Only print the SQL, for spark, duckdb or trino."),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="Goes before the schemas' names (bronze, silver, gold, ops, views), as acme_ does.")
    ] = "",
    conf: Conf = None,
) -> None:
    """Put a lake's tables, views and comments into a catalog.

    Tables keep their files where they are: the catalog learns names, places and what columns mean. It may be run again;
    tables and columns that are new are added.

    Without --print it needs Spark, and a Hive metastore that the settings name under `spark:`, as
    `spark.hadoop.hive.metastore.uris`. With --print it prints SQL to run elsewhere: in Spark SQL, Databricks or EMR, in
    DuckDB (which installs its extension `delta`), or in Trino, where the current catalog is one of the Delta Lake
    connector; Trino gets the tables without views, whose functions it lacks.

    The exit code is 2 if there is no lake, a table of that name is elsewhere, no metastore is named, or this machine
    lacks what Spark needs.

    Examples:

      wirelake register --lake /data/lake --print duckdb | duckdb lake.duckdb

      wirelake register --lake s3a://bucket/lake --conf conf/cluster.yaml --prefix wirelake_

      wirelake register --lake s3://bucket/lake --print trino > lake.sql
    """
    settings = load_settings(conf, lake=lake)
    if prefix and not _PREFIX.fullmatch(prefix):
        raise UserError(
            f"--prefix {prefix!r}: use small letters, digits and _, beginning with a letter, e.g. wirelake_"
        )
    place = absolute(required(settings, "lake"))
    tables = tables_in(place)
    if engine is not None:
        for statement in statements(engine, place, tables, prefix):
            typer.echo(f"{statement};")
        return
    settings = _with_metastore(settings)
    with spark_session("wirelake register", settings) as spark, steps() as report:
        from pipeline.streaming.operations.catalog import register as put  # noqa: PLC0415 - loads Spark

        report(f"registering {pluralize(len(tables), 'table')}")
        known, seen = put(spark, place, tables, prefix)
    words = f"{pluralize(known, 'table')} and {pluralize(seen, 'view')} of {place} are in the catalog."
    Console().print(Text(words), soft_wrap=True)


def _with_metastore(settings: Settings) -> Settings:
    """The settings, with Spark's catalog in the metastore that they or a hive-site.xml name."""
    is_set = any(name.endswith(_METASTORE) for name in settings.spark)
    folders = [Path(folder) for name in _CONF_FOLDERS if (folder := os.environ.get(name))]
    if not is_set and not any((folder / "hive-site.xml").is_file() for folder in folders):
        raise UserError(
            "name the Hive metastore, e.g. `spark: {spark.hadoop.hive.metastore.uris: 'thrift://host:9083'}` in the "
            "file given by --conf; or print the SQL, to run it where the catalog is: --print spark"
        )
    return settings.model_copy(update={"spark": {**settings.spark, "spark.sql.catalogImplementation": "hive"}})
