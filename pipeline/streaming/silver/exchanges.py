"""How do the halves of an exchange find each other? By ``exchange_id``, statelessly; those that wait lie in a table.

A batch of frames is grouped together with ``silver.open_exchanges``. What is complete (or given up) becomes rows of
``silver.exchanges``; the rest is the next content of ``silver.open_exchanges``. Giving up goes by event time only, so
that the same frames give the same rows however the stream was cut into batches:

* a response is paired with a request of the same id that is at most ``answer_timeout`` older;
* a response that follows another one by itself (MongoDB's exhaust) is complete alone;
* a half is given up when its own connection has gone on for longer than ``answer_timeout`` without the other, or when
  all connections together have gone on for longer than ``abandon_timeout``.

A time that the capture did not give (TIME_CLAMPED) means nothing: such a frame makes no other one old, is not late, and
has no latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.model import FrameFlags
from decoder.protocols import names_of
from pipeline.streaming.spark.error_codes import errors
from pipeline.tables import EXCHANGES, OPEN_EXCHANGES

HALF_COLUMNS = OPEN_EXCHANGES.column_names
_CONTEXT = (
    "connection_id", "agent_id", "flow_id", "protocol", "client_ip", "client_port", "server_ip", "server_port",
    "api_key", "api_name", "api_version",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Paired:
    """Outcome of pairing.

    Attributes:
        rows: of ``silver.exchanges``, and beside them ``waiting``: where ``status`` is ``pending`` the half that still
            waits. To be persisted where more than one of the properties is read.
    """

    rows: DataFrame

    @property
    def complete(self) -> DataFrame:
        """Rows of ``silver.exchanges``."""
        return self.rows.where("status <> 'pending'").select(*EXCHANGES.column_names)

    @property
    def waiting(self) -> DataFrame:
        """The halves that still wait."""
        return self.rows.where("status = 'pending'").select("waiting.*")


def group_halves(frames: DataFrame, waiting: DataFrame) -> DataFrame:
    """One row an exchange: ``req`` and ``res``, structs of the halves or null.

    Should an id repeat in one direction, the first frame wins.

    Args:
        frames: rows of ``bronze.frames`` (without the raw frame).
        waiting: rows of ``silver.open_exchanges``.
    """
    halves = frames.select(*HALF_COLUMNS).unionByName(waiting.select(*HALF_COLUMNS))
    # A frame that the agent could not number stands for itself.
    own_id = F.concat_ws("/", "connection_id", "direction", "seq")
    numbered = halves.withColumn("exchange_id", F.coalesce("exchange_id", own_id))
    half = F.struct(*HALF_COLUMNS)

    def first(direction: str) -> Column:
        is_it = F.col("direction") == direction
        return F.min_by(F.when(is_it, half), F.when(is_it, F.col("seq")))

    return numbered.groupBy("exchange_id").agg(first("request").alias("req"), first("response").alias("res"))


def connection_clocks(*halves: DataFrame) -> DataFrame:
    """The ``ts`` of the last frame of each connection, as ``connection_clock``: a clock may have been set back."""
    columns = ("connection_id", "direction", "seq", "ts", "flags")
    times = reduce(DataFrame.unionByName, (some.select(*columns) for some in halves))

    def last(direction: str) -> Column:
        is_timed = (F.col("direction") == direction) & ~_is_clamped("flags")
        return F.max_by("ts", F.when(is_timed, F.col("seq")))

    return times.groupBy("connection_id").agg(F.greatest(last("request"), last("response")).alias("connection_clock"))


def settle(grouped: DataFrame, clocks: DataFrame, answer_timeout: timedelta, abandon_timeout: timedelta) -> Paired:
    """Separate what is complete or given up from what still waits.

    Args:
        grouped: as :func:`group_halves` gives it.
        clocks: as :func:`connection_clocks` gives it.
        answer_timeout, abandon_timeout: see StreamSettings.
    """
    late = (F.col("res.ts") > F.col("req.ts") + F.lit(answer_timeout)) & ~_any_clamped("req", "res")
    both = F.col("req").isNotNull() & F.col("res").isNotNull()
    nothing = F.lit(None).cast(grouped.schema["req"].dataType)
    alone = (
        F.when(F.col("req").isNotNull(), F.struct("req", nothing.alias("res"))),
        F.when(F.col("res").isNotNull(), F.struct(nothing.alias("req"), "res")),
    )
    found = F.when(both & ~late, F.array(F.struct("req", "res"))).otherwise(F.array_compact(F.array(*alone)))
    each = grouped.select("exchange_id", F.explode(found).alias("found")).select("exchange_id", "found.*")
    timed = _with_deadline(each, clocks, answer_timeout, abandon_timeout)
    return Paired(_exchange_rows(timed.withColumn("status", _status())))


def _with_deadline(
    each: DataFrame, clocks: DataFrame, answer_timeout: timedelta, abandon_timeout: timedelta
) -> DataFrame:
    """Add ``expired_after``: halves older than this are given up."""
    newest = clocks.agg(F.max("connection_clock").alias("all_clock"))
    deadline = F.greatest(
        F.col("connection_clock") - F.lit(answer_timeout), F.col("all_clock") - F.lit(abandon_timeout)
    )
    deadlines = clocks.crossJoin(F.broadcast(newest)).select("connection_id", deadline.alias("expired_after"))
    keyed = each.withColumn("connection_id", F.coalesce("req.connection_id", "res.connection_id"))
    return keyed.join(F.broadcast(deadlines), "connection_id").drop("connection_id")


def _has(half: str, flag: FrameFlags) -> Column:
    return F.col(f"{half}.flags").bitwiseAND(int(flag)) != 0


def _is_clamped(flags: str) -> Column:
    return F.col(flags).bitwiseAND(int(FrameFlags.TIME_CLAMPED)) != 0


def _any_clamped(*halves: str) -> Column:
    return reduce(Column.__or__, (_is_clamped(f"{half}.flags") for half in halves))


def _status() -> Column:
    of_request = (
        F.when(_has("req", FrameFlags.NO_RESPONSE_EXPECTED), "no_response_expected")
        .when(_has("req", FrameFlags.UNANSWERED), "unanswered")
        .when(F.col("req.ts") < F.col("expired_after"), "unanswered")
        .otherwise("pending")
    )
    is_orphan = _has("res", FrameFlags.ORPHAN_RESPONSE) | (F.col("res.ts") < F.col("expired_after"))
    of_response = (
        F.when(_has("res", FrameFlags.FOLLOWING_RESPONSE), "following_response")
        .when(is_orphan, "orphan_response")
        .otherwise("pending")
    )
    return F.when(F.col("res").isNull(), of_request).when(F.col("req").isNull(), of_response).otherwise("paired")


def _id() -> Column:
    """A response that came too late for its request must not share the id of that request's row."""
    is_alone = _has("res", FrameFlags.ORPHAN_RESPONSE) | _has("res", FrameFlags.FOLLOWING_RESPONSE)
    is_late = F.col("req").isNull() & ~is_alone
    return F.when(is_late, F.concat("exchange_id", F.lit("/late"))).otherwise(F.col("exchange_id"))


