"""What all tests share: one Spark session, because each start costs ten seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.requirements import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
