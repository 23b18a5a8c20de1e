"""Should a body be stored as JSON text or as VARIANT? Writing, size and reading of the same bodies in Spark and Delta.

Three ways: text as the kernel writes it, read with ``get_json_object``; VARIANT parsed by Spark on the way in; VARIANT
whose binary form Python hands over ready made (its making is not timed: the most that a kernel could save).
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from rich.table import Table

from benchmarks.candidates import CONSOLE
from benchmarks.corpus import samples
from decoder import Codec

COPIES = 14
ROUNDS = 3
_NUMBER = re.compile(r'(?<=":)\d{3,}(?=[,}])')


def main() -> None:
    """A table of the ways, and what a query of one field and of an array costs with each."""
    from pipeline.streaming.spark.session import build_session  # noqa: PLC0415  loads Spark

    spark = build_session("wirelake-benchmark")
    folder = Path(tempfile.mkdtemp())
    try:
        _compare(spark, folder)
    finally:
        spark.stop()
        shutil.rmtree(folder)


def _compare(spark: Any, folder: Path) -> None:
    import pandas as pd  # noqa: PLC0415
    from pyspark.sql.types import VariantVal  # noqa: PLC0415

    source = spark.createDataFrame(pd.DataFrame({"body": _bodies()})).repartition(2).cache()
    rows = source.count()
    parsed = source.selectExpr("body", "parse_json(body) AS v")
    binary = parsed.rdd.map(lambda row: (bytearray(row.v.value), bytearray(row.v.metadata)))
    ready = spark.createDataFrame(binary, "value binary, metadata binary").cache()
    ready.count()

    def hand_over(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            values = [VariantVal(bytes(v), bytes(m)) for v, m in zip(batch["value"], batch["metadata"], strict=True)]
            yield pd.DataFrame({"body": pd.Series(values, dtype=object)})

    def same(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    ways: dict[str, tuple[Callable[[], Any], str, str]] = {
        "JSON text": (
            lambda: source.mapInPandas(same, "body string"),
            "get_json_object(body, '$.topics[0].name')",
            "size(from_json(get_json_object(body, '$.topics'), 'array<struct<name string>>'))",
        ),
        "VARIANT, parse_json": (
            lambda: source.mapInPandas(same, "body string").selectExpr("parse_json(body) AS body"),
            "body:topics[0].name::string",
            "size(body:topics::array<struct<name string>>)",
        ),
        "VARIANT, ready binary": (
            lambda: ready.mapInPandas(hand_over, "body variant"),
            "body:topics[0].name::string",
            "size(body:topics::array<struct<name string>>)",
        ),
    }
    times: dict[str, list[list[float]]] = {name: [[], [], []] for name in ways}
    for number in range(ROUNDS + 1):  # the first warms up
        for name, (frame, field, array) in ways.items():
            path = str(folder / re.sub(r"\W+", "-", name))
            steps = (
                lambda frame=frame, path=path: frame().write.format("delta").mode("overwrite").save(path),
                lambda field=field, path=path: _query(spark, path, f"count({field})"),
                lambda array=array, path=path: _query(spark, path, f"sum({array})"),
            )
            for step, seconds in zip(steps, times[name], strict=True):
                begun = time.perf_counter()
                step()
                if number:
                    seconds.append(time.perf_counter() - begun)
    table = Table(
        title=f"{rows:,} bodies, mean {sum(map(len, _bodies())) / rows:.0f} characters; median of {ROUNDS} rounds"
    )
    for title in ("way", "write s", "size MB", "one field s", "array s"):
        table.add_column(title, justify="left" if title == "way" else "right")
    for name, seconds in times.items():
        files = spark.read.format("delta").load(str(folder / re.sub(r"\W+", "-", name))).inputFiles()
        size = sum(Path(file.removeprefix("file:")).stat().st_size for file in files) / 1e6
        write, field, array = map(median, seconds)
        table.add_row(name, f"{write:.2f}", f"{size:.2f}", f"{field:.2f}", f"{array:.2f}")
    CONSOLE.print(table)


def _query(spark: Any, path: str, expression: str) -> None:
    spark.read.format("delta").load(path).selectExpr(expression).collect()


def _bodies() -> list[str]:
    """The bodies of the recorded frames, several times over with other numbers in each copy."""
    codec = Codec()
    messages = (
        codec.decode(f.data, direction=f.direction, api_key=f.api_key, api_version=f.api_version) for f in samples()
    )
    texts = [orjson.dumps(message.body).decode() for message in messages]
    return [
        _NUMBER.sub(lambda found, copy=copy: str(int(found[0]) + copy), text)
        for copy in range(COPIES)
        for text in texts
    ]