def _exchange_rows(found: DataFrame) -> DataFrame:
    gap = F.unix_micros("res.ts") - F.unix_micros("req.ts_end")
    ts = F.coalesce("req.ts", "res.ts")
    keep_headers = names_of(lambda protocol: protocol.keeps_headers)
    rows = found.select(
        _id().alias("exchange_id"),
        *(F.coalesce(f"req.{c}", f"res.{c}").alias(c) for c in _CONTEXT),
        F.coalesce("req.correlation_id", "res.correlation_id").alias("correlation_id"),
        F.col("req.client_id").alias("client_id"),
        ts.alias("ts"),
        F.to_date(ts).alias("date"),
        F.col("req.ts").alias("request_ts"),
        F.col("res.ts").alias("response_ts"),
        F.when(~_any_clamped("req", "res"), F.greatest(gap, F.lit(0))).alias("_latency"),
        F.col("req.size").alias("request_size"),
        F.col("res.size").alias("response_size"),
        "status",
        errors("res.body", "res.protocol").alias("_errors"),
        F.col("req.decode_status").alias("request_status"),
        F.col("res.decode_status").alias("response_status"),
        F.col("req.body").alias("request_body"),
        F.col("res.body").alias("response_body"),
        F.col("req.embedded").alias("request_embedded"),
        F.col("res.embedded").alias("response_embedded"),
        F.col("req.flags").alias("request_flags"),
        F.col("res.flags").alias("response_flags"),
        F.when(F.col("req.protocol").isin(keep_headers), F.col("req.header")).alias("request_header"),
        F.when(F.col("res.protocol").isin(keep_headers), F.col("res.header")).alias("response_header"),
        F.when(F.col("status") == "pending", F.coalesce("req", "res")).alias("waiting"),
    )
    paired = F.col("request_ts").isNotNull() & F.col("response_ts").isNotNull()
    return rows.withColumns(
        {
            "latency_us": F.when(paired, F.col("_latency")),
            "error_codes": F.col("_errors.code"),
            "error_names": F.col("_errors.name"),
        }
    ).select(*EXCHANGES.column_names, "waiting")
