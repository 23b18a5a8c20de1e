"""Puts a lake into Spark's catalog, and serves it by JDBC: Spark's own Thrift server in this process."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from pipeline.bi.catalog import VIEWS, Engine, read_only_statements, statements
from pipeline.errors import UserError
from pipeline.streaming.spark.compiled_java import compiled
from pipeline.streaming.spark.object_stores import connect
from pipeline.streaming.storage.lake import Lake
from pipeline.tables import Table

_MOST_STARTING_S = 120
_LOGIN_CLASS = "wirelake.Login"
_LOGIN = """
package wirelake;
public final class Login implements org.apache.hive.service.auth.PasswdAuthenticationProvider {
  public void Authenticate(String user, String password) throws javax.security.sasl.AuthenticationException {
    byte[] wanted = System.getProperty("wirelake.jdbc.token").getBytes(java.nio.charset.StandardCharsets.UTF_8);
    byte[] given = String.valueOf(password).getBytes(java.nio.charset.StandardCharsets.UTF_8);
    if (!java.security.MessageDigest.isEqual(wanted, given))
      throw new javax.security.sasl.AuthenticationException("the password is not the token of this server");
  }
}
"""
"""What Spark's server asks about each login."""


def register(spark: SparkSession, lake: str, tables: tuple[Table, ...], prefix: str) -> tuple[int, int]:
    """Put tables and views into the session's catalog; what is there already is brought up to date.

    Args:
        spark: its catalog is the one that others ask.
        lake: its folder (absolute) or URL.
        tables: those that it has.
        prefix: before each schema's name.

    Returns:
        How many tables and views the catalog has of it now.

    Raises:
        UserError: a table of that name is there and lies somewhere else; nothing was changed.
    """
    connect(spark, lake)
    root = Lake.at(lake).root
    for table in tables:
        name, place = f"{prefix}{table.full_name}", f"{root}/{table.path}"
        if not spark.catalog.databaseExists(f"{prefix}{table.schema}") or not spark.catalog.tableExists(name):
            continue
        (found,) = spark.sql(f"DESCRIBE DETAIL {name}").select("location").collect()
        if _plain(found.location) != _plain(place):
            raise UserError(
                f"the catalog has a table {name} already, in {found.location}: choose other names with --prefix, or "
                f"DROP TABLE {name} there first"
            )
    made = list(statements(Engine.SPARK, lake, tables, prefix))
    for statement in made:
        spark.sql(statement)
    return len(tables), sum(statement.startswith("CREATE OR REPLACE VIEW") for statement in made)


def _plain(place: str) -> str:
    """A place without what only one way of writing it has: ``file:`` before a path, escapes, a slash at its end."""
    parts = urlsplit(place)
    return unquote(parts.path).rstrip("/") if parts.scheme in ("", "file") else place.rstrip("/")


def server_conf(host: str, port: int) -> dict[str, str]:
    """Spark settings without which :func:`serving` does not listen there, nor ask for a login."""
    return {
        "spark.hadoop.hive.server2.thrift.bind.host": host,
        "spark.hadoop.hive.server2.thrift.port": str(port),
        "spark.hadoop.hive.server2.authentication": "CUSTOM",
        "spark.sql.catalogImplementation": "in-memory",  # nothing is left behind
    }


@contextmanager
def serving(spark: SparkSession, lake: str, tables: tuple[Table, ...], token: str) -> Iterator[None]:
    """Serve a lake's tables and views to JDBC clients that know the token; tables are views, which no one writes to.

    Args:
        spark: a session with :func:`server_conf`.
        lake: its folder (absolute) or URL.
        tables: those that it has.
        token: the password of every user.

    Raises:
        UserError: the server does not start.
    """
    connect(spark, lake)
    for statement in read_only_statements(lake, tables):
        spark.sql(statement)
    spark.catalog.setCurrentDatabase(VIEWS)
    jvm = spark._jvm
    jvm.System.setProperty("hive.server2.custom.authentication.class", _LOGIN_CLASS)
    jvm.System.setProperty("wirelake.jdbc.token", token)
    try:
        _add_login(spark)
        server = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2.startWithContext(
            spark._jsparkSession.sqlContext()
        )
    except Py4JJavaError as error:
        raise UserError(f"cannot serve JDBC: {_cause(error)}") from error
    try:
        _wait_until_it_listens(spark)
        yield
    finally:
        server.stop()


def _add_login(spark: SparkSession) -> None:
    """Give the class to Spark's own loader: a thread that has answered a query looks for the next login there."""
    jvm, loader = spark._jvm, spark._jsparkSession.sharedState().jarClassLoader()
    code = compiled(jvm, loader, _LOGIN).getBytecodes()[_LOGIN_CLASS]
    with TemporaryDirectory(prefix="wirelake-jdbc-") as folder:
        file = Path(folder, *_LOGIN_CLASS.split(".")).with_suffix(".class")
        file.parent.mkdir()
        file.write_bytes(code)
        loader.addURL(jvm.java.io.File(folder).toURI().toURL())
        jvm.java.lang.Class.forName(_LOGIN_CLASS, True, loader)  # a class that is loaded needs its file no more
    jvm.Thread.currentThread().setContextClassLoader(loader)  # the server's threads inherit it


def _wait_until_it_listens(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    host, port = (conf.get(f"spark.hadoop.hive.server2.thrift.{name}") for name in ("bind.host", "port"))
    deadline = time.monotonic() + _MOST_STARTING_S
    while True:
        try:
            socket.create_connection((host, int(str(port))), timeout=1).close()
        except OSError as error:
            if time.monotonic() > deadline:
                raise UserError(f"cannot serve JDBC: Spark's server does not listen on {host}:{port}") from error
            time.sleep(0.2)
        else:
            return


def demand_free(host: str, port: int) -> None:
    """Look whether a server can listen there; Spark's would end the process without a reason.

    Raises:
        UserError: it cannot.
    """
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror or error}. Choose another --port") from error


def _cause(error: Py4JJavaError) -> str:
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getMessage() or cause.toString())
