"""What all tests share: one Spark session, because each start costs ten seconds; and how they run side by side.

With ``-n 2`` (``make test``) one process runs all that needs Spark, one after the other, the other process the rest.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.requirements import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

if not hasattr(sys.modules["__main__"], "__file__"):
    # pyspark takes the main module of pytest-xdist's workers, which has no file, for a doctest, and ends the process.
    sys.modules["__main__"].__file__ = __file__


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The session of the whole run. The quick compiler only: no test runs long enough for the slow one to pay."""
    require_java()
    from pipeline.streaming.session import build_session  # noqa: PLC0415 - loads Spark

    return build_session(
        "wirelake-tests",
        extra_conf={
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )


_MADE_BY_SPARK = {"spark", "demo", "demo_lake"}


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep what needs Spark in one process, started first, and each other module whole."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group("spark" if _needs_spark(item) else item.nodeid.split("::")[0]))
    items.sort(key=lambda item: not _needs_spark(item))


def _needs_spark(item: pytest.Item) -> bool:
    fixtures: list[str] = getattr(item, "fixturenames", [])
    return item.get_closest_marker("spark") is not None or not _MADE_BY_SPARK.isdisjoint(fixtures)
