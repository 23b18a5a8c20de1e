"""Codes about time, memory, disk, load and operations that were stopped."""

from __future__ import annotations

from typing import Final

from pipeline.analysis.codes.model import APPLICATION, CONFIGURATION, LOSS, NO_ONE, OPERATOR, REFUSAL, TRANSIENT
from pipeline.analysis.codes.mongodb.rows import MESSAGE, family, row

_SLOWER: Final = "let the application send less for a while; it repeats after a pause that grows."

ROWS: Final = (
    row(
        50,
        REFUSAL,
        APPLICATION,
        "The command took longer than its maxTimeMS (or timeoutMS), and the server stopped it.",
        "look at its plan with explain(): COLLSCAN is a missing index; see what else runs: `db.currentOp()`.",
        "create an index for the query, limit its results, or raise maxTimeMS where the work may take longer.",
        area="time limit",
    ),
    row(
        262,
        TRANSIENT,
        OPERATOR,
        "The server gave up after a time limit of its own, as while it waited for another server.",
        "nothing while it passes: the driver repeats the operation once.",
        "if it stays, look at the load of the servers and the network between them.",
        area="time limit",
        is_retried=True,
    ),
    *family(
        REFUSAL,
        OPERATOR,
        "ask who stopped it: `db.killOp()`, `killSessions`, or a tool that ends long operations.",
        "bound the time of operations by maxTimeMS instead of stopping them by hand.",
        {
            11601: "Somebody stopped the operation (killOp).",
            46841: "The client's operations were stopped.",
        },
    ),
    *family(
        TRANSIENT,
        NO_ONE,
        "nothing: the operation can be repeated.",
        "if it stays, read the server's log.",
        {
            24: "A lock was not free in time.",
            46: "The lock is held by another operation.",
            107: "The lock could not be taken.",
            117: "Another operation that excludes this one is under way.",
            355: "The storage engine is being changed.",
            10045600: "A change of the feature compatibility version interrupted the operation.",
            91331: "A command at another server failed, and may be repeated.",
            314: "The object is in use.",
            90: "The server cancelled the operation.",
        },
    ),
    *family(
        TRANSIENT,
        OPERATOR,
        _SLOWER,
        "add capacity, make queries cheaper, or reduce the number of concurrent clients (maxPoolSize).",
        {
            365: "The storage engine is short of cache and refused the operation.",
            402: "The server is short of a resource.",
            433: "Too many operations wait.",
            208: "The operation needs too many locks.",
        },
        area="load",
    ),
    *family(
        TRANSIENT,
        OPERATOR,
        "let the application send less for a while: wait for RetryAfterMs of the reply before each repeat. A restart "
        "of the application does not help.",
        "raise the limit (Azure Cosmos DB: request units of the collection, or server-side retry), make queries "
        "cheaper (an index for each filter and sort), and use smaller batches and fewer concurrent clients "
        "(maxPoolSize).",
        {
            449: "More operations come than are allowed.",
            462: "More requests come than the server takes.",
            16500: "The request rate is larger than what the collection has paid for (Azure Cosmos DB, code 16500).",
        },
        area="rate limit",
    ),
    *family(
        REFUSAL,
        APPLICATION,
        "let the query use less: an index for its sort, fewer fields, `allowDiskUse`.",
        "create an index that gives the order; put $match and $project before $sort and $group.",
        {
            146: "The operation needs more memory than it may use.",
            292: "The query needs more memory than allowed, and may not use the disk (allowDiskUse).",
            377: "An encrypted query matches too many tags.",
        },
        area="memory",
    ),
    row(
        14031,
        LOSS,
        OPERATOR,
        "The server's disk is full; the write was not made.",
        "free or add disk space now; writes are refused until then.",
        "set an alarm on free space well before it ends.",
        area="disk",
    ),
    row(
        264,
        CONFIGURATION,
        OPERATOR,
        "The server may open no more files.",
        "raise the limit (ulimit -n 64000) and restart the server.",
        "raise the service's limits, or use fewer collections and indexes.",
    ),
    row(
        371,
        REFUSAL,
        OPERATOR,
        "Writes of users are blocked (setUserWriteBlockMode), as during a migration.",
        "wait for the end of the migration, or unblock: `setUserWriteBlockMode`.",
        "announce such times to the owners of applications.",
    ),
    row(
        411,
        REFUSAL,
        OPERATOR,
        "A query setting of the server rejects queries of this shape.",
        "see the settings ($querySettings), or change the query.",
        "inform the application's owner before a shape is rejected.",
    ),
    row(
        224,
        CONFIGURATION,
        OPERATOR,
        "The query uses a feature that the feature compatibility version does not allow.",
        "run it without the feature, or raise the version: `setFeatureCompatibilityVersion`.",
        "raise the version after an upgrade.",
    ),
    *family(
        CONFIGURATION,
        OPERATOR,
        f"{MESSAGE}.",
        "follow the steps of the upgrade or downgrade in order.",
        {
            158: "The data is of an older release than the server takes.",
            229: "The feature compatibility version must be lowered first.",
            243: "The feature does not fit the upgraded server.",
            258: "The feature compatibility version is not known.",
            332: "Something that the older release cannot read is in the way of the downgrade.",
            400: "Something prevents the upgrade.",
            51: "The server needs a person's help.",
        },
    ),
    *family(
        TRANSIENT,
        OPERATOR,
        "wait for the backup to finish.",
        "run one backup at a time.",
        {268: "A backup cannot be made now.", 50915: "A checkpoint is in the way of the backup."},
    ),
)
