"""Which errors does a response name? By columns for Kafka and MongoDB, so that pairing needs no Python worker."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from decoder.kafka.errors import ERROR_NAMES as KAFKA_NAMES
from decoder.kafka.errors import error_name
from decoder.mongodb.codec.wire import CURSOR_NOT_FOUND, QUERY_FAILURE
from decoder.mongodb.errors import CURSOR_NOT_FOUND_CODE
from decoder.mongodb.errors import ERROR_NAMES as MONGODB_NAMES
from decoder.protocols import names_of
from pipeline.analysis.errors import response_errors

_KAFKA_CODE = r'"(?:errorCode|\w*ErrorCode)":(-?\d+)'
"""In compact JSON a quote inside a string is escaped, so that this matches keys only."""
_KAFKA_SUSPECT = 'rrorCode":-?[1-9]'
# Texts: servers write numbers of any type, and a text never spoils its neighbours.
_MONGODB_ERROR = "code: STRING, codeName: STRING"
_MONGODB_REPLY = (
    f"STRUCT<ok: STRING, {_MONGODB_ERROR}, writeErrors: ARRAY<STRUCT<{_MONGODB_ERROR}>>, "
    f"writeConcernError: STRUCT<{_MONGODB_ERROR}>>"
)
_MONGODB_BODY = (
    f"sections ARRAY<STRUCT<document: {_MONGODB_REPLY}>>, documents ARRAY<{_MONGODB_REPLY}>, "
    f"commandReply {_MONGODB_REPLY}"
)
_REPLY_FLAGS = r'^\{"responseFlags":(-?\d+)'
_NO_CURSOR = f'{{"ok":"0","code":"{CURSOR_NOT_FOUND_CODE}"}}'
"""What OP_REPLY states by a flag, as a command's reply."""
_ERROR = "struct<code:int,name:string>"
_FAILED = ("0", "0.0", "false")


def errors(body: str, protocol: str) -> Column:
    """An array of ``code`` and ``name``, distinct and ascending; null without a body.

    Of Kafka the non-zero values of all fields named ``errorCode`` or ``…ErrorCode``; of MongoDB the codes of a failed
    command, of its write errors and of its write concern error; of other protocols what they state themselves.

    Args:
        body: name of the column with the response's body.
        protocol: name of the column that names the protocol.
    """
    is_kafka = F.col(protocol) == "kafka"
    found = F.when(is_kafka, _kafka(body)).when(F.col(protocol) == "mongodb", _mongodb(body))
    if names_of(lambda one: one.name not in ("kafka", "mongodb")):
        found = found.otherwise(F.udf(response_errors, f"array<{_ERROR}>")(protocol, body))
    return F.array_sort(F.array_distinct(found))


def _kafka(body: str) -> Column:
    # Most bodies name no error, and looking for a whole name takes several times as long.
    suspect = F.when(F.col(body).rlike(_KAFKA_SUSPECT), F.col(body)).when(F.col(body).isNotNull(), "")
    texts = F.regexp_extract_all(suspect, F.lit(_KAFKA_CODE), F.lit(1))
    codes = F.transform(texts, lambda text: text.cast("int"))
    return F.transform(F.filter(codes, lambda code: code != 0), lambda code: _named(code, KAFKA_NAMES))


def _mongodb(body: str) -> Column:
    flags = F.regexp_extract(body, _REPLY_FLAGS, 1).try_cast("int")
    has_no_cursor, is_query_failure = (flags.bitwiseAND(flag) != 0 for flag in (CURSOR_NOT_FOUND, QUERY_FAILURE))
    may_fail = F.col(body).contains('"code":')
    parsed = F.from_json(F.when(may_fail, F.col(body)), _MONGODB_BODY)
    documents = F.transform(
        parsed["documents"],
        lambda reply: F.struct(
            # Documents that are data, and failed queries of old.
            F.when(is_query_failure, "0").otherwise(reply["ok"]).alias("ok"),
            *(reply[name] for name in ("code", "codeName", "writeErrors", "writeConcernError")),
        ),
    )
    no_cursor = F.array(F.from_json(F.lit(_NO_CURSOR), _MONGODB_REPLY))
    replies = F.concat(
        _or_empty(F.transform(parsed["sections"], lambda section: section["document"])),
        _or_empty(F.when(has_no_cursor, no_cursor).when(F.size(documents) == 1, documents)),
        _or_empty(F.array(parsed["commandReply"])),
    )
    coded = F.filter(F.flatten(F.transform(replies, _of_reply)), lambda error: error["code"].isNotNull())
    named = F.transform(coded, lambda error: _named(error["code"], MONGODB_NAMES, error["codeName"]))
    return F.when(F.col(body).isNotNull(), F.coalesce(named, F.array().cast(f"array<{_ERROR}>")))


def _of_reply(reply: Column) -> Column:
    """The errors of one reply: code and the name that it gives."""
    whole = F.when(reply["ok"].isin(*_FAILED), F.array(_error(reply)))
    concern = F.when(reply["writeConcernError"].isNotNull(), F.array(_error(reply["writeConcernError"])))
    writes = F.when(reply["ok"].isNotNull(), F.transform(reply["writeErrors"], _error))
    nothing = F.array().cast("array<struct<code:int,codeName:string>>")
    return F.concat(*(F.coalesce(some, nothing) for some in (whole, writes, concern)))


def _error(of: Column) -> Column:
    code = of["code"].try_cast("double").try_cast("int")
    return F.struct(code.alias("code"), of["codeName"].alias("codeName"))


def _or_empty(replies: Column) -> Column:
    return F.coalesce(replies, F.array().cast(f"array<{_MONGODB_REPLY}>"))


def _named(code: Column, names: Mapping[int, str], given: Column | None = None) -> Column:
    """A code with its name: the given one, the known one, or one that holds the number."""
    pairs = [item for number, name in sorted(names.items()) for item in (F.lit(number), F.lit(name))]
    before, after = _unknown_name()
    unknown = F.concat(F.lit(before), code.cast("string"), F.lit(after))
    known = (F.try_element_at(F.create_map(*pairs), code), unknown)
    return F.struct(code.alias("code"), F.coalesce(*(() if given is None else (given,)), *known).alias("name"))


def _unknown_name() -> list[str]:
    """What error_name() writes before and after the number of a code that it does not know."""
    sample = 30_000
    return error_name(sample).split(str(sample))
