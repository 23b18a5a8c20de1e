"""Objects by Hadoop's file systems: made once, whoever tries."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.streaming.spark.hadoop_objects import HadoopObjects

pytestmark = pytest.mark.spark


def test_an_object_is_made_once_and_changed_by_whoever_may(spark: SparkSession, tmp_path: Path) -> None:
    objects = HadoopObjects(spark, f"file://{tmp_path}/deep/folder")
    assert objects.names() == []
    assert objects.read("one") is None
    assert objects.create("one", b"\x00first\xff")
    assert not objects.create("one", b"second")
    assert objects.read("one") == b"\x00first\xff"
    objects.replace("one", b"")
    assert objects.read("one") == b""
    assert objects.create("two", b"2")
    assert sorted(objects.names()) == ["one", "two"]
    objects.remove("one")
    objects.remove("one")
    assert objects.names() == ["two"]


def test_what_is_refused_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    objects = HadoopObjects(spark, f"file://{tmp_path}/file/folder")
    with pytest.raises(OSError, match="folder/one cannot be written: ") as refused:
        objects.create("one", b"1")
    assert "\n" not in str(refused.value)
    with pytest.raises(OSError, match=r"cannot reach .*No FileSystem for scheme"):
        HadoopObjects(spark, "nowhere://bucket/folder").names()
