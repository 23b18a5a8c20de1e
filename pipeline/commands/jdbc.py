"""``wirelake jdbc``: serves a lake's tables and views to JDBC and ODBC clients, by Spark's Thrift server."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from pipeline.bi.catalog import VIEWS, absolute, tables_in
from pipeline.commands.lake import needs_spark, spark_session, steps
from pipeline.config.common_options import Conf, required
from pipeline.config.settings import load_settings
from pipeline.config.tokens import checked_token, new_token, read_token
from pipeline.terminal.console import Console

TOKEN = "WIRELAKE_JDBC_TOKEN"  # noqa: S105 - the name of a variable
USER = "wirelake"


def jdbc(
    lake: Annotated[str | None, typer.Option(help="The lake's folder or URL.")] = None,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; by default this machine alone can reach it. Nothing is encrypted."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="TCP port to listen on.")] = 10000,
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"File with the token that clients give as password; or put it into {TOKEN}."),
    ] = None,
    conf: Conf = None,
) -> None:
    """Serve a lake's tables and views by JDBC.

    This is Spark's Thrift server: beeline, DBeaver, Tableau, Superset and Python's PyHive connect to it by
    HiveServer2's protocol and query in Spark SQL. Tables appear as views, so that no one writes to them by mistake.
    Wirelake's own views are in the schema `views`.

    Whoever has the token can do in Spark what this user can, which is more than reading the lake. Run it as a user who
    may only read the lake, and keep the token to people who may read it. Without --token-file and WIRELAKE_JDBC_TOKEN
    it generates a token and prints it. Ctrl-C or SIGTERM ends it.

    The exit code is 2 if there is no lake, it cannot listen there, or this machine lacks what Spark needs.

    Examples:

      wirelake jdbc --lake lake

      beeline -u jdbc:hive2://127.0.0.1:10000/views -n wirelake -p TOKEN -e "SELECT * FROM consumer_lag"

      wirelake jdbc --lake lake --port 10001 --token-file /etc/wirelake/jdbc-token
    """
    settings = load_settings(conf, lake=lake)
    place = absolute(required(settings, "lake"))
    given = os.environ.pop(TOKEN, None) if token_file is None else read_token(token_file)
    token = new_token() if given is None else checked_token(given, str(token_file or TOKEN))
    tables = tables_in(place)
    with needs_spark():
        from pipeline.streaming.operations.catalog import demand_free, server_conf, serving  # noqa: PLC0415 - loads Spark
    demand_free(host, port)
    settings = settings.model_copy(update={"spark": {**settings.spark, **server_conf(host, port)}})
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with spark_session("wirelake jdbc", settings) as spark, ExitStack() as served:
        with steps() as report:
            report("naming tables and views")
            served.enter_context(serving(spark, place, tables, token))
        console = Console(stderr=True)
        console.print(Text(f"JDBC: jdbc:hive2://{host}:{port}/{VIEWS}, user {USER} (Ctrl-C ends it)"), soft_wrap=True)
        if given is None:
            console.print(Text(f"Password, shown once: {token}"), soft_wrap=True)
        ended.wait()
